"""Cases that reach the shaders which no operator's own case reaches."""

from __future__ import annotations

from typing import Any

from webinfer.dtypes import DType
from webinfer.graph.ir import Case, Op, Quantization, TensorType
from webinfer.ops import OPS
from webinfer.ops.activation import Activation
from webinfer.ops.conv import Conv2dAttrs, quantized_conv_case
from webinfer.ops.detection import SsdDetectionsAttrs
from webinfer.ops.elementwise import BinaryAttrs, CastAttrs, UnaryAttrs
from webinfer.ops.matmul import MatmulAttrs
from webinfer.ops.movement import PadAttrs
from webinfer.ops.normalization import LayerNormAttrs
from webinfer.ops.pool import Pool2dAttrs
from webinfer.ops.reduce import ArgAttrs, ReduceAttrs
from webinfer.ops.softmax import SoftmaxAttrs

_LONG = TensorType((3, 1024))
_WIDE = (2.0**40, -(2.0**40), 5.0, -5.0, 2.0**33, -1.0, 0.0)
_SHORTS = TensorType((3, 21), DType.INT16, Quantization((0.01,), (0,)))


def _reduced(name: str, type: TensorType = _LONG, low: float = -3.0, high: float = 3.0) -> tuple[Op, Case]:
    return OPS[name], Case(f"a workgroup a row, {type.dtype}", (type,), ReduceAttrs((1,)), low=low, high=high)


def _norm(depth: int, centred: bool = True) -> tuple[Op, Case]:
    types = TensorType((3, depth)), TensorType((depth,)), TensorType((depth,))
    label = f"{'rows' if centred else 'root mean square of rows'} of {depth}"
    return OPS["layer_norm"], Case(label, types, LayerNormAttrs(1, 1e-5, centred), low=-1, high=5, constant=(1, 2))


_SHORT_TYPE = (DType.INT16, Quantization((0.03,), (7,)))
_SHORTS_OUT = CastAttrs(DType.INT16, Quantization((0.03,), (7,)))
_IMAGE = TensorType((2, 12, 13, 8))
_ROWS = (TensorType((3, 128)), TensorType((40, 128)))
_FLOAT16 = (TensorType((3, 8), DType.FLOAT16), TensorType((8, 5), DType.FLOAT16))


def _clamped(label: str, dtype: DType, low: float, values: tuple[float, ...]) -> tuple[Op, Case]:
    attrs = UnaryAttrs(low, 2.0**34)
    return OPS["clamp"], Case(label, (TensorType((len(values),), dtype),), attrs, values={0: values})


def _conv(
    label: str, x: tuple[int, ...], w: tuple[int, ...], dtype: DType = DType.FLOAT32, **attrs: Any
) -> tuple[Op, Case]:
    """A convolution of real numbers, or of uint8 with a scale for all."""
    op = OPS["depthwise_conv2d" if w[0] == 1 and w[3] == x[3] != 1 else "conv2d"]
    channels = w[3] if op.name == "depthwise_conv2d" else w[0]
    if dtype is DType.UINT8:
        return op, quantized_conv_case(label, x, w, dtype, None, channels, Conv2dAttrs, **attrs)
    inputs = (TensorType(x, dtype), TensorType(w, dtype), TensorType((channels,), dtype))
    return op, Case(label, inputs, Conv2dAttrs(**attrs), low=-1, high=1, constant=(1, 2))


