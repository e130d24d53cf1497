"""Devices of a lab that answer by real engines; some of them go away, and one lies."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from array import array
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

import webinfer
from server.tests.lab_devices import joined
from webinfer.lab.frames import read, written
from webinfer.page.model_controller import ModelController


def restored(value: Any, buffers: Sequence[Any]) -> Any:
    """The fields of a question, with its buffers where their numbers stand."""
    if isinstance(value, dict):
        found = value.get("buffer")
        return buffers[found] if found is not None else {name: restored(one, buffers) for name, one in value.items()}
    return value


class Engine:
    """A device: it answers by a real engine, closes its socket at the ask of number `dies`, lies from `lies` on."""

    def __init__(self, dies: int = 1 << 30, lies: int = 1 << 30, silent: int = 1 << 30) -> None:
        self.desk, self.dies, self.lies, self.silent = ModelController(lambda event: None), dies, lies, silent
        self.runs = 0

    async def __call__(self, data: Any, socket: Any) -> None:
        head, buffers = read(data)
        if head["type"] != "ask":
            return
        self.runs += head["action"] == "run"
        if self.runs >= self.dies:
            await socket.close()
            return
        if self.runs >= self.silent:
            return

        try:
            answer, sent = await self.desk.answer(head["action"], restored(head["fields"], buffers))
            if head["action"] == "run" and self.runs >= self.lies:
                sent = [array("f", [1.01 * y for y in memoryview(bytes(one)).cast("f")]).tobytes() for one in sent]
            text = written("answer", {"id": head["id"], "answer": answer, "sent": sent})
        except webinfer.WebinferError as error:
            text = written("error", {"id": head["id"], "code": error.code, "message": str(error)})
        await socket.send(text)


class Devices:
    """Devices of a lab, on a loop of their own."""

    def __init__(self, root: str) -> None:
        self.root, self.engines = root, dict[str, Engine]()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._stack = AsyncExitStack()

    def join(self, name: str, engine: Engine) -> None:
        self.engines[name] = engine
        self._run(self._stack.enter_async_context(joined(self.root, name, engine)))

    def close(self) -> None:
        with contextlib.suppress(Exception):  # of sockets that are closed already
            self._run(self._stack.aclose())
        for engine in self.engines.values():
            engine.desk.close()
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)
