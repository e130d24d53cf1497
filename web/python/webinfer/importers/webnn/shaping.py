"""WebNN operators that move, choose or convert elements."""

from __future__ import annotations

from webinfer.dtypes import DType
from webinfer.errors import ShapeError, UnsupportedOpError
from webinfer.graph.ir import Value
from webinfer.importers.webnn.reader import DTYPES, Call, Handler, Reader
from webinfer.ops import elementwise as ew
from webinfer.ops import gather as gather_ops
from webinfer.ops import movement, pattern, scan
from webinfer.ops.registry import NoAttrs

PAD_MODES = {"constant": "constant", "edge": "edge", "reflection": "reflect", "symmetric": "symmetric"}


def cast(r: Reader, c: Call) -> Value:
    dtype = DTYPES.get(str(c.need("type")))
    if dtype is None:
        raise UnsupportedOpError([f"cast to {c.need('type')}"])
    return r.emit(ew.CAST, [r.value(c, "input")], ew.CastAttrs(dtype))


def concat(r: Reader, c: Call) -> Value:
    return r.emit(movement.CONCAT, r.named(c, c.need("inputs")), movement.ConcatAttrs(c.need("axis")))


def expand(r: Reader, c: Call) -> Value:
    return r.emit(movement.EXPAND, [r.value(c, "input")], movement.ExpandAttrs(tuple(c.need("newShape"))))


def gather(r: Reader, c: Call) -> Value:
    return r.emit(
        gather_ops.GATHER, [r.value(c, "input"), r.value(c, "indices")], gather_ops.GatherAttrs(c.get("axis", 0))
    )


def gather_elements(r: Reader, c: Call) -> Value:
    inputs = [r.value(c, "input"), r.value(c, "indices")]
    return r.emit(gather_ops.GATHER_ELEMENTS, inputs, gather_ops.ElementsAttrs(c.get("axis", 0)))


def gather_nd(r: Reader, c: Call) -> Value:
    return r.emit(gather_ops.GATHER_ND, [r.value(c, "input"), r.value(c, "indices")], gather_ops.GatherNdAttrs())


def scatter_elements(r: Reader, c: Call) -> Value:
    inputs = [r.value(c, name) for name in ("input", "indices", "updates")]
    return r.emit(gather_ops.SCATTER_ELEMENTS, inputs, gather_ops.ElementsAttrs(c.get("axis", 0)))


def scatter_nd(r: Reader, c: Call) -> Value:
    inputs = [r.value(c, name) for name in ("input", "indices", "updates")]
    return r.emit(gather_ops.SCATTER_ND, inputs, gather_ops.ScatterNdAttrs())


def pad(r: Reader, c: Call) -> Value:
    mode = PAD_MODES.get(c.get("mode", "constant"))
    if mode is None:
        raise ShapeError(f"pad mode {c.get('mode')!r} is not one of {sorted(PAD_MODES)}")
    attrs = movement.PadAttrs(
        tuple(c.need("beginningPadding")), tuple(c.need("endingPadding")), c.get("value", 0), mode
    )
    return r.emit(movement.PAD, [r.value(c, "input")], attrs)


def reshape(r: Reader, c: Call) -> Value:
    return r.emit(movement.RESHAPE, [r.value(c, "input")], movement.ReshapeAttrs(tuple(c.need("newShape"))))


def reverse(r: Reader, c: Call) -> Value:
    x = r.value(c, "input")
    axes = c.get("axes", range(x.type.rank))
    return r.emit(movement.REVERSE, [x], movement.ReverseAttrs(tuple(axes)))