_TOUCHING = (TensorType((1, 4, 4)), TensorType((1, 4, 1)), TensorType((1,)))
_SAME = {"pads": (1, 1, 1, 1)}
# Maps so large that tiles of four pixels are chosen, widths that tiles do not divide.
TILED = (
    _conv("many pixels", (1, 19, 21, 8), (16, 1, 1, 8), activation=Activation.RELU6),
    _conv("many pixels, uint8", (1, 19, 21, 8), (16, 1, 1, 8), DType.UINT8),
    _conv("many pixels, float16", (1, 19, 21, 8), (16, 1, 1, 8), DType.FLOAT16),
    _conv("many pixels, half a tile of columns", (2, 11, 13, 8), (12, 1, 1, 8)),
    _conv("many pixels, 3x3", (1, 19, 21, 8), (12, 3, 3, 8), **_SAME),
    _conv("picture", (2, 19, 22, 3), (8, 3, 3, 3), stride=(2, 2), pads=(0, 1, 0, 1)),
    _conv("picture, uint8", (1, 18, 22, 3), (8, 3, 3, 3), DType.UINT8, dilation=(1, 2), pads=(1, 1, 2, 2)),
    _conv("one output channel", (2, 9, 10, 8), (1, 3, 3, 8), **_SAME),
    _conv("three output channels, stride 2", (1, 9, 11, 4), (3, 3, 3, 4), stride=(2, 2), pads=(0, 1, 1, 0)),
    _conv("two output channels, uint8", (1, 9, 11, 4), (2, 3, 3, 4), DType.UINT8, **_SAME),
    _conv("three output channels, float16", (1, 5, 6, 4), (3, 1, 1, 4), DType.FLOAT16),
    _conv("many pixels", (1, 17, 19, 16), (1, 3, 3, 16), activation=Activation.RELU, **_SAME),
    _conv("many pixels, 5x5, uint8", (1, 17, 19, 16), (1, 5, 5, 16), DType.UINT8, pads=(2, 2, 2, 2)),
    _conv("many pixels, stride 2", (2, 17, 19, 16), (1, 3, 3, 16), stride=(2, 2), pads=(0, 1, 0, 1)),
    _conv("many pixels, dilated", (1, 17, 19, 16), (1, 3, 3, 16), dilation=(2, 3), pads=(2, 2, 3, 3)),
)


def _matmul(label: str, rows: int, inner: int, columns: int, **attrs: Any) -> tuple[Op, Case]:
    b = (columns, inner) if attrs.get("transpose_b") else (inner, columns)
    inputs = (TensorType((rows, inner)), TensorType(b))
    return OPS["matmul"], Case(label, inputs, MatmulAttrs(**attrs), constant=(1,), low=-1, high=1)


def _batches(
    label: str, x: tuple[int, ...], y: tuple[int, ...], dtype: DType = DType.FLOAT32, **attrs: Any
) -> tuple[Op, Case]:
    return OPS["matmul"], Case(
        label, (TensorType(x, dtype), TensorType(y, dtype)), MatmulAttrs(**attrs), low=-1, high=1
    )


