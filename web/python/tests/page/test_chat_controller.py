"""The controller of the page "Chat", with a model that the tests write."""

from __future__ import annotations

from typing import Any

import pytest
from tests.language.test_language import MODEL
from tests.ops.case_graphs import run

from webinfer.host.interface import ProgressEvent
from webinfer.page.chat_controller import ChatController
from webinfer.page.model_controller import StoppedError


def _controller(steps: list[ProgressEvent]) -> ChatController:
    controller = ChatController(steps.append, lambda piece: None)
    run(controller.answer("chat_open", {"files": {"tiny.gguf": MODEL}, "backend": "wasm"}))
    return controller


def _answered(controller: ChatController, *texts: str) -> dict[str, Any]:
    roles = ("system", *("user", "assistant") * len(texts))
    messages = [{"role": role, "content": text} for role, text in zip(roles, ("ab", *texts), strict=False)]
    found, _ = run(controller.answer("chat_answer", {"messages": messages, "options": {"max_tokens": 3}}))
    return dict(found)


def test_the_oldest_messages_are_left_out_once_a_chat_fills_the_context_and_instructions_stay() -> None:
    controller = _controller([])
    assert _answered(controller, "hello")["left_out"] == 0
    long = _answered(controller, "hello", "ab" * 9, "hello", "ab" * 9, "hello")
    assert long["left_out"] == 4
    assert long["prompt"] == _answered(controller, "hello")["prompt"]  # a new chat begins with nothing left out
    controller.close()


def test_stop_ends_the_reading_of_a_prompt() -> None:
    steps: list[ProgressEvent] = []
    controller = _controller(steps)
    controller._told = lambda event: controller.stop()
    with pytest.raises(StoppedError):
        _answered(controller, "hello" * 40)
    controller._told = steps.append
    assert _answered(controller, "hello")["tokens"] <= 3
    controller.close()
