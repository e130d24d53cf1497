"""Visits of one device that keep what they store in memory."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.ops.case_graphs import run
from tests.session.models import IMAGE, model

import webinfer
from webinfer.backends.wasm import compilation
from webinfer.host.checksums import sealed, unsealed
from webinfer.host.native import NativeHost
from webinfer.session.session import Session


class Visitor(NativeHost):
    """A host that keeps what it is told to in memory, as one engine of one site; or of one machine with `script`."""

    idle_delay_s = 0.0

    def __init__(self, script: bool = False) -> None:
        super().__init__()
        self.settles_later = not script
        self.engine, self.store = "engine 1", dict[str, bytes]()

    def identity(self) -> str:
        return self.engine

    async def recall_bytes(self, name: str) -> memoryview | None:
        return unsealed(name, self.store[name]) if name in self.store else None

    async def remember_bytes(self, name: str, data: bytes) -> None:
        self.store[name] = sealed(data)

    @property
    def place(self) -> str:
        (name,) = (name for name in self.store if name.startswith("plan-"))
        return name


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Visitor:
    return Visitor()


async def _opened(host: Visitor, **options: Any) -> Session:
    options = {"backend": "wasm", "tuning_ms": 0, **options}
    # 16 channels: tiles of one layout of the weights are timed, and fewer channels have one tile.
    session = await webinfer.load(model(4 if options["tuning_ms"] else 1), host=host, **options)
    await asyncio.sleep(0.02)
    while compilation._tasks:
        await asyncio.sleep(0.01)
    return session


def opened(host: Visitor, **options: Any) -> Session:
    """A session, when all that is done afterwards is done."""
    return run(_opened(host, **options))


def answer(session: Session) -> Any:
    return run(session.run({"image": IMAGE}))["y"].numpy()