# Sums that a whole workgroup may share, of every length that one suits; rows and channels that nothing divides.
GEMV = (
    _conv("a pixel, odd channels", (1, 1, 1, 260), (13, 1, 1, 260), activation=Activation.RELU),
    _conv("a pixel, float16", (1, 1, 1, 320), (10, 1, 1, 320), DType.FLOAT16),
    _conv("a pixel, uint8", (1, 1, 1, 296), (12, 1, 1, 296), DType.UINT8),
    _conv("a pixel, uint8, odd channels", (1, 1, 1, 296), (7, 1, 1, 296), DType.UINT8),
    _conv("a whole image", (1, 3, 3, 32), (9, 3, 3, 32)),
    _conv("small map, 3x3", (1, 4, 4, 32), (20, 3, 3, 32), stride=(1, 2), dilation=(2, 1), pads=(2, 2, 1, 1)),
    _conv("small map", (2, 3, 3, 520), (21, 1, 1, 520)),
    _matmul("one row", 1, 1284, 45),
    _matmul("one row, transposed", 1, 1284, 44, transpose_b=True, activation=Activation.SIGMOID),
    _matmul("five rows", 5, 1100, 9, transpose_b=True),
)
# Small maps and long sums, which invocations share on real hardware.
LONG_SUMS = (
    _conv("long sum", (1, 3, 3, 96), (20, 1, 1, 96), activation=Activation.RELU),
    _conv("long sum, odd channels", (2, 2, 3, 64), (13, 1, 1, 64)),
    _conv("long sum, 3x3 stride 2", (1, 5, 6, 16), (36, 3, 3, 16), stride=(2, 2), pads=(1, 1, 0, 1)),
    _conv("long sum, uint8", (1, 3, 3, 96), (36, 1, 1, 96), DType.UINT8),
    _conv("long sum, uint8, odd channels", (1, 3, 3, 64), (7, 1, 1, 64), DType.UINT8),
    _conv("long sum, float16", (1, 2, 3, 64), (12, 1, 1, 64), DType.FLOAT16),
    (OPS["matmul"], Case("long sum", _ROWS, MatmulAttrs(transpose_b=True), constant=(1,), low=-1, high=1)),
    _batches("long sums in batches", (2, 3, 5, 45), (2, 3, 45, 12), activation=Activation.RELU),
    _batches("long sums in batches, transposed", (2, 1, 37, 7), (2, 3, 8, 37), transpose_a=True, transpose_b=True),
    _batches("tiles in batches", (5, 33, 20), (5, 20, 36)),
    _batches("tiles in batches, odd", (2, 2, 33, 21), (2, 1, 35, 21), transpose_b=True, activation=Activation.RELU6),
    _batches("tiles in batches, transposed, odd", (3, 22, 37), (3, 22, 66), transpose_a=True),
    _batches("tiles in batches, float16", (3, 40, 12), (3, 12, 44), DType.FLOAT16),
    _batches("tiles in batches, float16, odd", (3, 40, 11), (3, 11, 43), DType.FLOAT16),
    *GEMV,
    (OPS["softmax"], Case("a short line", (TensorType((3, 37, 5)),), SoftmaxAttrs(1, 0.7), low=-40, high=40)),
    (OPS["reduce_mean"], Case("a short row", (TensorType((5, 44)),), ReduceAttrs((1,)))),
    (OPS["average_pool2d"], Case("whole large image", (_IMAGE,), Pool2dAttrs((12, 13)))),
    (OPS["max_pool2d"], Case("whole large image", (_IMAGE,), Pool2dAttrs((12, 13)), low=-9, high=-1)),
    (OPS["reduce_mean"], Case("whole large image", (TensorType((2, 12, 13, 12)),), ReduceAttrs((1, 2), True))),
    (OPS["reduce_log_sum_exp"], Case("long columns", (TensorType((200, 4)),), ReduceAttrs((0,)))),
)  # fmt: skip


def _tree(
    label: str, name: str, shape: tuple[int, ...], axes: tuple[int, ...], dtype: DType = DType.FLOAT32,
    low: float = -3.0, high: float = 3.0, keep: bool = False,
) -> tuple[Op, Case]:  # fmt: skip
    return OPS[name], Case(label, (TensorType(shape, dtype),), ReduceAttrs(axes, keep), low=low, high=high)


