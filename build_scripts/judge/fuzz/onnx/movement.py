"""Random nodes that move elements: shapes, slices, gathers, scatters, pads, resizes."""

import math
from typing import Any

import numpy as np

from build_scripts.judge.fuzz.draw import ANY, FLOATS, INTEGERS, MOST, NUMBERS, Draw
from build_scripts.judge.fuzz.graphs import FuzzNode
from build_scripts.judge.fuzz.onnx.elementwise import CODES, Row

INDICES = ("int64", "int32")
_COMBINING = ("add", "mul", "max", "min")  # positions may repeat; else they are unique: the order of writes is open


def _operand_axes(d: Draw, since: int, axes: list[int] | None, name: str = "axes") -> tuple[list[str], dict[str, Any]]:
    """Axes as an operand from an opset on, as an attribute before."""
    if axes is None:
        return [], {}
    return ([d.constant(axes)], {}) if d.version >= since else ([], {name: axes})


def _reshape(d: Draw) -> FuzzNode:
    x = d.value(ANY)
    shape, left = list(d.known(x).shape), d.known(x).size
    if left == 0:
        wanted = shape if d.chance(0.5) else [0, *[1] * d.integer(0, 2)]
        return d.node("Reshape", [x, d.constant(wanted)], allowzero=1 if d.version >= 14 and 0 in wanted else None)
    wanted = []
    while left > 1 and len(wanted) < 4:
        factor = d.pick([n for n in range(1, left + 1) if left % n == 0])
        wanted.append(factor)
        left //= factor
    wanted += [left] if left > 1 or d.chance(0.2) else []
    if wanted and d.chance(0.4):
        wanted[d.integer(0, len(wanted) - 1)] = -1
    same = [i for i, (a, b) in enumerate(zip(shape, wanted, strict=False)) if a == b]
    if same and d.chance(0.4):
        wanted[d.pick(same)] = 0
    return d.node("Reshape", [x, d.constant(wanted)])


def _flatten(d: Draw) -> FuzzNode:
    x = d.value(ANY)
    return d.node("Flatten", [x], axis=d.maybe(d.integer(0 if d.version < 11 else -d.known(x).ndim, d.known(x).ndim)))


def _transpose(d: Draw) -> FuzzNode:
    x = d.value(ANY)
    return d.node("Transpose", [x], perm=d.maybe([int(i) for i in d.rng.permutation(d.known(x).ndim)], 0.85))


def _squeeze(d: Draw) -> FuzzNode:
    x = d.value(ANY, fits=lambda a: 1 in a.shape, make=lambda kind: d.array(kind, (1, d.size(), 1)))
    ones = [i for i, n in enumerate(d.known(x).shape) if n == 1]
    axes = [i if d.chance(0.8) or d.version < 11 else i - d.known(x).ndim for i in ones if d.chance(0.7)]
    inputs, attrs = _operand_axes(d, 13, axes or None)
    return d.node("Squeeze", [x, *inputs], **attrs)


def _unsqueeze(d: Draw) -> FuzzNode:
    x = d.value(ANY, 0, 3)
    rank = d.known(x).ndim + d.integer(1, 2)
    axes = [int(a) for a in d.rng.permutation(rank)[: rank - d.known(x).ndim]]
    axes = [a if d.chance(0.7) or d.version < 11 else a - rank for a in axes]
    inputs, attrs = _operand_axes(d, 13, axes)
    return d.node("Unsqueeze", [x, *inputs], **attrs)


def _concat(d: Draw) -> FuzzNode:
    x = d.value(ANY, 1, 4)
    a, at = d.known(x), d.integer(0, d.known(x).ndim - 1)
    names = [x]
    for _ in range(d.integer(0, 3)):
        if d.chance(0.15):
            names.append(x)
            continue
        found = d.fitting(
            (a.dtype.name,),
            lambda b: b.ndim == a.ndim and np.delete(b.shape, at).tolist() == np.delete(a.shape, at).tolist(),
        )
        shape = [d.size() if i == at else n for i, n in enumerate(a.shape)]
        names.append(d.pick(found) if found and d.chance(0.7) else d.new(d.array(a.dtype.name, shape)))
    names = names[::-1] if d.chance(0.3) else names
    return d.node("Concat", names, axis=at if d.chance(0.7) or d.version < 11 else at - a.ndim)


