"""The library without await: results are waited for, wherever the caller stands."""

from __future__ import annotations

import asyncio
import pydoc

import pytest
from tests.session.models import model

import webinfer


def test_a_script_loads_runs_and_profiles_without_await() -> None:
    told: list[webinfer.ProgressEvent] = []
    with webinfer.load_sync(model(), backend="wasm", progress=told.append) as session:
        outputs = session.run(session.noise(1))
        assert {name: tensor.shape for name, tensor in outputs.items()} == {i.name: i.shape for i in session.outputs}
        assert session.backend == "wasm"
        assert session.profile(rounds=1).run_ms > 0
        assert session.verify().ok
        assert {"run", "verify", "session", "plan"} <= set(dir(session))
        assert told
    with pytest.raises(webinfer.ClosedError):
        session.run(session.noise())


def test_who_runs_a_loop_may_wait_too() -> None:
    async def notebook() -> float:
        with webinfer.load_sync(model(), backend="wasm") as session:
            return sum(session.run(session.noise()).popitem()[1].tolist())

    alone = asyncio.run(notebook())
    with webinfer.load_sync(model(), backend="wasm") as session:
        assert sum(webinfer.run_sync(session.session.run(session.noise())).popitem()[1].tolist()) == alone


def test_waiting_inside_of_what_is_waited_for_is_an_error_and_not_for_ever() -> None:
    async def nothing() -> None:
        return

    async def inner() -> None:
        work = nothing()
        try:
            webinfer.run_sync(work)
        finally:
            work.close()

    with pytest.raises(webinfer.InputError, match="use await there"):
        webinfer.run_sync(inner())


def test_what_the_work_raises_is_raised() -> None:
    with pytest.raises(webinfer.ModelFormatError, match="empty"):
        webinfer.load_sync(b"")


def test_help_begins_with_what_one_does_and_lists_no_hundred_errors() -> None:
    text = pydoc.plaintext.document(webinfer)
    lines = text.splitlines()
    first = "\n".join(lines[:30])
    assert all(word in first for word in ("webinfer.load(", "session.run", "load_sync", "pipeline", "Session"))
    assert len(lines) < 700
    for name in ("load(", "load_sync(", "run_sync(", "pipeline(", "capabilities("):
        assert f"\n    {name}" in text or f"async {name}" in text, name
    assert "class Session(" in text
    assert "class ShapeError" not in text