_BYTES = Quantization((0.05,), (3,))
# Results of so many elements that one workgroup, or one invocation, should not make them alone.
TREES = (
    *(
        _tree("parts of rows", f"reduce_{name}", (3, 9001), (1,), low=0.1)
        for name in ("l1", "l2", "log_sum", "log_sum_exp", "mean", "sum_square")
    ),
    _tree("parts of a product", "reduce_product", (2, 5000), (1,), low=0.9999, high=1.0001),
    _tree("parts of columns", "reduce_mean", (1, 300, 301, 3), (1, 2), keep=True),
    _tree("parts of columns in quads", "reduce_mean", (1, 130, 131, 8), (1, 2)),
    _tree("parts of rows in quads", "reduce_sum", (2, 90000), (1,)),
    _tree("parts, axes apart, squares", "reduce_l2", (90, 3, 100), (0, 2)),
    _tree("parts of everything", "reduce_max", (70, 1, 1001), (0, 1, 2), low=-9, high=-1),
    _tree("parts of int8", "reduce_max", (2, 9003), (1,), DType.INT8, -100, -3),
    _tree("parts of float16", "reduce_mean", (3, 9001), (1,), DType.FLOAT16),
    _tree("parts of int32", "reduce_sum", (5000, 6), (0,), DType.INT32, -1000, 1000),
    (OPS["arg_max"], Case("a line that one invocation cannot walk", (TensorType((1, 70001)),), ArgAttrs(1))),
    _tree("parts of truths", "reduce_any", (2, 5000), (1,), DType.BOOL),
    (OPS["reduce_mean"], Case("parts of stored integers", (TensorType((1, 99, 101, 5), DType.INT8, _BYTES),),
        ReduceAttrs((1, 2), False, (DType.INT8, Quantization((0.002,), (-7,)))), low=-128, high=127)),
)  # fmt: skip
_INTS = TensorType((2, 1028), DType.INT32)
_OF_INTS = ("sum", "max", "min", "product")
_BOOLS = TensorType((77, 8), DType.BOOL)
_ODD_ONE = tuple(i == 600 for i in range(77 * 8))  # in the first column, in the last row but one
_SHAPES = ((3, 260), (2, 1028), (1, 4100))  # rows that workgroups do not divide; the first is shorter than two of them


def _any_length(name: str, low: float = -2, high: float = 2) -> list[tuple[Op, Case]]:
    """A reduction of rows and of columns of several lengths."""
    rows = [Case(f"rows {s}", (TensorType(s),), ReduceAttrs((1,)), low=low, high=high) for s in _SHAPES]
    columns = Case("columns", (TensorType((2, 77, 12)),), ReduceAttrs((1,)), low=low, high=high)
    return [(OPS[name], case) for case in (*rows, columns)]


_LINE = TensorType((2, 300))
_NAN = float("nan")
_ODD_FLOATS = {  # both lines, elements that differ from the rest
    "ties": ((7, 3.0), (270, 3.0), (299, 3.0), (301, -3.0), (500, -3.0), (560, 3.0)),
    "NaN": ((9, 4.0), (131, _NAN), (200, _NAN), (310, -4.0), (599, _NAN)),
    "infinities and zeros": ((0, -0.0), (1, 0.0), (90, float("inf")), (95, float("-inf")), (400, float("-inf"))),
}


def _odd_floats(label: str) -> tuple[float, ...]:
    odd = dict(_ODD_FLOATS[label])
    return tuple(odd.get(i, 0.0) for i in range(600))


def _positions(name: str) -> list[tuple[Op, Case]]:
    """Extremes of long lines: where they lie, in all kinds of numbers."""
    op = OPS[name]
    shapes = ((1, 1001), (5, 257), (3, 512))
    cases = [Case(f"long lines {shape}", (TensorType(shape),), ArgAttrs(1), low=-2, high=2) for shape in shapes]
    cases += [Case(label, (_LINE,), ArgAttrs(1), values={0: _odd_floats(label)}) for label in _ODD_FLOATS]
    cases += [
        Case(f"long lines of {dtype}", (TensorType((3, 400), dtype),), ArgAttrs(1), low=low, high=high)
        for dtype, low, high in (
            (DType.INT32, -(2**31), 2**31 - 1), (DType.UINT8, 0, 255), (DType.INT8, -128, 127),
            (DType.FLOAT16, -9, 9),
        )
    ]  # fmt: skip
    return [(op, case) for case in (*cases, Case("long middle axis", (TensorType((2, 300, 3)),), ArgAttrs(1)))]


