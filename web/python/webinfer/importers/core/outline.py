"""What a model's file says of itself, read without converting anything: for people, also of models that cannot run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any

from webinfer.dtypes import DType
from webinfer.lazy_dataclass import dataclass

MAX_LISTED = 16  # numbers of an attribute that are shown
MAX_TEXT = 200  # characters of an attribute or a fact


@dataclass(frozen=True, slots=True)
class OutlineValue:
    """One value: its name, its type in the file's words, and the bytes of a constant; 0 for what is computed."""

    name: str
    type: str
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class StoredWeight:
    """The bytes of a weight, and their element type; None where the elements are not stored one by one."""

    data: memoryview
    dtype: DType | None


@dataclass(frozen=True, slots=True)
class OutlineNode:
    """One operator; inputs and outputs are keys of values, "" where an input is absent.

    `number` is what errors of the importer call it.
    """

    op: str
    name: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    attributes: dict[str, str]
    number: int


@dataclass(slots=True)
class Outline:
    """A graph for people: facts about the file, and its operators with the values between them by key."""

    facts: dict[str, str] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    nodes: list[OutlineNode] = field(default_factory=list)
    values: dict[str, OutlineValue] = field(default_factory=dict)

    def say(self, **facts: object) -> None:
        """Adds facts that are not empty; `_` in a name stands for a space."""
        self.facts |= {name.replace("_", " "): shown(text) for name, text in facts.items() if text}


def type_text(kind: object, shape: Iterable[object] | None) -> str:
    """An element type and a shape as `float32 [1, ?, 3]`."""
    return str(kind) if shape is None else f"{kind} [{', '.join(str(d) if d not in ('', -1) else '?' for d in shape)}]"


def shown(value: Any) -> str:
    """An attribute or a fact as a short text."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple)):
        more = f", and {len(value) - MAX_LISTED} more" if len(value) > MAX_LISTED else ""
        return f"[{', '.join(map(shown, value[:MAX_LISTED]))}{more}]"
    text = str(value)
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
