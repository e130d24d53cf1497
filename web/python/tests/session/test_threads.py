"""Threads that were asked for by number, in a page that cannot have them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest
from tests.ops.case_graphs import run
from tests.session.models import model

import webinfer
from webinfer.backends.wasm import WasmExecutor
from webinfer.errors import IsolationError
from webinfer.host import current
from webinfer.host.interface import Capability

REASON = "the page is not cross-origin isolated"


class Page:
    """This process's host, as a page without cross-origin isolation."""

    def __init__(self) -> None:
        self._host = current()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)

    def capabilities(self) -> Sequence[Capability]:
        return [Capability("threads", False, REASON, "isolate the page")]


def load(**options: Any) -> Any:
    return run(webinfer.load(model(), host=Page(), **options))


def test_strict_threads_are_an_error_that_says_what_to_do() -> None:
    with pytest.raises(IsolationError, match=f"threads=4 was asked for, but {REASON}; isolate the page"):
        load(backend="wasm", threads=4, strict=True)


def test_else_there_is_one_thread_one_warning_and_a_reason(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "webinfer"), load(backend="wasm", threads=4) as session:
        assert session.choice == f"wasm was asked for; on one thread, because {REASON}"
        assert session.plan().choice == session.choice
    assert [record.getMessage() for record in caplog.records] == [
        f"model: wasm was asked for; on one thread, because {REASON}"
    ]


@pytest.mark.parametrize("options", [{"threads": None}, {"threads": 1}, {"backend": "reference", "threads": 4}])
def test_who_asks_for_no_threads_hears_nothing(options: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.WARNING, "webinfer"),
        load(**{"backend": "wasm", "strict": True, **options}) as session,
    ):
        assert "thread" not in session.choice
    assert not caplog.records


def test_what_was_built_before_threads_were_missed_is_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[WasmExecutor] = []
    free = WasmExecutor.close
    monkeypatch.setattr(WasmExecutor, "close", lambda executor: (closed.append(executor), free(executor)))
    with pytest.raises(IsolationError):
        load(backend="wasm", threads=4, strict=True)
    assert len(closed) == 1