# Reductions that a workgroup shares.
SHARED = (
    *_any_length("reduce_sum"),
    *_any_length("reduce_mean"),
    *_any_length("reduce_max", -9, -1),
    *_any_length("reduce_min", 1, 9),
    *_any_length("reduce_product", 0.99, 1.01),
    *_any_length("reduce_l1"),
    *_any_length("reduce_l2"),
    *_any_length("reduce_log_sum", 1, 2),
    *_any_length("reduce_log_sum_exp", -30, 30),
    *_any_length("reduce_sum_square"),
    *_positions("arg_max"),
    *_positions("arg_min"),
    *((OPS[f"reduce_{name}"], Case("integers", (_INTS,), ReduceAttrs((1,)), low=-9, high=9)) for name in _OF_INTS),
    (OPS["reduce_any"], Case("columns", (_BOOLS,), ReduceAttrs((0,)), values={0: _ODD_ONE})),
    (OPS["reduce_all"], Case("columns", (_BOOLS,), ReduceAttrs((0,)), values={0: tuple(not b for b in _ODD_ONE)})),
    *(
        (OPS[name], Case(f"depth {depth}", (TensorType((5, depth, 2)),), SoftmaxAttrs(1), low=-20, high=20))
        for name in ("softmax", "log_softmax")
        for depth in (256, 257, 1001)
    ),
)
EXTRA: tuple[tuple[Op, Case], ...] = (
    *SHARED,
    _reduced("reduce_sum"),
    _reduced("reduce_mean"),
    _reduced("reduce_max", low=-9, high=-1),
    _reduced("reduce_min", low=1, high=9),
    _reduced("reduce_product", low=0.99, high=1.01),
    _reduced("reduce_log_sum_exp"),
    _reduced("reduce_l2"),
    _reduced("reduce_sum", TensorType((2, 4096), DType.INT32), -99, 99),
    (OPS["abs"], Case("int64", (TensorType((3, 5), DType.INT64),), UnaryAttrs())),
    (OPS["add"], Case("uint64", (TensorType((3, 5), DType.UINT64),) * 2, BinaryAttrs(), low=0)),
    _clamped("int64, both words", DType.INT64, -(2.0**35), _WIDE),
    _clamped("uint64, both words", DType.UINT64, 6.0, (0, 2.0**40, 7, 2.0**34)),
    (OPS["quantize"], Case("int16 to another scale", (_SHORTS,), _SHORTS_OUT, low=-32768, high=32767)),
    (OPS["sub"], Case("int16", (_SHORTS, _SHORTS), BinaryAttrs(out_type=_SHORT_TYPE), low=-32768, high=32767)),
    (OPS["pad"], Case("mirrored, several workgroups", (_IMAGE,), PadAttrs((0, 2, 3, 0), (0, 1, 2, 0), mode="reflect"))),
    (OPS["sign"], Case("unsigned", (TensorType((7,), DType.UINT32),), UnaryAttrs(), low=0, high=2)),
    *(_norm(depth) for depth in (700, 1200, 8300)),
    _norm(1200, centred=False),
    (OPS["softmax"], Case("long middle axis", (TensorType((2, 300, 3)),), SoftmaxAttrs(1))),
    (OPS["softmax"], Case("float16", (TensorType((3, 9), DType.FLOAT16),), SoftmaxAttrs(1))),
    (
        OPS["ssd_detections"],
        Case(
            "an overlap at the limit",
            _TOUCHING,
            SsdDetectionsAttrs(32, ((16, 1),), 4, 0.5, suppression=0.5),
            values={0: (0, 0, 16, 16, -16, -4, 16, 8, 0, 0, 2, 2, 0, 0, 2, 2), 1: (3, 2, 1, -9), 2: (0,)},
        ),
    ),
    *TILED,
    *LONG_SUMS,
    *TREES,
    (
        OPS["matmul"],
        Case("many rows", (TensorType((1027, 128)), TensorType((128, 260))), MatmulAttrs(), low=-1, high=1),
    ),
    (OPS["matmul"], Case("float16, odd columns", _FLOAT16, MatmulAttrs(), constant=(1,), low=-1, high=1)),
)
