"""Random TFLite nodes that sum: reductions, softmax, products, convolutions, pools; real and quantised."""

import math
from typing import Any

import numpy as np

from build_scripts.judge.fuzz.draw import int32
from build_scripts.judge.fuzz.graphs import FuzzNode, Quant
from build_scripts.judge.fuzz.tflite.drawing import REAL, STORED8, WHOLE, TfliteDraw
from build_scripts.judge.fuzz.tflite.elementwise import CODES, FIXED, Row
from build_scripts.judge.fuzz.tflite.movement import pictures

MOST_TERMS = 300_000


def _reduce(op: str, kinds: tuple[str, ...]) -> Row:
    def row(d: TfliteDraw) -> FuzzNode:
        x = d.value(kinds, 1, 4)
        axes = int32(d, d.axes(d.known(x).ndim, 1))
        kept = op in ("REDUCE_MAX", "REDUCE_MIN")
        return d.make(op, [x, axes], d.same(x) if kept else d.out(d.kind(x)), keep_dims=d.chance(0.5))

    return row


def _arg(op: str) -> Row:
    def row(d: TfliteDraw) -> FuzzNode:
        x = d.value((*REAL, "int32", *STORED8), 1, 4, lambda a: a.size > 0)
        kind = d.pick(("int32", "int64"))
        return d.make(op, [x, int32(d, d.axis(d.known(x).ndim))], d.out(kind), output_type=CODES[kind])

    return row


def _softmax(op: str) -> Row:
    def row(d: TfliteDraw) -> FuzzNode:
        x = d.value((*REAL, *STORED8, *(("qint16",) if op == "SOFTMAX" else ())), 1, 4)
        kind = d.kind(x)
        return d.make(
            op, [x], d.out(kind, FIXED[op].get(kind)), beta=d.pick((1.0, 1.0, 0.5)) if op == "SOFTMAX" else None
        )

    return row


def _cumsum(d: TfliteDraw) -> FuzzNode:
    x = d.value((*REAL, *WHOLE), 1, 3)
    return d.make(
        "CUMSUM", [x, int32(d, d.axis(d.known(x).ndim))], d.same(x), exclusive=d.chance(0.4), reverse=d.chance(0.4)
    )


def _top_k(d: TfliteDraw) -> FuzzNode:
    x = d.value((*REAL, "int32", *STORED8), 1, 3, lambda a: a.shape[-1] > 0)
    return d.make("TOPK_V2", [x, int32(d, d.integer(1, d.known(x).shape[-1]))], d.same(x), d.out("int32"))


def weights(d: TfliteDraw, kind: str, shape: tuple[int, ...], axis: int, stored: bool = True) -> str:
    """Weights that go with operands of a kind: of int8 with a scale a channel, of uint8 with one of all."""
    if kind == "float32":
        return d.new(d.array("float32", shape), stored=stored)
    plain = "uint8" if kind == "quint8" else "int8"
    name = d.new(d.array(plain, shape, *((0, 255) if plain == "uint8" else (-127, 127))), stored=True)
    if kind == "quint8":
        d.quants[name] = Quant((float(np.float32(0.01)),), (d.integer(100, 150),))
    else:
        count = shape[axis] if d.chance(0.7) and axis >= 0 else 1
        d.quants[name] = Quant(
            tuple(float(s) for s in d.rng.uniform(0.002, 0.02, count).astype("float32")), (0,) * count, max(axis, 0)
        )
    return name


def bias(d: TfliteDraw, x: str, w: str, count: int) -> str:
    """A bias, of int32 at the product of the scales where numbers are quantised; sometimes none."""
    if d.chance(0.25):
        return ""
    if x not in d.quants:
        return d.new(d.array("float32", (count,)), stored=True)
    wide = d.kind(x) == "qint16"
    name = d.new(d.array("int64" if wide else "int32", (count,), -3000, 3000), stored=True)
    scale, per = d.quants[x].scales[0], d.quants[w].scales
    d.quants[name] = Quant(tuple(scale * s for s in per), (0,) * len(per), 0)
    return name


