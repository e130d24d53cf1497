"""Matrix products, batched and broadcast. A fully connected layer is a matmul with `transpose_b`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.errors import ShapeError
from webinfer.graph.ir import Case, Cost, Op, Quantization, TensorType
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.activation import Activation
from webinfer.ops.conv import quantized_conv_case, short_conv_case
from webinfer.ops.registry import DOT_PRODUCT, PRODUCT, broadcast, declare, is_stored, moved_bytes, need

Inputs = Sequence[TensorType | None]


@dataclass(frozen=True, slots=True)
class MatmulAttrs:
    """`transpose_*` swap the last two axes first. `out_type` is for quantised results. `exact`: as a convolution's."""

    transpose_a: bool = False
    transpose_b: bool = False
    activation: Activation = Activation.NONE  # all but prelu
    out_type: tuple[DType, Quantization | None] | None = None
    exact: bool = False


def matrix_sizes(inputs: Inputs, a: MatmulAttrs) -> tuple[int, int, int]:
    """(M, K, N) of the product.

    Raises:  ShapeError if the inner sizes differ.
    """
    x, y = need("matmul", "a", inputs[0]), need("matmul", "b", inputs[1])
    if min(x.rank, y.rank) < 2:
        raise ShapeError(f"matmul: a {x.shape} and b {y.shape} need two axes or more")
    m, k = x.shape[:-3:-1] if a.transpose_a else x.shape[-2:]
    inner, n = y.shape[:-3:-1] if a.transpose_b else y.shape[-2:]
    if k != inner:
        raise ShapeError(f"matmul: inner sizes {k} of a {x.shape} and {inner} of b {y.shape} differ")
    if k < 1:
        raise ShapeError(f"matmul: a {x.shape} and b {y.shape} have nothing to multiply")
    if isinstance(inner, int):  # and k a symbol: weights that are known at load are packed by sizes that are known
        k = inner
    return m, k, n


def infer(inputs: Inputs, a: MatmulAttrs) -> tuple[TensorType, ...]:
    """Type of y.

    Shapes:  a [..., M, K] (or [..., K, M] transposed), b [..., K, N] (or [..., N, K]), bias [N] or absent
             -> y [..., M, N]; the leading axes broadcast
    Raises:  ShapeError if the sizes or the types do not fit.
    """
    m, _, n = matrix_sizes(inputs, a)
    x, y = need("matmul", "a", inputs[0]), need("matmul", "b", inputs[1])
    bias = inputs[2] if len(inputs) > 2 else None
    hybrid = x.dtype.is_float and is_stored(y)
    if not hybrid and (x.dtype.is_float or y.dtype.is_float) and x.dtype is not y.dtype:
        raise ShapeError(f"matmul: a is {x.dtype} and b is {y.dtype}; both must have the same type")
    if bias is not None and bias.shape != (n,):
        raise ShapeError(f"matmul: bias {bias.shape} needs shape {(n,)}")
    if a.activation is Activation.PRELU:
        raise ShapeError("matmul: activation prelu needs a slope, which matmul does not have")
    shape = (*broadcast("matmul", x.shape[:-2], y.shape[:-2]), m, n)
    return (TensorType(shape, *a.out_type) if a.out_type else TensorType(shape, x.dtype),)


def cost(inputs: Inputs, outputs: Sequence[TensorType], a: MatmulAttrs) -> Cost:
    """Two operations for each product of two elements."""
    return Cost(2 * matrix_sizes(inputs, a)[1] * outputs[0].size, moved_bytes(inputs, outputs))


def _case(
    label: str, a: tuple[int, ...], b: tuple[int, ...], bias: int = 0, weights: bool = True, **attrs: object
) -> Case:
    inputs = (TensorType(a), TensorType(b), *((TensorType((bias,)),) if bias else ()))
    constant = tuple(range(1, len(inputs))) if weights else ()
    return Case(label, inputs, MatmulAttrs(**attrs), constant=constant)  # type: ignore[arg-type]