def _stack(d: Draw) -> list[FuzzNode]:
    """Values with a new axis, joined along it: the same one twice now and then."""
    x = d.value(ANY, 0, 3)
    rank, at = d.known(x).ndim + 1, d.integer(0, d.known(x).ndim)
    parts = [x, *(x if d.chance(0.4) else d.like(x, d.known(x).shape) for _ in range(d.integer(1, 2)))]
    inputs, attrs = _operand_axes(d, 13, [at])
    views = [d.node("Unsqueeze", [part, *inputs], **attrs) for part in parts]
    return [
        *views,
        d.node("Concat", [view.outputs[0] for view in views], axis=at if d.version < 11 else d.pick((at, at - rank))),
    ]


def _split(d: Draw) -> FuzzNode | None:
    x = d.value(ANY, 1, 4, fits=lambda a: max(a.shape) > 1)
    shape = d.known(x).shape
    at = int(np.argmax(shape)) if d.chance(0.6) else d.integer(0, len(shape) - 1)
    n = shape[at]
    count = d.integer(1, min(max(n, 1), 4))
    axis = d.maybe(at if d.version < 11 or d.chance(0.7) else at - len(shape), 0.9 if at == 0 else 1.0)
    if n % count == 0 and d.chance(0.4):
        return d.node("Split", [x], outputs=count, axis=axis, num_outputs=count if d.version >= 18 else None)
    cuts = sorted(d.integer(0, n) for _ in range(count - 1))
    parts = [int(p) for p in np.diff([0, *cuts, n])]
    inputs, attrs = _operand_axes(d, 13, parts, "split")
    return d.node("Split", [x, *inputs], outputs=count, axis=axis, **attrs)


def _slice(d: Draw) -> FuzzNode:
    x = d.value(ANY, 1, 4)
    shape = d.known(x).shape
    axes = d.axes(len(shape), 1)
    starts, ends, steps = list[int](), list[int](), list[int]()
    for axis in axes:
        n = shape[axis]
        step = 1 if d.version < 10 else d.pick((1, 1, 1, 2, 3, -1, -2, -3))
        start, end = d.integer(-n - 1, n + 1), d.integer(-n - 1, n + 1)
        if d.chance(0.6):
            start, end = (
                (d.pick((0, 1, -n)), d.pick((n, -1, 2**63 - 1, n + 5)))
                if step > 0
                else (d.pick((n - 1, -1, 2**63 - 1)), d.pick((0, -n - 1, -(2**63) + 1)))
            )
        for listed, number in ((starts, start), (ends, end), (steps, step)):
            listed.append(number)
    if d.version < 10:
        return d.node("Slice", [x], starts=starts, ends=ends, axes=[a % len(shape) for a in axes])
    kind = "int64" if max(map(abs, (*starts, *ends))) > 2**31 - 1 or d.chance(0.7) else "int32"
    inputs = [x, d.constant(starts, kind), d.constant(ends, kind)]
    if axes != list(range(len(axes))) or d.chance(0.7):
        inputs.append(d.constant(axes, kind))
        inputs += [d.constant(steps, kind)] if d.chance(0.5) or any(s != 1 for s in steps) else []
    elif any(s != 1 for s in steps):
        inputs += ["", d.constant(steps, kind)]
    return d.node("Slice", inputs)


def indices(d: Draw, size: int, shape: Any, negative: bool = True) -> str:
    """Positions below a size."""
    low = -size if negative and d.chance(0.4) else 0
    return d.new(d.array(d.dtype(INDICES), shape, low, max(size - 1, 0)))


def _gather(d: Draw) -> FuzzNode | None:
    x = d.value(ANY, 1, 3)
    axis = d.axis(d.known(x).ndim)
    size = d.known(x).shape[axis]
    return d.node("Gather", [x, indices(d, size, d.shape(0, 2, 30), d.version >= 11)], axis=d.maybe(axis, 0.9))


def _gather_elements(d: Draw) -> FuzzNode:
    x = d.value(ANY, 1, 3)
    shape, axis = d.known(x).shape, d.axis(d.known(x).ndim)
    wanted = [d.integer(min(n, 1), n) for n in shape]
    wanted[axis] = d.integer(1, 5)
    return d.node("GatherElements", [x, indices(d, shape[axis], wanted)], axis=axis)


