"""ONNX's resampling: where each output samples is computed while the model is read.

Images resampled as a kernel of the engine does it become that kernel. Everything else is said axis by axis: elements
gathered at each tap, weighted and summed.

Source:  onnx v1.23, Resize-19 and onnx/reference/ops/op_resize.py
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from webinfer.dtypes import DType, round_to_f32
from webinfer.graph.dims import Size
from webinfer.graph.ir import Value
from webinfer.importers.core.limits import MAX_READ, check_bytes, within
from webinfer.importers.onnx.layouts import Arranged, arranged, channels_last
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.lazy_dataclass import dataclass
from webinfer.ops import elementwise as ew
from webinfer.ops import gather, resize
from webinfer.ops import movement as mv

PLACES = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize",
)  # fmt: skip
ROUNDINGS = {
    "round_prefer_floor": lambda x: math.ceil(x - 0.5), "round_prefer_ceil": lambda x: math.floor(x + 0.5),
    "floor": math.floor, "ceil": math.ceil,
}  # fmt: skip
SHORT = 8  # elements of an axis that stands for longer ones
POLICIES = ("stretch", "not_larger", "not_smaller")


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis: its sizes, how much larger it gets, and the part of it that is sampled."""

    size: int
    out: int
    stretch: float | None  # None: what brings one size to the other
    start: float = 0.0
    end: float = 1.0

    @property
    def scale(self) -> float:
        """How much larger it gets."""
        return self.out / self.size if self.stretch is None else self.stretch

    def at(self, o: int, place: str) -> float:
        """Where output o samples the input: in float32 and in the runtime's order, as ties decide what is nearest."""
        f, last = round_to_f32, self.size - 1
        scale, start, end = f(self.scale), f(self.start), f(self.end)
        if place == "align_corners":
            return 0.0 if self.out == 1 else f(f(o * last) / (self.out - 1))
        if place == "asymmetric":
            return f(o / scale)
        if place == "tf_crop_and_resize":
            if self.out == 1:
                return f(0.5 * f(start + end) * last)
            return f(f(start * last) + f(f(o * f(end - start)) * last) / (self.out - 1))
        if place == "pytorch_half_pixel" and self.out == 1:
            return 0.0
        centre = f((o + 0.5) / scale)
        if place == "half_pixel_symmetric":
            kept = f(self.out / f(scale * self.size))
            centre = f(f(self.size / 2 * f(1 - kept)) + centre)
        return f(centre - 0.5)


def _weights(mode: str, ratio: float, a: float, shrink: float) -> list[tuple[int, float]]:
    """(distance from the element before, weight) of each tap of a sample that lies `ratio` behind that element."""
    reach = 1 if mode == "linear" else 2
    first = math.floor(-reach / shrink) + 1
    taps = []
    for i in range(first, first + 2 - 2 * first):
        d = abs(i - ratio) * shrink
        if mode == "linear":
            w = max(1 - d, 0.0)
        elif d <= 1:
            w = ((a + 2) * d - (a + 3)) * d * d + 1
        else:
            w = (((d - 5) * d + 8) * d - 4) * a if d < 2 else 0.0
        taps.append((i, w))
    return taps


def _taps(op: Operation, axis: Axis, mode: str, place: str) -> list[list[tuple[int, float]]]:
    """For each output its taps: position and weight, positions inside the axis."""
    a, outside = op.real("cubic_coeff_a", -0.75), bool(op.whole("exclude_outside", 0))
    shrink = min(axis.scale, 1.0) if op.whole("antialias", 0) else 1.0
    rows = []
    for o in range(axis.out):
        x = axis.at(o, place)
        before = math.floor(x)
        if before == x:  # as the definition has it: the element itself is the second of the two in the middle
            before -= 1
        taps = [(before + i, w) for i, w in _weights(mode, x - before, a, shrink)]
        if outside:
            taps = [(i, w if 0 <= i < axis.size else 0.0) for i, w in taps]
        if outside or shrink < 1.0:
            total = sum(w for _, w in taps)
            if total == 0:
                op.refuse("a sample without weight")
            taps = [(i, w / total) for i, w in taps]
        merged: dict[int, float] = {}
        for i, w in taps:
            near = min(max(i, 0), axis.size - 1)
            merged[near] = merged.get(near, 0.0) + w
        rows.append([(i, w) for i, w in merged.items() if w] or [(0, 0.0)])
    return rows


