"""What a context supports, as `opSupportLimits` shows it: all of it is read off the declarations."""

from __future__ import annotations

from typing import Any

from webinfer.importers.core.limits import MAX_TENSOR_BYTES
from webinfer.webnn.signatures import ANY, MAX_RANK, METHODS, WORDS, signature


def _limit(types: tuple[str, ...], ranks: tuple[int, int] = (0, MAX_RANK)) -> dict[str, Any]:
    return {"dataTypes": list(types), "rankRange": {"min": ranks[0], "max": ranks[1]}}


def limits(kind: str) -> dict[str, Any]:
    """The limits of a context of this kind: of tensors, and for each method of its operands and of its result."""
    found: dict[str, Any] = {
        "preferredInputLayout": "nhwc",
        "maxTensorByteLength": MAX_TENSOR_BYTES,
        "input": _limit(ANY), "constant": _limit(WORDS), "output": _limit(ANY),
    }  # fmt: skip
    for name in METHODS:
        own = signature(name)
        row = {operand.name: _limit(operand.types, operand.ranks) for operand in own.operands}
        found[name] = {**row, own.result: _limit(own.result_types)}
    return found
