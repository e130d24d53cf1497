"""Products of real numbers with weights that stay packed in 4 or 8 bits, a scale for each block of them."""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.errors import ShapeError
from webinfer.graph.ir import Case, Cost, Op, TensorType, Tolerance
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.registry import declare, moved_bytes, need

Inputs = Sequence[TensorType | None]


@dataclass(frozen=True, slots=True)
class PackedMatmulAttrs:
    """packed_matmul: `bits` of a weight, 4 (the first of a byte in its low half) or 8; `block` weights of a row share
    a scale."""

    bits: int
    block: int


def infer(inputs: Inputs, a: PackedMatmulAttrs) -> tuple[TensorType, ...]:
    """Type of y = x wᵀ + bias, where w = (stored - zero) * scale; without zeros half of the range stands for 0.

    Shapes:  x [..., K], w uint8 [N, blocks*block*bits/8], scales [N, blocks], zeros [N, blocks] or absent,
             bias [N] or absent -> y [..., N]; blocks = ceil(K / block)
    Raises:  ShapeError if the sizes do not fit.
    """
    x, w, scales = (need("packed_matmul", name, inputs[i]) for i, name in enumerate(("x", "w", "scales")))
    zeros, bias = [*inputs, None, None][3:5]
    if a.bits not in (4, 8) or a.block < 2 or a.block % 2:
        raise ShapeError(f"packed_matmul: {a.bits} bits in blocks of {a.block}; needs 4 or 8, and an even block")
    if not x.dtype.is_float or x.rank < 1 or w.rank != 2 or not w.shape[0] or not x.shape[-1]:
        raise ShapeError(f"packed_matmul: no product of x {x} and w {w}")
    rows, blocks = w.shape[0], -(-x.shape[-1] // a.block)
    for name, found, shape in (
        ("w", w, (rows, blocks * a.block * a.bits // 8)), ("scales", scales, (rows, blocks)),
        ("zeros", zeros, (rows, blocks)), ("bias", bias, (rows,)),
    ):  # fmt: skip
        wanted = DType.UINT8 if name == "w" else x.dtype
        if found is not None and (found.shape != shape or found.dtype is not wanted):
            raise ShapeError(f"packed_matmul: {name} is {found}, needs {wanted} of shape {shape}")
    return (TensorType((*x.shape[:-1], rows), x.dtype),)


def cost(inputs: Inputs, outputs: Sequence[TensorType], a: PackedMatmulAttrs) -> Cost:
    """Two operations for each product of two elements."""
    return Cost(2 * need("packed_matmul", "x", inputs[0]).shape[-1] * outputs[0].size, moved_bytes(inputs, outputs))


def _case(label: str, x: tuple[int, ...], n: int, bits: int, block: int, zeros: bool, bias: bool = False) -> Case:
    blocks = -(-x[-1] // block)
    parts = TensorType((n, blocks))
    size = blocks * block * bits // 8
    inputs = (
        TensorType(x), TensorType((n, size), DType.UINT8), parts, parts if zeros else None,
        TensorType((n,)) if bias else None,
    )  # fmt: skip
    values: dict[int, Sequence[float]] = {1: [(i * 73 + i // 7) % 256 for i in range(n * size)]}
    if zeros:
        values[3] = [float(i * 5 % 2**bits) for i in range(n * blocks)]
    return Case(label, inputs, PackedMatmulAttrs(bits, block), values=values, constant=(1, 2, 3, 4), low=-1, high=1)


PACKED_MATMUL = declare(
    Op(
        "packed_matmul", PackedMatmulAttrs, infer, cost,
        Tolerance(1e-3, 2e-5, "the order of a float32 sum is free; terms of cases are as large as 64", summed=True),
        (
            _case("4 bits, zeros, bias", (5, 64), 24, 4, 16, True, True),
            _case("4 bits, a tail in every direction", (2, 3, 45), 13, 4, 32, False),
            _case("4 bits, one row, a long sum", (1, 2112), 36, 4, 32, True),
            _case("8 bits, zeros", (7, 40), 9, 8, 8, True, True),
            _case("8 bits, one block, many rows", (33, 68), 20, 8, 68, False),
            _case("8 bits, a longer sum than a tile holds", (6, 1300), 8, 8, 128, True),
        ),
    )
)  # fmt: skip