def _along(op: Operation, x: Value, at: int, rows: Sequence[Sequence[tuple[int, float]]]) -> Value:
    """x with the axis resampled."""
    count, total = max(map(len, rows)), None
    within("taps of a sample", count, 64, "resample in smaller steps")
    shape = [len(rows) if i == at else 1 for i in range(x.type.rank)]
    for k in range(count):
        positions = op.constant([row[k][0] if k < len(row) else 0 for row in rows], DType.INT32)
        weights = [row[k][1] if k < len(row) else 0.0 for row in rows]
        part = op.emit(gather.GATHER, [x, positions], gather.GatherAttrs(at))
        if any(w != 1.0 for w in weights):
            part = op.binary(ew.MUL, part, op.constant(weights, x.type.dtype, shape))
        total = part if total is None else op.binary(ew.ADD, total, part)
    assert total is not None
    return total


def _sizes(op: Operation, shape: Sequence[int]) -> list[Axis]:
    """Every axis of the input as it is resampled."""
    rank = len(shape)
    wanted = [op.axis(a, rank) for a in op.wholes("axes", range(rank)) or ()]
    old = op.opset < 11
    key = 1 if old else 2
    scales = op.reals("scales") if old and op.opset < 9 else _numbers(op, key)
    sizes = op.integers(3) if not old and op.optional(3) is not None else None
    roi = _numbers(op, 1) if not old and op.word("coordinate_transformation_mode", "") == "tf_crop_and_resize" else None
    axes = [Axis(d, d, 1.0) for d in shape]
    given = sizes if sizes is not None else scales
    if not given or len(given) != len(wanted) or (roi is not None and len(roi) != 2 * len(wanted)):
        op.fail(f"sizes {sizes}, scales {scales} or the region do not fit axes {wanted} of {shape}")
    policy = op.chosen("keep_aspect_ratio_policy", POLICIES, "stretch")
    if sizes is not None and policy != "stretch":
        if not all(shape[axis] for axis in wanted):
            op.fail(f"an empty axis of {shape} has no aspect ratio")
        ratios = [s / shape[axis] for s, axis in zip(sizes, wanted, strict=True)]
        scale = min(ratios) if policy == "not_larger" else max(ratios)
        sizes = tuple(math.floor(scale * shape[axis] + 0.5) for axis in wanted)
    for i, axis in enumerate(wanted):
        d = shape[axis]
        ratio = None if sizes is not None and d else math.inf if sizes is not None else float(given[i])
        out = sizes[i] if sizes is not None else math.floor(d * float(given[i]))
        if d == 0 and (sizes is None or out == 0):  # nothing comes to nothing, be it enlarged or not
            continue
        if out < 1 or (ratio is not None and (not ratio > 0 or not math.isfinite(ratio))):
            op.fail(f"axis {axis} of {d} cannot be resized by {ratio} to {out}")
        within(f"size of axis {axis}", out, MAX_READ, "use a smaller image")
        start, end = (roi[i], roi[i + len(wanted)]) if roi is not None else (0.0, 1.0)
        if sizes is not None and policy != "stretch":
            ratio = scale
        axes[axis] = Axis(d, out, ratio, start, end)
    return axes


def _numbers(op: Operation, key: int) -> tuple[float, ...] | None:
    value = op.optional(key)
    return None if value is None or value.type.size == 0 else tuple(map(float, op._constants(key)))


def _resize(op: Operation) -> Value:
    old = op.opset < 11
    mode = op.chosen("mode", ("nearest", "linear", "cubic", "bilinear"), "nearest")
    mode = "linear" if mode == "bilinear" else mode
    place = "asymmetric" if old else op.chosen("coordinate_transformation_mode", PLACES, "half_pixel")
    x, dtype = op.arranged(0), op.kind
    axes = _sizes(op, x.shape)
    shape = tuple(axis.out for axis in axes)
    check_bytes(shape, dtype, op.what)
    if not x.value.type.size and not math.prod(shape):
        return op.zeros(shape, x.value.type.dtype)
    changed = [i for i, axis in enumerate(axes) if axis.out != axis.size or axis.scale != 1 or place == PLACES[-1]]
    rounding = "floor" if old else op.chosen("nearest_mode", tuple(ROUNDINGS), "round_prefer_floor")
    if mode == "nearest":
        y = _nearest(op, x, axes, changed, place, rounding)
    elif dtype.is_float:
        y = _interpolated(op, x, axes, changed, mode, place)
    else:
        y = _whole(op, x, axes, changed, mode, place)
    return _extrapolated(op, y, axes, place) if place == PLACES[-1] else y


def _interpolated(
    op: Operation, x: Arranged, axes: Sequence[Axis], changed: Sequence[int], mode: str, place: str
) -> Value:
    if (fast := _bilinear(op, x, axes, changed, mode, place)) is not None:
        return fast
    value = x.value
    for i in changed:
        value = _along(op, value, x.perm[i], _taps(op, axes[i], mode, place))
    return op.view(value, x.perm)


