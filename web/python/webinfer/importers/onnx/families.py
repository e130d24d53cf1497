"""The converters of all operators, one module a family. A family is imported when a model has an operator of it, and
with it those that stand before it: most models need the first dozen, and importing all of them took 13 of 57 ms of a
small model's first load (Pyodide 314 in Node 24, 2026-11-28).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from webinfer.importers.onnx.operation import Convert

# Those that most models need first.
FAMILIES = (
    "elementwise", "movement", "conv", "shapes", "matmul", "pool", "softmax", "reduce", "normalization", "gather",
    "resize", "quantized", "recurrent", "pattern", "control", "suppression", "attention", "scan", "grouped_attention",
    "stored", "optimized", "experts", "bits", "random", "sampling", "regions", "sequences", "signal", "deform_conv",
    "loss", "ngrams", "tree_ensemble", "linear_models", "support_vectors", "training",
)  # fmt: skip


class Converters(Mapping[str, Convert]):
    """The converters of all operators, by domain and name. Looking for one imports families until one has it."""

    def __init__(self) -> None:
        self._found: dict[str, Convert] = {}  # of the families that are imported

    def __getitem__(self, name: str) -> Convert:
        found = self._found.get(name)
        return self._searched(name) if found is None else found

    def __iter__(self) -> Iterator[str]:
        for family in FAMILIES:
            yield from _converters(family)

    def __len__(self) -> int:
        return sum(map(len, map(_converters, FAMILIES)))

    def _searched(self, name: str) -> Convert:
        for family in FAMILIES:
            self._found.update(_converters(family))
            if name in self._found:
                break
        return self._found[name]


def _converters(family: str) -> dict[str, Convert]:
    found: dict[str, Convert] = import_module(f"webinfer.importers.onnx.{family}").CONVERTERS
    return found


CONVERTERS = Converters()
