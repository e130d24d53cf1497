"""Random TensorFlow.js nodes that sum: reductions, softmax, products, convolutions, pools."""

from typing import Any

from build_scripts.judge.fuzz.draw import Draw, int32
from build_scripts.judge.fuzz.graphs import FuzzNode
from build_scripts.judge.fuzz.tfjs.elementwise import BOTH, REAL, Row
from build_scripts.judge.fuzz.tfjs.movement import pictures


def _reduce(op: str, kinds: tuple[str, ...] = BOTH) -> Row:
    def row(d: Draw) -> FuzzNode:
        x = d.value(kinds, 1, 4)
        return d.node(op, [x, int32(d, d.axes(d.known(x).ndim, 1))], keep_dims=d.chance(0.5))

    return row


def _arg(op: str) -> Row:
    def row(d: Draw) -> FuzzNode:
        x = d.value(BOTH, 1, 4, lambda a: a.size > 0)
        return d.node(op, [x, int32(d, d.integer(0, d.known(x).ndim - 1))])

    return row


def _scan(op: str) -> Row:
    def row(d: Draw) -> FuzzNode:
        x = d.value(BOTH, 1, 3)
        return d.node(op, [x, int32(d, d.axis(d.known(x).ndim))], exclusive=d.chance(0.4), reverse=d.chance(0.4))

    return row


def _top_k(d: Draw) -> FuzzNode:
    x = d.value(BOTH, 1, 3, lambda a: a.shape[-1] > 0)
    return d.node("TopKV2", [x, int32(d, d.integer(1, d.known(x).shape[-1]))], outputs=2, sorted=True)


def _matmul(op: str) -> Row:
    def row(d: Draw) -> FuzzNode:
        x = d.value(REAL, 2, 2)
        turned, turned_b, n = d.chance(0.3), d.chance(0.3), d.size()
        k = d.known(x).shape[0 if turned else 1]
        inputs = [x, d.like(x, (n, k) if turned_b else (k, n))]
        more: dict[str, Any] = {}
        if op == "_FusedMatMul":
            inputs.append(d.like(x, (n,)))
            act = d.pick(([], ["Relu"], ["Relu6"], ["Elu"], ["Sigmoid"]))
            more = {"fused_ops": ["BiasAdd", *act], "num_args": 1}
        return d.node(op, inputs, transpose_a=turned, transpose_b=turned_b, **more)

    return row


def _batch_matmul(d: Draw) -> FuzzNode:
    x = d.value(REAL, 3, 4)
    *lead, m, k = d.known(x).shape
    adj_x, adj_y, n = d.chance(0.3), d.chance(0.3), d.size()
    k = m if adj_x else k
    lead = [b if d.chance(0.8) else 1 for b in lead]
    return d.node("BatchMatMulV2", [x, d.like(x, (*lead, n, k) if adj_y else (*lead, k, n))], adj_x=adj_x, adj_y=adj_y)


def _windows(d: Draw, height: int, width: int) -> tuple[int, int, dict[str, Any]]:
    padding = d.pick(("SAME", "VALID"))
    kh, kw = d.pick((1, 3, 3, 2)), d.pick((1, 3, 3, 2))
    if padding == "VALID":
        kh, kw = min(kh, height), min(kw, width)
    step = d.pick((1, 1, 2))
    return kh, kw, {"padding": padding, "strides": [1, step, step, 1], "data_format": "NHWC"}


def _conv(op: str) -> Row:
    def row(d: Draw) -> FuzzNode:
        x = pictures(d)
        _, height, width, ci = d.known(x).shape
        kh, kw, attrs = _windows(d, height, width)
        deep = op == "DepthwiseConv2dNative"
        last = d.pick((1, 1, 2)) if deep else d.pick((1, 2, 3, 4, 8))
        co = ci * last if deep else last
        step = d.integer(1, 2) if attrs["strides"][1] == 1 and d.chance(0.2) else 1
        inputs = [x, d.new(d.array("float32", (kh, kw, ci, last)), stored=d.chance(0.85))]
        if op == "_FusedConv2D":
            inputs.append(d.like(x, (co,)))
            act = d.pick(([], ["Relu"], ["Relu6"], ["Elu"], ["Sigmoid"]))
            attrs |= {"fused_ops": ["BiasAdd", *act], "num_args": 1}
        return d.node(op, inputs, dilations=[1, step, step, 1], **attrs)

    return row


def _transposed(d: Draw) -> FuzzNode:
    x = pictures(d)
    n, height, width, ci = d.known(x).shape
    k, step, co, padding = d.integer(1, 4), d.integer(1, 2), d.pick((1, 2, 3)), d.pick(("SAME", "VALID"))
    size = [h * step if padding == "SAME" else (h - 1) * step + max(k, step) for h in (height, width)]
    w = d.new(d.array("float32", (k, k, co, ci)), stored=True)
    return d.node(
        "Conv2DBackpropInput",
        [int32(d, [n, *size, co]), w, x],
        strides=[1, step, step, 1],
        padding=padding,
        data_format="NHWC",
        dilations=[1, 1, 1, 1],
    )


def _pool(op: str) -> Row:
    def row(d: Draw) -> FuzzNode:
        x = pictures(d)
        _, height, width, _ = d.known(x).shape
        kh, kw, attrs = _windows(d, height, width)
        return d.node(op, [x], ksize=[1, kh, kw, 1], **attrs)

    return row


def _batch_norm(d: Draw) -> FuzzNode:
    x = pictures(d)
    shape = d.known(x).shape[-1:]
    names = [
        d.like(x, shape),
        d.like(x, shape),
        d.like(x, shape),
        d.new(d.array("float32", shape, 0.1, 3.0), stored=True),
    ]
    return d.node("FusedBatchNormV3", [x, *names], epsilon=0.001, is_training=False, data_format="NHWC")


def _lrn(d: Draw) -> FuzzNode:
    return d.node("LRN", [pictures(d)], depth_radius=d.integer(1, 4), bias=1.5, alpha=0.3, beta=0.5)


ROWS: dict[str, Row] = {
    **{op: _reduce(op) for op in ("Max", "Mean", "Min", "Prod", "Sum")},
    "EuclideanNorm": _reduce("EuclideanNorm", REAL),
    **{op: _reduce(op, ("bool",)) for op in ("All", "Any")},
    **{op: _arg(op) for op in ("ArgMax", "ArgMin")},
    **{op: _scan(op) for op in ("Cumprod", "Cumsum")},
    "AvgPool": _pool("AvgPool"),
    "BatchMatMulV2": _batch_matmul,
    "Conv2D": _conv("Conv2D"),
    "Conv2DBackpropInput": _transposed,
    "DepthwiseConv2dNative": _conv("DepthwiseConv2dNative"),
    "FusedBatchNormV3": _batch_norm,
    "LRN": _lrn,
    "LogSoftmax": lambda d: d.node("LogSoftmax", [d.value(REAL, 1, 3)]),
    "MatMul": _matmul("MatMul"),
    "MaxPool": _pool("MaxPool"),
    "Softmax": lambda d: d.node("Softmax", [d.value(REAL, 1, 4)]),
    "TopKV2": _top_k,
    "_FusedConv2D": _conv("_FusedConv2D"),
    "_FusedMatMul": _matmul("_FusedMatMul"),
}
