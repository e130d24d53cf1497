"""Products of 8-bit integers that give real numbers: what lies between what was quantised and what is not."""

from __future__ import annotations

import math
from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.errors import ShapeError
from webinfer.graph.ir import Case, Cost, Op, Quantization, TensorType
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.activation import Activation
from webinfer.ops.registry import DOT_PRODUCT, declare, eight_bit, is_stored, moved_bytes, need

Inputs = Sequence[TensorType | None]
BYTES = (DType.INT8, DType.UINT8)
DEEPEST = 2**15  # products of bytes whose sum an int32 holds


@dataclass(frozen=True, slots=True)
class StoredMatmulAttrs:
    """`transpose_b` swaps the axes of w first; the activation is a clamp."""

    transpose_b: bool = False
    activation: Activation = Activation.NONE


def infer(inputs: Inputs, a: StoredMatmulAttrs) -> tuple[TensorType, ...]:
    """Type of y = x w + bias, of the real numbers that x and w stand for.

    Shapes:  x [..., K] bytes with one scale, w [K, N] (or [N, K] transposed) bytes with one scale or one for each
             column, bias float32 [N] or absent -> y float32 [..., N]
    Raises:  ShapeError if sizes or types do not fit.
    """
    x, w = need("stored_matmul", "x", inputs[0]), need("stored_matmul", "w", inputs[1], 2)
    bias = inputs[2] if len(inputs) > 2 else None
    k, n = w.shape[::-1] if a.transpose_b else w.shape
    if x.rank < 1 or x.shape[-1] != k or not 0 < k <= DEEPEST:
        raise ShapeError(f"stored_matmul: x {x.shape} and w {w.shape} do not fit, or more than {DEEPEST} are added")
    if not all(is_stored(t) and t.dtype in BYTES for t in (x, w)) or len(_scales(x)) != 1:
        raise ShapeError(f"stored_matmul: x {x} and w {w} need bytes with scales, x with one")
    if len(_scales(w)) not in (1, n) or (len(_scales(w)) > 1 and w.quant.axis != int(not a.transpose_b)):  # type: ignore[union-attr]
        raise ShapeError(f"stored_matmul: w {w} needs one scale, or one for each of {n} columns")
    if a.activation.bounds is None:
        raise ShapeError(f"stored_matmul: activation {a.activation} is not a clamp")
    if bias is not None and (bias.shape != (n,) or bias.dtype is not DType.FLOAT32):
        raise ShapeError(f"stored_matmul: bias {bias} needs float32 of shape {(n,)}")
    return (TensorType((*x.shape[:-1], n)),)


def _scales(type: TensorType) -> tuple[float, ...]:
    return type.quant.scales if type.quant is not None else ()


def cost(inputs: Inputs, outputs: Sequence[TensorType], a: StoredMatmulAttrs) -> Cost:
    """Two operations for each product of two elements."""
    return Cost(2 * need("stored_matmul", "x", inputs[0]).shape[-1] * outputs[0].size, moved_bytes(inputs, outputs))


def _case(
    label: str, x: tuple[int, ...], w: tuple[int, int], types: tuple[DType, DType], bias: bool = False,
    by_column: bool = True, **attrs: object,
) -> Case:  # fmt: skip
    transposed = bool(attrs.get("transpose_b"))
    n = w[0] if transposed else w[1]
    scales = tuple(0.006 + 0.0011 * (i % 7) for i in range(n)) if by_column else (0.0113,)
    zeros = (0 if types[1] is DType.INT8 else 121,) * len(scales)
    weights = TensorType(w, types[1], Quantization(scales, zeros, int(not transposed) if by_column else None))
    inputs = (eight_bit(x, 0.047, 3, types[0]), weights, TensorType((n,)) if bias else None)
    values = {0: [i * 37 % 251 - (128 if types[0] is DType.INT8 else 0) for i in range(math.prod(x))]}
    return Case(label, inputs, StoredMatmulAttrs(**attrs), low=-100, high=100, constant=(1, 2), values=values)  # type: ignore[arg-type]


STORED_MATMUL = declare(
    Op(
        "stored_matmul", StoredMatmulAttrs, infer, cost, DOT_PRODUCT,
        (
            _case("uint8 by int8, bias, relu", (2, 9, 40), (40, 24), (DType.UINT8, DType.INT8), True,
                activation=Activation.RELU),
            _case("int8 by int8, transposed, odd sizes", (7, 37), (13, 37), (DType.INT8, DType.INT8), True,
                transpose_b=True),
            _case("uint8 by uint8, one row, a long sum", (1, 2100), (2100, 11), (DType.UINT8, DType.UINT8)),
            _case("one scale for all columns", (6, 16), (16, 8), (DType.INT8, DType.INT8), by_column=False),
        ),
    )
)  # fmt: skip
