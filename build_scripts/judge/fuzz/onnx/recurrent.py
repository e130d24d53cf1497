"""Random nodes with a state or heads: LSTM, GRU, RNN, attention; and those of detection and images."""

from typing import Any

import numpy as np

from build_scripts.judge.fuzz.draw import Draw
from build_scripts.judge.fuzz.graphs import FuzzNode
from build_scripts.judge.fuzz.onnx.elementwise import Row
from build_scripts.judge.fuzz.onnx.sums import image

FLOAT32 = ("float32",)


def _cell(op: str, gates: int) -> Row:
    def row(d: Draw) -> FuzzNode:
        x = d.value(FLOAT32, 3, 3, lambda a: 0 < a.size < 400)
        time, batch, size = d.known(x).shape
        way = d.pick(("forward", "reverse", "bidirectional"))
        ways, hidden = 1 + (way == "bidirectional"), d.integer(1, 5)

        def part(*shape: int) -> str:
            return d.new(d.array("float32", shape, -0.7, 0.7), stored=True)

        lengths = d.new(d.array("int32", (batch,), 1, time)) if d.chance(0.25) else ""
        inputs = [x, part(ways, gates * hidden, size), part(ways, gates * hidden, hidden)]
        inputs += [part(ways, 2 * gates * hidden) if d.chance(0.6) else "", lengths]
        inputs.append(part(ways, batch, hidden) if d.chance(0.4) else "")
        if op == "LSTM":
            inputs += [
                part(ways, batch, hidden) if d.chance(0.4) else "",
                part(ways, 3 * hidden) if d.chance(0.2) else "",
            ]
        while not inputs[-1]:
            inputs.pop()
        attrs: dict[str, Any] = {"direction": d.maybe(way) if way == "forward" else way, "clip": d.maybe(0.5, 0.1)}
        if op == "GRU":
            attrs["linear_before_reset"] = d.maybe(d.integer(0, 1))
        return d.node(op, inputs, outputs=d.integer(1, 3 if op == "LSTM" else 2), hidden_size=hidden, **attrs)

    return row


def _attention(d: Draw) -> FuzzNode:
    b, heads, size = d.integer(1, 2), d.integer(1, 3), d.pick((2, 4, 8))
    q, k = d.integer(1, 5), d.integer(1, 6)
    groups = d.pick([g for g in (1, 2, 3) if heads % g == 0])
    x = d.value(
        FLOAT32, 4, 4, lambda a: a.shape == (b, heads, q, size), lambda kind: d.array(kind, (b, heads, q, size))
    )
    inputs = [x, d.like(x, (b, groups, k, size)), d.like(x, (b, groups, k, size))]
    if d.chance(0.4):
        inputs.append(
            d.new(d.array("bool", (q, k)) | (np.arange(k) == 0) if d.chance(0.5) else d.array("float32", (q, k), -2, 2))
        )
    return d.node("Attention", inputs, is_causal=d.maybe(1, 0.3), scale=d.maybe(0.3, 0.3), softcap=d.maybe(2.0, 0.15))


def _multi_head(d: Draw) -> FuzzNode:
    b, heads, size, q, k = d.integer(1, 2), d.integer(1, 3), d.pick((2, 4, 8)), d.integer(1, 5), d.integer(1, 6)
    width = heads * size
    x = d.value(FLOAT32, 3, 3, lambda a: a.shape == (b, q, width), lambda kind: d.array(kind, (b, q, width)))
    inputs = [x, d.like(x, (b, k, width)), d.like(x, (b, k, width))]
    inputs += [d.like(x, (3 * width,))] * d.chance(0.4)
    return d.node("com.microsoft.MultiHeadAttention", inputs, num_heads=heads, scale=d.maybe(0.3, 0.3))


