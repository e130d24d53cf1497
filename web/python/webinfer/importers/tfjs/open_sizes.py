"""Sizes of inputs that a model leaves open: -1 in what it says, bound by what users give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.graph.printer import safe_name
from webinfer.importers.core.limits import MAX_RANK, check_bytes, within
from webinfer.importers.core.partial_evaluation import OpenSizes
from webinfer.importers.core.writer import Shapes, bound_shape

Sizes = tuple[int, ...] | None


def shown(sizes: Sizes) -> Any:
    """Sizes for people: "?" where nothing is known."""
    return tuple("?" if d < 0 else d for d in sizes or ())


def bound(name: str, allowed: Sizes, usual: Sizes, shapes: Shapes, dtype: DType) -> Sizes:
    """The shape that an input gets, or None if sizes are left open; `usual` is what the signature says."""
    wanted = shapes.get(name)
    rank = len(wanted or ()) if allowed is None else len(allowed)
    within(f"input {safe_name(name)}: rank", rank, MAX_RANK, "use tensors of fewer dimensions")
    if wanted is not None:
        return bound_shape(name, (), (-1,) * len(wanted) if allowed is None else allowed, wanted, dtype)
    if allowed is not None and usual is not None and len(usual) == len(allowed):
        allowed = tuple(u if d == -1 else d for d, u in zip(allowed, usual, strict=True))
    if allowed is None or -1 in allowed[1:]:
        return None
    shape = tuple(1 if d == -1 else d for d in allowed)
    check_bytes(shape, dtype, f"input {safe_name(name)}")
    return shape


def left_open(
    model: str, unbound: Sequence[str], example: str, inputs: Sequence[Value], outputs: Sequence[Value]
) -> OpenSizes:
    """The error that lists the inputs whose sizes a model leaves open; `example` is the name of one."""
    return OpenSizes(
        f"{model}: the model leaves sizes of inputs open: {', '.join(unbound[:8])}; bind them with `shapes`, for "
        f"example shapes={{{example!r}: (...)}}", inputs, outputs,
    )  # fmt: skip
