"""The judge of the model table: a format's own runtime, in a process of its own."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from build_scripts.judge.runtimes import Shapes, runtime_of

Array = np.ndarray[Any, Any]
NUDGES = (1e-6, -1e-6, 3e-6, -3e-6)  # shares; one alone may cross no border between two levels


class JudgeCrashed(RuntimeError):
    """A model ended the process of the runtime that judges it."""


class Judge:
    """Runtimes as users run them, with their defaults; a model that crashes one ends only its process."""

    def __enter__(self) -> "Judge":
        self._pool = self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def _start(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, mp_context=get_context("spawn"))

    def _ask(self, question: Any, *arguments: Any) -> Any:
        try:
            return self._pool.submit(question, *arguments).result()
        except BrokenProcessPool:
            self._pool = self._start()
            return None

    def shapes(self, model: Path) -> Shapes | None:
        """The sizes of inputs that the model leaves open, or None if its runtime cannot run it."""
        found: Shapes | None = self._ask(runtime_of(model).shapes, model)
        return found

    def run(self, model: Path, inputs: Sequence[Mapping[str, Array]]) -> list[list[Array]]:
        """The runtime's outputs for each input, in the model's order.

        Raises:  JudgeCrashed if the model ended the runtime's process
        """
        results: list[list[Array]] | None = self._ask(runtime_of(model).run, model, [dict(named) for named in inputs])
        if results is None:
            raise JudgeCrashed(f"{runtime_of(model).judge} crashed on {model.name}")
        return results

    def other(self, model: Path, inputs: Sequence[Mapping[str, Array]]) -> list[list[Array]] | None:
        """What other kernels of the same runtime compute; None if it has none, or the model ended its process."""
        run = runtime_of(model).other
        found: list[list[Array]] | None = self._ask(run, model, [dict(named) for named in inputs]) if run else None
        return found


def nudged(inputs: Sequence[Mapping[str, Array]], by: float) -> list[dict[str, Array]]:
    """The inputs with floats that differ by such a share: what rounding turns that into, a judge answers for.

    All are larger by a positive share. By a negative one each is larger or smaller by a share of its own, as rounding
    has it: what is small in the spectrum of a pure tone then moves as well.
    """
    rng = np.random.default_rng(0)

    def share(shape: tuple[int, ...]) -> Any:
        return by if by > 0 else rng.uniform(by, -by, shape)

    return [
        {name: (a * (1 + share(a.shape))).astype(a.dtype) if a.dtype.kind == "f" else a for name, a in named.items()}
        for named in inputs
    ]