def _bytes_case(label: str, a: tuple[int, ...], b: tuple[int, ...], axis: int, bias: int = 0, **attrs: object) -> Case:
    """Float data and 8-bit weights with a scale for each column."""
    scales = tuple(0.00006 + 0.000011 * (i % 7) for i in range(b[axis]))
    w = TensorType(b, DType.INT8, Quantization(scales, (0,) * len(scales), axis))
    case = _case(label, a, b, bias, **attrs)  # type: ignore[arg-type]
    return dataclasses.replace(case, inputs=(case.inputs[0], w, *case.inputs[2:]), low=-127, high=127)


def _short_case(label: str, a: tuple[int, ...], b: tuple[int, ...], **attrs: bool) -> Case:
    """Two matrices of int16."""
    x, y = (TensorType(shape, DType.INT16, Quantization((scale,), (0,))) for shape, scale in ((a, 3e-4), (b, 7e-4)))
    made = MatmulAttrs(out_type=(DType.INT16, Quantization((0.0031,), (0,))), **attrs)  # type: ignore[arg-type]
    return Case(label, (x, y), made, low=-32768, high=32767)


_MANY_BYTES = quantized_conv_case("int8, many products", (70, 3, 4), (70, 4, 5), DType.INT8, None, 5, MatmulAttrs)


MATMUL = declare(
    Op(
        "matmul", MatmulAttrs, infer, cost, DOT_PRODUCT,
        (
            _case("matrix", (8, 16), (16, 12)),
            _case("odd sizes", (5, 7), (7, 3)),
            _case("fully connected", (1, 33), (20, 33), 20, transpose_b=True),
            _case("fully connected, batch and rank 3", (2, 3, 8), (7, 8), 7, transpose_b=True,
                activation=Activation.RELU),
            _case("relu6, both bounds", (6, 24), (24, 8), 8, activation=Activation.RELU6),
            _case("sigmoid", (2, 8), (8, 5), 5, activation=Activation.SIGMOID),
            _case("tanh", (2, 8), (8, 5), activation=Activation.TANH),
            _case("transposed a", (7, 5), (7, 6), transpose_a=True),
            _case("both transposed", (9, 4), (8, 9), transpose_a=True, transpose_b=True),
            _case("two variables", (3, 8), (8, 8), weights=False),
            _case("two variables, transposed b, batch", (2, 4, 5), (2, 3, 5), weights=False, transpose_b=True),
            _case("batch broadcast both ways", (2, 1, 3, 4), (5, 4, 6), weights=False),
            _case("one row, one column", (1, 9), (9, 1)),
            _case("inner size one", (4, 1), (1, 6)),
            _case("large", (40, 70), (70, 50), 50),
            _bytes_case("8-bit weights", (2, 17, 64), (64, 48), 1, 48, activation=Activation.RELU),
            _bytes_case("8-bit weights, transposed, odd sizes", (5, 37), (13, 37), 0, transpose_b=True),
            _bytes_case("8-bit weights, one row, a long sum", (1, 640), (640, 20), 1),
            quantized_conv_case("uint8, fully connected", (3, 40), (24, 40), DType.UINT8, None, 24,
                MatmulAttrs, transpose_b=True, activation=Activation.RELU),
            short_conv_case("int16, fully connected", (3, 300), (7, 300), 0, 7, MatmulAttrs, transpose_b=True),
            _short_case("int16, batches", (2, 1, 3, 9), (4, 9, 5)),
            _short_case("int16, both transposed", (9, 4), (5, 9), transpose_a=True, transpose_b=True),
            _short_case("int16, many products", (70, 2, 3), (70, 3, 2)),
            _case("many products", (13, 6, 3, 5), (6, 5, 9), weights=False),
            _MANY_BYTES, dataclasses.replace(_MANY_BYTES, label="int8, many variable products", constant=(2,)),
            quantized_conv_case("int8, a scale for each row, odd sizes", (2, 33), (7, 33), DType.INT8, 0, 7,
                MatmulAttrs, transpose_b=True),
        ),
        types=PRODUCT,
    )
)  # fmt: skip