def _positions(d: Draw, shape: tuple[int, ...], rank: int, lead: tuple[int, ...], dtype: str = "int64") -> str:
    columns = [d.rng.integers(-n if d.chance(0.3) else 0, max(n, 1), lead) for n in shape[:rank]]
    return d.new(np.stack(columns, -1).astype(dtype))


def _gather_nd(d: Draw) -> FuzzNode:
    x = d.value(ANY, 1, 4)
    shape = d.known(x).shape
    batch = d.integer(0, len(shape) - 1) if d.version >= 12 and d.chance(0.3) else 0
    rank = d.integer(1, len(shape) - batch)
    return d.node(
        "GatherND",
        [x, _positions(d, shape[batch:], rank, (*shape[:batch], *d.shape(0, 2, 12)))],
        batch_dims=batch or None,
    )


def _scatter_elements(op: str) -> Row:
    def row(d: Draw) -> FuzzNode:
        x = d.value(NUMBERS, 1, 3)
        shape, axis = d.known(x).shape, d.axis(d.known(x).ndim)
        wanted = [d.integer(min(n, 1), n) for n in shape]
        reduction = (
            d.maybe(d.pick(("none", "add", "mul", "max", "min")[: 3 if d.version < 18 else 5]))
            if d.version >= 16 and op != "Scatter"
            else None
        )
        n = shape[axis]
        rows = np.argsort(d.rng.random([n if i == axis % len(shape) else w for i, w in enumerate(wanted)]), axis)
        positions = np.take(rows, range(wanted[axis]), axis)
        if reduction in _COMBINING:
            positions //= 2
        found = d.new(positions.astype(d.dtype(INDICES)))
        return d.node(op, [x, found, d.like(x, wanted)], axis=axis, reduction=reduction)

    return row


def _scatter_nd(d: Draw) -> FuzzNode:
    x = d.value(NUMBERS, 1, 3)
    shape = d.known(x).shape
    rank = d.integer(1, len(shape))
    places = int(np.prod(shape[:rank]))
    count = d.integer(0, min(places, 6))
    reduction = (
        d.maybe(d.pick(("none", "add", "mul", "max", "min")[: 3 if d.version < 18 else 5])) if d.version >= 16 else None
    )
    numbers = d.rng.permutation(places)[:count] // (2 if reduction in _COMBINING else 1)
    at = np.stack(np.unravel_index(numbers, shape[:rank]), -1) if places else np.zeros((0, rank))
    return d.node("ScatterND", [x, d.new(at.astype("int64")), d.like(x, (count, *shape[rank:]))], reduction=reduction)


def _expand(d: Draw) -> FuzzNode:
    x = d.value(ANY, 0, 3)
    shape = [n if n != 1 or d.chance(0.4) else d.integer(1, 4) for n in d.known(x).shape]
    shape = [1 if d.chance(0.2) else n for n in shape]
    return d.node("Expand", [x, d.constant([d.integer(1, 3)] * d.integer(0, 1) + shape)])


def _tile(d: Draw) -> FuzzNode:
    x = d.value(ANY, 1, 4)
    return d.node("Tile", [x, d.constant([d.pick((1, 1, 2, 3, 0), (5, 5, 4, 2, 0.3)) for _ in d.known(x).shape])])