def _windows(d: TfliteDraw, height: int, width: int) -> tuple[int, int, dict[str, Any]]:
    padding = d.integer(0, 1)
    kh, kw = (d.pick((1, 3, 3, 2, 5)) for _ in range(2)) if d.chance(0.3) else [d.pick((1, 3, 3, 2, 5))] * 2
    if padding == 1 and d.chance(0.9):
        kh, kw = min(kh, height), min(kw, width)
    step = d.pick((1, 1, 2, 3))
    return kh, kw, {"padding": padding, "stride_h": step, "stride_w": step if d.chance(0.8) else d.integer(1, 2)}


KINDS = ("float32", "float32", "qint8", "qint8", "quint8", "qint16")


def _conv(d: TfliteDraw) -> FuzzNode | None:
    x = pictures(d, KINDS)
    n, height, width, ci = d.known(x).shape
    kh, kw, options = _windows(d, height, width)
    co = d.pick((1, 2, 3, 4, 8, 16))
    if co * kh * kw * ci * n * height * width > MOST_TERMS:
        return None
    if d.chance(0.2):
        options |= {"dilation_h_factor": d.integer(1, 3), "dilation_w_factor": d.integer(1, 3)}
    else:
        options |= {"dilation_h_factor": 1, "dilation_w_factor": 1}
    w = weights(d, d.kind(x), (co, kh, kw, ci), 0)
    return d.make(
        "CONV_2D", [x, w, bias(d, x, w, co)], d.out(d.kind(x)), fused_activation_function=d.activation(), **options
    )


def _depthwise(d: TfliteDraw) -> FuzzNode:
    x = pictures(d, KINDS)
    _, height, width, ci = d.known(x).shape
    kh, kw, options = _windows(d, height, width)
    options["stride_w"] = options["stride_h"]
    multiplier = d.pick((1, 1, 1, 2, 3))
    step = d.integer(1, 2) if d.chance(0.2) else 1
    w = weights(d, d.kind(x), (1, kh, kw, ci * multiplier), 3)
    inputs = [x, w, bias(d, x, w, ci * multiplier)]
    return d.make(
        "DEPTHWISE_CONV_2D",
        inputs,
        d.out(d.kind(x)),
        depth_multiplier=multiplier,
        dilation_h_factor=step,
        dilation_w_factor=step,
        fused_activation_function=d.activation(),
        **options,
    )


def _transpose_conv(d: TfliteDraw) -> FuzzNode:
    x = pictures(d, ("float32", "float32", "qint8", "quint8"))
    n, height, width, ci = d.known(x).shape
    kh, kw, co, step, padding = d.integer(1, 4), d.integer(1, 4), d.pick((1, 2, 3, 4)), d.integer(1, 2), d.integer(0, 1)
    size = [(h * step if padding == 0 else (h - 1) * step + k) for h, k in ((height, kh), (width, kw))]
    w = weights(d, d.kind(x), (co, kh, kw, ci), 0)
    third = bias(d, x, w, co)
    inputs = [int32(d, [n, *size, co]), w, x, *([third] if third else [])]
    return d.make(
        "TRANSPOSE_CONV",
        inputs,
        d.out(d.kind(x)),
        padding=padding,
        stride_h=step,
        stride_w=step,
        fused_activation_function=d.maybe(d.pick((0, 1)), 0.3),
    )


def _pool(op: str) -> Row:
    def row(d: TfliteDraw) -> FuzzNode:
        x = pictures(d, REAL if op == "L2_POOL_2D" else KINDS)
        _, height, width, _ = d.known(x).shape
        kh, kw, options = _windows(d, height, width)
        return d.make(
            op, [x], d.same(x), filter_height=kh, filter_width=kw, fused_activation_function=d.activation(), **options
        )

    return row


def _fully_connected(d: TfliteDraw) -> FuzzNode:
    x = d.value(KINDS, 1, 4, lambda a: 0 < a.size)
    shape = d.known(x).shape
    k, co = shape[-1] if len(shape) > 1 or d.chance(0.5) else d.known(x).size, d.pick((1, 2, 3, 4, 8, 16))
    w = weights(d, d.kind(x), (co, k), 0, stored=d.chance(0.9))
    return d.make(
        "FULLY_CONNECTED",
        [x, w, bias(d, x, w, co)],
        d.out(d.kind(x)),
        fused_activation_function=d.activation(),
        keep_num_dims=d.chance(0.5),
    )