def _rotary(op: str) -> Row:
    def row(d: Draw) -> FuzzNode:
        b, heads, t, size = d.integer(1, 2), d.integer(1, 3), d.integer(1, 5), d.pick((2, 4, 8))
        x = d.value(
            FLOAT32, 4, 4, lambda a: a.shape == (b, heads, t, size), lambda kind: d.array(kind, (b, heads, t, size))
        )
        most = t + 3
        positions = d.new(d.array("int64", (b, t), 0, most - 1))
        angles = [d.new(d.array("float32", (most, size // 2), -1, 1), stored=True) for _ in range(2)]
        inputs = [x, *angles, positions] if op == "RotaryEmbedding" else [x, positions, *angles]
        return d.node(op, inputs, interleaved=d.maybe(d.integer(0, 1)))

    return row


def _grid_sample(d: Draw) -> FuzzNode:
    x = image(d, axes=2)
    n = d.known(x).shape[0]
    grid = d.new(d.array("float32", (n, d.integer(1, 4), d.integer(1, 4), 2), -1.3, 1.3))
    modes = ("bilinear", "nearest", "bicubic") if d.version < 20 else ("linear", "nearest", "cubic")
    return d.node(
        "GridSample",
        [x, grid],
        mode=d.pick(modes),
        padding_mode=d.maybe(d.pick(("zeros", "border", "reflection"))),
        align_corners=d.maybe(d.integer(0, 1)),
    )


def _affine_grid(d: Draw) -> FuzzNode:
    n = d.integer(1, 2)
    size = d.constant([n, d.integer(1, 3), d.integer(1, 4), d.integer(1, 4)])
    return d.node("AffineGrid", [d.new(d.array("float32", (n, 2, 3))), size], align_corners=d.maybe(d.integer(0, 1)))


def _roi_align(d: Draw) -> FuzzNode:
    x = image(d, axes=2)
    n, _, height, width = d.known(x).shape
    count = d.integer(1, 3)
    corner = d.rng.uniform(0, 2, (count, 2))
    boxes = np.concatenate([corner, corner + d.rng.uniform(0.5, max(height, width), (count, 2))], 1).astype("float32")
    attrs = {
        "output_height": d.integer(1, 3),
        "output_width": d.integer(1, 3),
        "sampling_ratio": d.integer(0, 2),
        "spatial_scale": d.pick((1.0, 0.5)),
        "mode": d.maybe(d.pick(("avg", "max"))),
    }
    if d.version >= 16:
        attrs["coordinate_transformation_mode"] = d.maybe(d.pick(("half_pixel", "output_half_pixel")))
    return d.node("RoiAlign", [x, d.new(boxes), d.new(d.array("int64", (count,), 0, n - 1))], **attrs)


def _suppression(d: Draw) -> FuzzNode:
    n, count, classes = d.integer(1, 2), d.integer(1, 8), d.integer(1, 3)
    corner = d.rng.uniform(0, 1, (n, count, 2))
    boxes = np.concatenate([corner, corner + d.rng.uniform(0.1, 1, (n, count, 2))], -1).astype("float32")
    scores = d.new(d.array("float32", (n, classes, count), 0, 1))
    limits = [
        d.constant([d.integer(1, 4)]),
        d.constant([d.pick((0.5, 0.3, 0.0))], "float32"),
        d.constant([d.pick((0.0, 0.2))], "float32"),
    ]
    return d.node(
        "NonMaxSuppression",
        [d.new(boxes), scores, *limits[: d.integer(1, 3)]],
        center_point_box=d.maybe(d.integer(0, 1)),
    )


def _columns(d: Draw) -> FuzzNode:
    height, width, kh, kw = d.integer(2, 6), d.integer(2, 6), d.integer(1, 2), d.integer(1, 2)
    places = (height - kh + 1) * (width - kw + 1)
    x = d.new(d.array("float32", (d.integer(1, 2), d.integer(1, 3) * kh * kw, places)))
    return d.node("Col2Im", [x, d.constant([height, width]), d.constant([kh, kw])])


def _unpool(d: Draw) -> list[FuzzNode]:
    x = image(d, axes=2)
    kernel = [d.integer(1, 2), d.integer(1, 2)]
    pool = d.node("MaxPool", [x], outputs=2, kernel_shape=kernel, strides=kernel)
    return [pool, d.node("MaxUnpool", pool.outputs, kernel_shape=kernel, strides=kernel)]


def _dft(d: Draw) -> FuzzNode:
    x = d.value(
        FLOAT32,
        3,
        3,
        lambda a: a.shape[-1] == 1 and a.size > 0,
        lambda kind: d.array(kind, (d.integer(1, 2), d.integer(1, 9), 1)),
    )
    way = d.pick(({}, {"onesided": 1}, {"inverse": 1}))
    return (
        d.node("DFT", [x], axis=1 if d.version < 20 else None, **way)
        if d.version < 20
        else d.node("DFT", [x, "", d.constant(1)], **way)
    )


def _window(op: str) -> Row:
    return lambda d: d.node(op, [d.constant(d.integer(1, 9))], periodic=d.maybe(d.integer(0, 1)))


def _embedding(d: Draw) -> FuzzNode:
    b, t, width = d.integer(1, 2), d.integer(1, 4), d.pick((4, 8))
    ids, parts = d.new(d.array("int32", (b, t), 0, 4)), d.new(d.array("int32", (b, t), 0, 1))
    tables = [d.new(d.array("float32", (n, width)), stored=True) for n in (5, t + 1, 2)]
    norm = [d.new(d.array("float32", (width,)), stored=True) for _ in range(2)]
    return d.node("com.microsoft.EmbedLayerNormalization", [ids, parts, *tables, *norm], outputs=2)


ROWS: dict[str, Row] = {
    "AffineGrid": _affine_grid,
    "Attention": _attention,
    "BlackmanWindow": _window("BlackmanWindow"),
    "Col2Im": _columns,
    "DFT": _dft,
    "GRU": _cell("GRU", 3),
    "GridSample": _grid_sample,
    "HammingWindow": _window("HammingWindow"),
    "HannWindow": _window("HannWindow"),
    "LSTM": _cell("LSTM", 4),
    "MaxUnpool": _unpool,
    "NonMaxSuppression": _suppression,
    "RNN": _cell("RNN", 1),
    "RoiAlign": _roi_align,
    "RotaryEmbedding": _rotary("RotaryEmbedding"),
    "com.microsoft.EmbedLayerNormalization": _embedding,
    "com.microsoft.MultiHeadAttention": _multi_head,
    "com.microsoft.RotaryEmbedding": _rotary("com.microsoft.RotaryEmbedding"),
}