def _whole(op: Operation, x: Arranged, axes: Sequence[Axis], changed: Sequence[int], mode: str, place: str) -> Value:
    """Integers, interpolated as real numbers and cut to whole ones, as the runtime does; rounded if antialiased."""
    if mode != "linear":
        op.refuse(f"{mode} interpolation of {op.kind}")
    real = Arranged(op.cast(x.value, DType.FLOAT32), x.perm)
    y = arranged(_interpolated(op, real, axes, changed, mode, place))
    value = op.unary(ew.ROUND_EVEN, y.value) if op.whole("antialias", 0) else y.value
    return op.view(op.cast(value, x.value.type.dtype), y.perm)


def _extrapolated(op: Operation, y: Value, axes: Sequence[Axis], place: str) -> Value:
    """y with one number where it would sample beyond the image: in front of a range of each axis, and behind it."""
    found = arranged(y)
    inside = [[o for o in range(axis.out) if 0 <= axis.at(o, place) <= axis.size - 1] for axis in axes]
    starts, sizes = [places[0] if places else 0 for places in inside], list(map(len, inside))
    ends = [axis.out - start - size for axis, start, size in zip(axes, starts, sizes, strict=True)]
    if not any(starts) and not any(ends):
        return y
    number, dtype = op.real("extrapolation_value", 0.0), y.type.dtype
    number = number if dtype.is_float else float(min(max(int(number), dtype.range[0]), dtype.range[1]))
    if 0 in sizes:
        return op.expand(op.scalar_of(number, dtype), y.type.shape)
    before, kept, after = map(found.reordered, (starts, sizes, ends))
    part = op.emit(mv.SLICE, [found.value], mv.SliceAttrs(before, kept, (1,) * len(kept)))
    return op.view(op.emit(mv.PAD, [part], mv.PadAttrs(before, after, number)), found.perm)


def _nearest(
    op: Operation, x: Arranged, axes: Sequence[Axis], changed: Sequence[int], place: str, rounding: str
) -> Value:

    def positions(axis: Axis) -> list[int]:
        places = (ROUNDINGS[rounding](axis.at(o, place)) for o in range(axis.out))
        return [min(max(at, 0), axis.size - 1) for at in places]

    short = {i: _shortened(axes[i], place) for i in changed}
    plain = all(positions(a) == [o * a.size // a.out for o in range(a.out)] for a in short.values())
    if len(axes) == 4 and changed and set(changed) <= {2, 3} and plain:
        attrs = resize.ResizeAttrs((axes[2].out, axes[3].out))
        return op.channels_first(op.emit(resize.RESIZE_NEAREST, [op.channels_last()], attrs))
    value = x.value
    for i in changed:
        rows = op.constant(positions(axes[i]), DType.INT32)
        value = op.emit(gather.GATHER, [value, rows], gather.GatherAttrs(x.perm[i]))
    return op.view(value, x.perm)


def _shortened(axis: Axis, place: str) -> Axis:
    """A short axis that samples alike, where the axis is as long as inputs are and grows by a whole factor.

    What is sampled then moves on by one element from each group of outputs to the next.
    """
    size, out = axis.size, axis.out
    if not isinstance(out, Size) or place not in ("half_pixel", "pytorch_half_pixel", "asymmetric") or out == 1:
        return axis
    factor = axis.scale
    if factor != int(factor) or out != size * int(factor):
        return axis
    return Axis(SHORT, SHORT * int(factor), factor)


def _bilinear(
    op: Operation, x: Arranged, axes: Sequence[Axis], changed: Sequence[int], mode: str, place: str
) -> Value | None:
    """The engine's own bilinear resampling, where it samples at the same places."""
    if mode != "linear" or len(axes) != 4 or not changed or not set(changed) <= {2, 3}:
        return None
    if op.whole("antialias", 0) or op.whole("exclude_outside", 0):
        return None
    whole = all(axes[i].stretch is None or axes[i].scale == axes[i].out / axes[i].size for i in (2, 3))
    half = place == "half_pixel" or (place == "pytorch_half_pixel" and all(axes[i].out > 1 for i in changed))
    if not whole or not (half or place in ("align_corners", "asymmetric")):
        return None
    attrs = resize.ResizeAttrs((axes[2].out, axes[3].out), place == "align_corners", half)
    return op.channels_first(op.emit(resize.RESIZE_BILINEAR, [op.like(x, channels_last(4))], attrs))


CONVERTERS: dict[str, Convert] = {
    "Resize": _resize,
    "Upsample": _resize,
}