def _batch_matmul(d: TfliteDraw) -> FuzzNode:
    x = d.value((*REAL, *REAL, "qint8", "qint16"), 2, 4)
    *lead, m, k = d.known(x).shape
    adj_x, adj_y, n = d.chance(0.3), d.chance(0.3), d.size()
    k = m if adj_x else k
    lead = [b if d.chance(0.8) else 1 for b in lead]
    return d.make(
        "BATCH_MATMUL",
        [x, d.like(x, (*lead, n, k) if adj_y else (*lead, k, n))],
        d.out(d.kind(x)),
        adj_x=adj_x,
        adj_y=adj_y,
    )


def _lrn(d: TfliteDraw) -> FuzzNode:
    return d.make(
        "LOCAL_RESPONSE_NORMALIZATION",
        [pictures(d)],
        d.out("float32"),
        radius=d.integer(1, 4),
        bias=d.real(1.0, 2.0),
        alpha=d.real(0.1, 1.0),
        beta=d.pick((0.5, 0.75)),
    )


def _l2(d: TfliteDraw) -> FuzzNode:
    x = d.value((*REAL, *STORED8), 1, 4, lambda a: a.size > 0)
    return d.make("L2_NORMALIZATION", [x], d.out(d.kind(x), FIXED["L2_NORMALIZATION"].get(d.kind(x))))


def _conv_3d(d: TfliteDraw) -> FuzzNode:
    kernel = [d.integer(1, 2) for _ in range(3)]
    ci, co = d.integer(1, 3), d.integer(1, 4)
    x = d.value(
        REAL,
        5,
        5,
        lambda a: a.shape[4] == ci and min(a.shape[1:4]) >= 2,
        lambda kind: d.array(kind, (1, d.integer(2, 4), d.integer(2, 4), d.integer(2, 4), ci)),
    )
    steps = {f"stride_{axis}": d.integer(1, 2) for axis in "dhw"}
    dilations = {f"dilation_{axis}_factor": 1 for axis in "dhw"}
    return d.make(
        "CONV_3D",
        [x, d.new(d.array("float32", (*kernel, ci, co)), stored=True)],
        d.out("float32"),
        padding=d.integer(0, 1),
        **steps,
        **dilations,
    )


ROWS: dict[str, Row] = {
    "ARG_MAX": _arg("ARG_MAX"),
    "ARG_MIN": _arg("ARG_MIN"),
    "AVERAGE_POOL_2D": _pool("AVERAGE_POOL_2D"),
    "BATCH_MATMUL": _batch_matmul,
    "CONV_2D": _conv,
    "CONV_3D": _conv_3d,
    "CUMSUM": _cumsum,
    "DEPTHWISE_CONV_2D": _depthwise,
    "FULLY_CONNECTED": _fully_connected,
    "L2_NORMALIZATION": _l2,
    "L2_POOL_2D": _pool("L2_POOL_2D"),
    "LOCAL_RESPONSE_NORMALIZATION": _lrn,
    "LOG_SOFTMAX": _softmax("LOG_SOFTMAX"),
    "MAX_POOL_2D": _pool("MAX_POOL_2D"),
    "MEAN": _reduce("MEAN", (*REAL, *WHOLE, *STORED8)),
    "REDUCE_ALL": _reduce("REDUCE_ALL", ("bool",)),
    "REDUCE_ANY": _reduce("REDUCE_ANY", ("bool",)),
    "REDUCE_MAX": _reduce("REDUCE_MAX", (*REAL, *WHOLE, *STORED8)),
    "REDUCE_MIN": _reduce("REDUCE_MIN", (*REAL, *WHOLE, *STORED8)),
    "REDUCE_PROD": _reduce("REDUCE_PROD", (*REAL, "int32", "qint8")),
    "SOFTMAX": _softmax("SOFTMAX"),
    "SUM": _reduce("SUM", (*REAL, *WHOLE, *STORED8)),
    "TOPK_V2": _top_k,
    "TRANSPOSE_CONV": _transpose_conv,
}
__all__ = ["ROWS", "math"]
