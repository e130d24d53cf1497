"""Which inputs of a model come back longer or changed among its outputs: caches that a caller feeds to the next run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import field

from webinfer.lazy_dataclass import dataclass

Declared = tuple[int | str, ...]  # sizes as the file says them: a number, a name, or "" for nothing


@dataclass(frozen=True, slots=True)
class CacheRow:
    """An input, the output that is its next value, and the axis that grows; None where the sizes stay."""

    input: str
    output: str
    axis: int | None


@dataclass(frozen=True, slots=True)
class Caches:
    """The caches of a model, and what the file says of the sizes of all its inputs."""

    rows: tuple[CacheRow, ...] = ()
    shapes: dict[str, Declared] = field(default_factory=dict)


def by_name(inputs: Iterable[str], outputs: Sequence[str]) -> dict[str, str]:
    """Outputs by the inputs that they follow, as exporters name them: one name, or past… and present… of one rest."""
    found = {_rest(output): output for output in outputs if output.startswith("present")}
    same = {name: name for name in inputs if name in outputs}
    return same | {name: found[_rest(name)] for name in inputs if name.startswith("past") and _rest(name) in found}


def _rest(name: str) -> str:
    return re.sub(r"^(past|present)(_key_values?|_values?)?", "", name)
