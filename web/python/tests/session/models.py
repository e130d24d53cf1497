"""A model of three operators, one whose image has any size, and sessions of them that fail when they are told to."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.importers.tflite_writer import Writer
from tests.ops.case_graphs import run

import webinfer
from webinfer.session.session import Session

WEIGHTS = np.linspace(-1, 1, 4 * 3 * 3 * 2, dtype=np.float32).reshape(4, 3, 3, 2)


def model(times: int = 1) -> bytes:
    """conv2d 3x3 (SAME, RELU) with 4 output channels so many times, max_pool2d 2x2, reshape."""
    w, co = Writer(), 4 * times
    x = w.input("image", (1, 6, 6, 2))
    kernel, bias = (
        w.constant("kernel", np.tile(WEIGHTS, (times, 1, 1, 1))),
        w.constant("bias", np.tile(np.float32([0.1, 0.2, 0.3, 0.4]), times)),
    )
    shapes = {"c": (1, 6, 6, co), "p": (1, 3, 3, co), "y": (1, 9 * co)}
    convolved, pooled, flat = (w.tensor(n, s) for n, s in shapes.items())
    w.node("CONV_2D", [x, kernel, bias], [convolved], padding=0, stride_w=1, stride_h=1, fused_activation_function=1)
    w.node("MAX_POOL_2D", [convolved], [pooled], padding=1, stride_w=2, stride_h=2, filter_width=2, filter_height=2)
    w.node("RESHAPE", [pooled, w.constant("shape", np.int32([1, 9 * co]))], [flat])
    return w.finish(flat)


IMAGE = np.random.default_rng(0).normal(size=(1, 6, 6, 2)).astype(np.float32)


def opened(backend: Any = "wasm", **options: Any) -> Session:
    return run(webinfer.load(model(), backend=backend, **options))


class Faulty:
    """An executor whose runs fail as often as told."""

    def __init__(self, executor: Any, error: Exception, times: int, lost: str) -> None:
        self._executor, self._error, self.times, self.lost = executor, error, times, lost
        self.closed = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._executor, name)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The class that it stands for, whose interfaces it has."""
        return type(self._executor)

    def _fail(self) -> None:
        if self.times:
            self.times -= 1
            raise self._error

    async def run(self, inputs: Any) -> Any:
        self._fail()
        return await self._executor.run(inputs)

    def run_at_once(self, inputs: Any) -> Any:
        self._fail()
        return self._executor.run_at_once(inputs)

    def close(self) -> None:
        self.closed = True
        self._executor.close()


def spoil(session: Session, error: Exception, times: int = 1, lost: str = "") -> Faulty:
    selection = session._live.selection
    selection.executor = faulty = Faulty(selection.executor, error, times, lost)  # type: ignore[assignment]
    return faulty


def open_model() -> bytes:
    """conv2d 3x3 (SAME) on an image whose height and width are left open."""
    w = Writer()
    x = w.input("image", (1, 1, 1, 2), shape_signature=[1, -1, -1, 2])
    y = w.tensor("y", (1, 1, 1, 4), shape_signature=[1, -1, -1, 4])
    kernel, bias = w.constant("kernel", WEIGHTS), w.constant("bias", np.float32([0.1, 0.2, 0.3, 0.4]))
    w.node("CONV_2D", [x, kernel, bias], [y], padding=0, stride_w=1, stride_h=1)
    return w.finish(y)
