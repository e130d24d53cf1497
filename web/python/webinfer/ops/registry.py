"""The table of all operators, filled by the family files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from webinfer.dtypes import DType
from webinfer.errors import ShapeError
from webinfer.graph.ir import Cost, Op, Quantization, TensorType, Tolerance

OPS: dict[str, Op] = {}

EXACT = Tolerance(reason="moves or compares values, computes none")
ONE_ROUNDING = Tolerance(absolute=1e-6, relative=1e-6, reason="one or two float32 roundings")
DOT_PRODUCT = Tolerance(absolute=2e-5, relative=2e-5, reason="the order of a float32 sum is free")
TRANSCENDENTAL = Tolerance(absolute=4e-6, relative=4e-6, reason="polynomials of about 1e-7, WGSL allows more")


@dataclass(frozen=True, slots=True)
class NoAttrs:
    """An operator without attributes."""


def declare(op: Op) -> Op:
    """Enters an operator into `OPS` and returns it."""
    if op.name in OPS:
        raise ValueError(f"operator {op.name} is declared twice")
    OPS[op.name] = op
    return op


def need(op: str, name: str, tensor: TensorType | None, rank: int | None = None) -> TensorType:
    """The type of a required input, its rank checked."""
    if tensor is None:
        raise ShapeError(f"{op}: input {name} is missing")
    if rank is not None and tensor.rank != rank:
        raise ShapeError(f"{op}: {name} has shape {tensor.shape}, needs rank {rank}")
    return tensor


def moved_bytes(inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]) -> int:
    """Bytes read once from each input and written once to each output."""
    return sum(t.nbytes for t in inputs if t is not None) + sum(t.nbytes for t in outputs)


def move_cost(inputs: Sequence[TensorType | None], outputs: Sequence[TensorType], attrs: object) -> Cost:
    """No arithmetic, every element moved."""
    return Cost(0, moved_bytes(inputs, outputs))


def elementwise_cost(inputs: Sequence[TensorType | None], outputs: Sequence[TensorType], attrs: object) -> Cost:
    """One operation an output element."""
    return Cost(sum(t.size for t in outputs), moved_bytes(inputs, outputs))


def broadcast(op: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """NumPy's broadcast of the shapes.

    Raises:  ShapeError naming the operator and all shapes.
    """
    rank = max(len(s) for s in shapes)
    out = []
    for dims in zip(*((1,) * (rank - len(s)) + s for s in shapes), strict=True):
        sizes = {d for d in dims if d != 1}
        if len(sizes) > 1:
            raise ShapeError(f"{op}: shapes {', '.join(map(str, shapes))} do not broadcast")
        out.append(sizes.pop() if sizes else 1)
    return tuple(out)


def eight_bit(shape: tuple[int, ...], scale: float, zero: int = 0, dtype: DType = DType.INT8) -> TensorType:
    """The type of a quantised tensor; `zero` counts from the middle of the element type's range."""
    middle = 128 if dtype is DType.UINT8 else 0
    return TensorType(shape, dtype, Quantization((scale,), (middle + zero,)))