def slice_(r: Reader, c: Call) -> Value:
    """`sizes` is the window; with strides, the result is shorter."""
    x, starts, windows = r.value(c, "input"), tuple(c.need("starts")), c.need("sizes")
    steps = tuple(c.get("strides", [1] * x.type.rank))
    sizes = tuple(-(-window // step) for window, step in zip(windows, steps, strict=True))
    return r.emit(movement.SLICE, [x], movement.SliceAttrs(starts, sizes, steps))


def split(r: Reader, c: Call) -> list[Value]:
    x, axis, splits = r.value(c, "input"), c.get("axis", 0), c.need("splits")
    if not 0 <= axis < x.type.rank:
        raise ShapeError(f"axis {axis} is not an axis of {x.type.shape}")
    if isinstance(splits, int):
        if splits < 1 or x.type.shape[axis] % splits:
            raise ShapeError(f"{x.type.shape[axis]} elements do not split into {splits} equal parts")
        splits = [x.type.shape[axis] // splits] * splits
    if sum(splits) != x.type.shape[axis]:
        raise ShapeError(f"parts {splits} do not add up to {x.type.shape[axis]}")
    starts = [sum(splits[:i]) for i in range(len(splits))]
    return [r.part(x, axis, start, size) for start, size in zip(starts, splits, strict=True)]


def tile(r: Reader, c: Call) -> Value:
    return r.emit(movement.TILE, [r.value(c, "input")], movement.TileAttrs(tuple(c.need("repetitions"))))


def transpose(r: Reader, c: Call) -> Value:
    x = r.value(c, "input")
    perm = c.get("permutation", range(x.type.rank)[::-1])
    return r.emit(movement.TRANSPOSE, [x], movement.TransposeAttrs(tuple(perm)))


def triangular(r: Reader, c: Call) -> Value:
    attrs = pattern.TriangularAttrs(c.get("upper", True), c.get("diagonal", 0))
    return r.emit(pattern.TRIANGULAR, [r.value(c, "input")], attrs)


def cumulative_sum(r: Reader, c: Call) -> Value:
    attrs = scan.CumulativeSumAttrs(c.need("axis"), c.get("exclusive", False), c.get("reversed", False))
    return r.emit(scan.CUMULATIVE_SUM, [r.value(c, "input")], attrs)


def where(r: Reader, c: Call) -> Value:
    condition = r.cast(r.value(c, "condition"), DType.BOOL)
    return r.emit(ew.WHERE, [condition, r.value(c, "trueValue"), r.value(c, "falseValue")], NoAttrs())


def _blocks(r: Reader, x: Value, shape: tuple[int, ...]) -> Value:
    """A scale or zero point spread over blocks, so that it has the shape of the tensor or broadcasts."""
    padded = (1,) * (len(shape) - x.type.rank) + x.type.shape
    if all(s in (1, d) for s, d in zip(padded, shape, strict=True)):
        return x
    if any(d % s for s, d in zip(padded, shape, strict=True)):
        raise ShapeError(f"blocks of {x.type.shape} do not divide {shape}")
    split = [n for s in padded for n in (s, 1)]
    spread = [n for s, d in zip(padded, shape, strict=True) for n in (s, d // s)]
    blocks = r.emit(movement.EXPAND, [r.reshape(x, split)], movement.ExpandAttrs(tuple(spread)))
    return r.reshape(blocks, shape)


def dequantize(r: Reader, c: Call) -> Value:
    """(input - zero point) * scale; the difference is exact."""
    x, scale, zero = (r.value(c, name) for name in ("input", "scale", "zeroPoint"))
    shape = x.type.shape
    exact = DType.INT32 if x.type.dtype is DType.INT32 else scale.type.dtype
    difference = r.emit(ew.SUB, [r.cast(x, exact), r.cast(_blocks(r, zero, shape), exact)], ew.BinaryAttrs())
    return r.emit(ew.MUL, [r.cast(difference, scale.type.dtype), _blocks(r, scale, shape)], ew.BinaryAttrs())


def quantize(r: Reader, c: Call) -> Value:
    """clamp(round(input / scale) + zero point)"""
    x, scale, zero = (r.value(c, name) for name in ("input", "scale", "zeroPoint"))
    shape, dtype = x.type.shape, zero.type.dtype
    quotient = r.emit(ew.DIV, [x, _blocks(r, scale, shape)], ew.BinaryAttrs())
    offset = r.cast(_blocks(r, zero, shape), x.type.dtype)
    shifted = r.emit(ew.ADD, [r.unary(ew.ROUND_EVEN, quotient), offset], ew.BinaryAttrs())
    return r.emit(ew.CAST, [r.unary(ew.CLAMP, shifted, *map(float, dtype.range))], ew.CastAttrs(dtype))


HANDLERS: dict[str, Handler] = {
    "cast": cast, "concat": concat, "cumulativeSum": cumulative_sum, "dequantizeLinear": dequantize, "expand": expand,
    "gather": gather, "gatherElements": gather_elements, "gatherND": gather_nd, "pad": pad, "quantizeLinear": quantize,
    "reshape": reshape, "reverse": reverse, "scatterElements": scatter_elements, "scatterND": scatter_nd,
    "slice": slice_, "split": split, "tile": tile, "transpose": transpose, "triangular": triangular, "where": where,
}  # fmt: skip
