"""What the blocks about the lab find: a server, devices that run real engines, and where programs find it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.docs.given import Given, Names, doubled
from tests.ops.targets import TARGETS

import webinfer


@contextmanager
def lab_with(*names: str) -> Iterator[None]:
    """A lab with these devices, which WEBINFER_LAB names."""
    pytest.importorskip("sqlalchemy")
    pytest.importorskip("websockets")
    from tests.lab.devices import Devices, Engine

    from server.tests.lab_devices import TOKEN, running_lab

    with running_lab(Path("lab")) as root, closing(Devices(root)) as devices, pytest.MonkeyPatch.context() as patch:
        patch.setenv("WEBINFER_LAB", f"{root}/lab#token={TOKEN}")
        for name in names:
            devices.join(name, Engine())
        yield


@asynccontextmanager
async def device(text: str) -> AsyncIterator[Names]:
    """A device of this name with a GPU, and model.tflite."""
    if "webgpu" not in {target.backend for target in TARGETS}:
        pytest.skip("this machine has no WebGPU adapter")
    Path("model.tflite").write_bytes(doubled(rows=1, x="input"))
    names: Names = {"webinfer": webinfer, "array": np.ones((1, 3), np.float32), "print": lambda *_: None}
    with lab_with("pixel"):
        yield names
    assert names["outputs"]["y"].tolist() == [2, 2, 2]


@asynccontextmanager
async def devices(text: str) -> AsyncIterator[Names]:
    """Two devices, each of which a coroutine measures."""
    seen: list[str] = []

    async def measure(one: Any) -> None:
        seen.append(one.name)
        await one.close()

    with lab_with("pixel", "laptop"):
        yield {"asyncio": asyncio, "measure": measure}
    assert sorted(seen) == ["laptop", "pixel"]


@asynccontextmanager
async def executor(text: str) -> AsyncIterator[Names]:
    """Eight devices, a model and inputs for it."""
    Path("model.tflite").write_bytes(doubled(rows=1))
    printed: list[Any] = []
    with lab_with(*"abcdefgh"):
        yield {"webinfer": webinfer, "batches": [np.ones((1, 3), np.float32)] * 20, "print": printed.append}
    assert np.stack(printed).tolist() == [[[2, 2, 2]]] * 20


LAB: dict[str, Given] = {"device": device, "devices": devices, "executor": executor}
