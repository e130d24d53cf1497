"""The desk of the page "Chat", with a model that the tests write."""

from __future__ import annotations

from typing import Any

import pytest
from tests.language.test_language import MODEL
from tests.ops.case_graphs import run

from webinfer.host.interface import ProgressEvent
from webinfer.page.chat_desk import ChatDesk
from webinfer.page.model_desk import StoppedError


def _desk(steps: list[ProgressEvent]) -> ChatDesk:
    desk = ChatDesk(steps.append, lambda piece: None)
    run(desk.answer("chat_open", {"files": {"tiny.gguf": MODEL}, "backend": "wasm"}))
    return desk


def _answered(desk: ChatDesk, *texts: str) -> dict[str, Any]:
    roles = ("system", *("user", "assistant") * len(texts))
    messages = [{"role": role, "content": text} for role, text in zip(roles, ("ab", *texts), strict=False)]
    found, _ = run(desk.answer("chat_answer", {"messages": messages, "options": {"max_tokens": 3}}))
    return dict(found)


def test_the_oldest_messages_are_left_out_once_a_chat_fills_the_context_and_instructions_stay() -> None:
    desk = _desk([])
    assert _answered(desk, "hello")["left_out"] == 0
    long = _answered(desk, "hello", "ab" * 9, "hello", "ab" * 9, "hello")
    assert long["left_out"] == 4
    assert long["prompt"] == _answered(desk, "hello")["prompt"]  # a new chat begins with nothing left out
    desk.close()


def test_stop_ends_the_reading_of_a_prompt() -> None:
    steps: list[ProgressEvent] = []
    desk = _desk(steps)
    desk._told = lambda event: desk.stop()
    with pytest.raises(StoppedError):
        _answered(desk, "hello" * 40)
    desk._told = steps.append
    assert _answered(desk, "hello")["tokens"] <= 3
    desk.close()