def _pad(d: Draw) -> FuzzNode:
    x = d.value(NUMBERS if d.version >= 11 else FLOATS, 1, 4)
    a = d.known(x)
    mode = d.pick(
        ("constant", "reflect", "edge", "wrap") if d.version >= 19 else ("constant", "reflect", "edge"),
        (5, 2, 2, 1)[: 4 if d.version >= 19 else 3],
    )
    most = [max(n - 1, 0) if mode == "reflect" else 3 if mode == "constant" else 3 * bool(n) for n in a.shape] * 2
    low = [-max(n // 2 - 1, 0) if d.chance(0.15) and mode == "constant" else 0 for n in a.shape] * 2
    pads = [d.integer(b, max(min(m, 3), b)) if d.chance(0.6) else 0 for b, m in zip(low, most, strict=True)]
    if d.version < 11:
        return d.node(
            "Pad", [x], pads=pads, mode=d.maybe(mode) if mode == "constant" else mode, value=d.maybe(d.real(0.0, 1.0))
        )
    value = [d.constant(d.pick((0, 1, 3, 100)), a.dtype.name)] if mode == "constant" and d.chance(0.5) else []
    axes = []
    if d.version >= 18 and d.chance(0.3):
        chosen = d.axes(a.ndim, 1)
        pads = [pads[c % a.ndim] for c in chosen] + [pads[c % a.ndim + a.ndim] for c in chosen]
        axes = [*([] if value else [""]), d.constant(chosen, d.dtype(INDICES))]
    return d.node("Pad", [x, d.constant(pads), *value, *axes], mode=d.maybe(mode) if mode == "constant" else mode)


def _depth_to_space(d: Draw) -> FuzzNode:
    block = d.integer(1, 3)
    x = d.value(
        FLOATS,
        4,
        4,
        lambda a: a.shape[1] % block**2 == 0,
        lambda kind: d.array(kind, (1, block**2 * d.integer(1, 3), d.integer(1, 4), d.integer(1, 4))),
    )
    return d.node(
        "DepthToSpace", [x], blocksize=block, mode=d.maybe(d.pick(("DCR", "CRD"))) if d.version >= 11 else None
    )


def _space_to_depth(d: Draw) -> FuzzNode:
    b = d.integer(1, 3)
    x = d.value(
        FLOATS,
        4,
        4,
        lambda a: a.shape[2] % b == 0 and a.shape[3] % b == 0,
        lambda kind: d.array(kind, (1, d.integer(1, 4), b * d.integer(1, 3), b * d.integer(1, 3))),
    )
    return d.node("SpaceToDepth", [x], blocksize=b)


def _resize(d: Draw) -> FuzzNode:
    x = d.value(
        ("float32", "float32", "uint8", "int8", "int32", "float16"),
        1,
        4,
        lambda a: a.size > 0,
        lambda kind: d.array(kind, (1, d.integer(1, 3), d.integer(1, 6), d.integer(1, 6))),
    )
    a = d.known(x)
    spatial = [i >= a.ndim - 2 or d.chance(0.05) for i in range(a.ndim)]
    scales = [d.pick((1.0, 2.0, 3.0, 0.5, 1.5, 0.7)) if s else 1.0 for s in spatial]
    mode = d.pick(("nearest", "linear", "cubic"), (4, 4, 2))
    if d.version == 10:
        return d.node("Resize", [x, d.constant(scales, "float32")], mode="nearest" if mode == "cubic" else mode)
    attrs = _resize_attrs(d, mode)
    sizes = [max(int(n * s), 1) for n, s in zip(a.shape, scales, strict=True)]
    if math.prod(sizes) > MOST:
        scales, sizes = [1.0] * a.ndim, list(a.shape)
    region = "" if d.version >= 13 else d.constant([], "float32")
    if attrs.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        region = d.constant(
            [d.pick((0.0, 0.2, -0.2)) if s else 0.0 for s in spatial]
            + [d.pick((1.0, 0.7, 1.3)) if s else 1.0 for s in spatial],
            "float32",
        )
    by_size = d.chance(0.5)
    empty = "" if d.version >= 13 else d.constant([], "float32")
    inputs = [x, region, empty, d.constant(sizes)] if by_size else [x, region, d.constant(scales, "float32")]
    return d.node("Resize", inputs, **attrs)


def _resize_attrs(d: Draw, mode: str) -> dict[str, Any]:
    ways = [
        "half_pixel",
        "asymmetric",
        "align_corners",
        "pytorch_half_pixel",
        "tf_crop_and_resize",
        *["half_pixel_symmetric"] * (d.version >= 19),
    ]
    attrs: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": d.pick(ways)}
    if mode == "nearest":
        attrs["nearest_mode"] = d.pick(("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"))
    if mode == "cubic":
        attrs |= {"cubic_coeff_a": d.pick((-0.75, -0.5)), "exclude_outside": d.integer(0, 1)}
    if attrs["coordinate_transformation_mode"] == "tf_crop_and_resize":
        attrs["extrapolation_value"] = d.pick((0.0, 5.0))
    if d.version >= 18 and mode != "nearest" and d.chance(0.25):
        attrs["antialias"] = 1
    return attrs


def _reverse_sequence(d: Draw) -> FuzzNode:
    x = d.value(NUMBERS, 2, 4)
    shape, time = d.known(x).shape, d.integer(0, 1)
    lengths = d.array("int64", (shape[1 - time],), 1, max(shape[time], 1))
    return d.node("ReverseSequence", [x, d.new(lengths)], time_axis=time, batch_axis=1 - time)


def _trilu(d: Draw) -> FuzzNode:
    k = [d.constant(d.integer(-3, 3))] if d.chance(0.6) else []
    return d.node("Trilu", [d.value(ANY, 2, 4), *k], upper=d.maybe(d.integer(0, 1)))


def _one_hot(d: Draw) -> FuzzNode:
    x = d.value(("int64", "int32", "float32", "uint8"), 0, 2)
    depth = d.integer(1, 6)
    values = d.constant([d.pick((0, -1)), d.pick((1, 5))], d.dtype(("float32", "int64", "int32")))
    return d.node(
        "OneHot",
        [x, d.constant(depth if d.chance(0.5) else [depth]), values],
        axis=d.maybe(d.integer(-d.known(x).ndim - 1, d.known(x).ndim), 0.7),
    )


def _range(d: Draw) -> FuzzNode:
    kind = d.dtype(("int64", "int32", "float32"))
    start, step, count = d.integer(-3, 3), d.pick((1, 2, -1, -3)), d.integer(0, 7)
    return d.node("Range", [d.constant(n, kind) for n in (start, start + step * count, step)])


def _constant_of_shape(d: Draw) -> FuzzNode:
    shape = d.constant(list(d.shape(0, 3, 100)))
    return d.node("ConstantOfShape", [shape], value=d.maybe(d.array(d.dtype(ANY), (1,))))


def _eye_like(d: Draw) -> FuzzNode:
    return d.node(
        "EyeLike", [d.value(NUMBERS, 2, 2)], k=d.maybe(d.integer(-2, 2)), dtype=d.maybe(CODES[d.dtype(NUMBERS)])
    )


def _center_crop_pad(d: Draw) -> FuzzNode:
    x = d.value(NUMBERS, 1, 4)
    axes = d.axes(d.known(x).ndim, 1)
    return d.node("CenterCropPad", [x, d.constant([d.integer(1, 6) for _ in axes])], axes=axes)


def _compress(d: Draw) -> FuzzNode:
    x = d.value(ANY, 1, 3)
    axis = d.maybe(d.axis(d.known(x).ndim))
    size = d.known(x).size if axis is None else d.known(x).shape[axis]
    return d.node("Compress", [x, d.new(d.array("bool", (d.integer(min(size, 1), min(size, 20)),)))], axis=axis)


def _unique(d: Draw) -> FuzzNode:
    x = d.value(("float32", "int64", "int8"), 1, 2)
    return d.node(
        "Unique", [x], outputs=d.integer(1, 4), axis=d.maybe(d.axis(d.known(x).ndim)), sorted=d.maybe(d.integer(0, 1))
    )


def _shape_part(d: Draw) -> FuzzNode:
    x = d.value(ANY)
    rank = d.known(x).ndim
    return d.node("Shape", [x], start=d.maybe(d.integer(-rank, rank)), end=d.maybe(d.integer(-rank, rank)))


ROWS: dict[str, Row] = {
    "CenterCropPad": _center_crop_pad,
    "Compress": _compress,
    "Concat": _concat,
    "Concat of views": _stack,
    "ConstantOfShape": _constant_of_shape,
    "DepthToSpace": _depth_to_space,
    "Expand": _expand,
    "EyeLike": _eye_like,
    "Flatten": _flatten,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "NonZero": lambda d: d.node("NonZero", [d.value((*INTEGERS, "float32", "bool"), 1, 3)]),
    "OneHot": _one_hot,
    "Pad": _pad,
    "Range": _range,
    "Reshape": _reshape,
    "Resize": _resize,
    "ReverseSequence": _reverse_sequence,
    "ScatterElements": _scatter_elements("ScatterElements"),
    "ScatterND": _scatter_nd,
    "Shape of a part": _shape_part,
    "Slice": _slice,
    "SpaceToDepth": _space_to_depth,
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Transpose": _transpose,
    "Trilu": _trilu,
    "Unique": _unique,
    "Unsqueeze": _unsqueeze,
}
