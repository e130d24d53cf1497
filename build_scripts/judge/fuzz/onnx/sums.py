"""Random nodes that sum: reductions, softmax, norms, products, convolutions, pools."""

import math
from typing import Any

from build_scripts.judge.fuzz.draw import FLOATS, Draw
from build_scripts.judge.fuzz.graphs import FuzzNode
from build_scripts.judge.fuzz.onnx.elementwise import Row
from build_scripts.judge.fuzz.onnx.movement import INDICES, _operand_axes

SUMMED = (*FLOATS, "int32", "int64")
FLOAT32 = ("float32",)
MOST_TERMS = 300_000  # products of a convolution


def _reduce(op: str, since: int = 18) -> Row:
    def row(d: Draw) -> FuzzNode:
        x = d.value((*SUMMED, "uint8", "int8") if op in ("ReduceMax", "ReduceMin") else SUMMED)
        rank = d.known(x).ndim
        axes = d.maybe(d.axes(rank, 1), 0.85)
        axes = [a % rank for a in axes] if axes and d.version < 11 else axes
        inputs, attrs = _operand_axes(d, since, axes)
        if d.version >= since and axes is None and d.chance(0.2):
            attrs["noop_with_empty_axes"] = 1
        return d.node(op, [x, *inputs], keepdims=d.maybe(d.integer(0, 1), 0.7), **attrs)

    return row


def _arg(op: str) -> Row:
    def row(d: Draw) -> FuzzNode:
        x = d.value((*SUMMED, "uint8", "int8"), 1, 4)
        axis = d.axis(d.known(x).ndim)
        axis = axis % d.known(x).ndim if d.version < 11 else axis
        last = d.maybe(d.integer(0, 1)) if d.version >= 12 else None
        return d.node(op, [x], axis=d.maybe(axis, 0.8), keepdims=d.maybe(d.integer(0, 1), 0.7), select_last_index=last)

    return row


def _over_axis(op: str, kinds: tuple[str, ...] = FLOATS, **attrs: Any) -> Row:
    def row(d: Draw) -> FuzzNode:
        x = d.value(kinds, 1, 4)
        axis = d.axis(d.known(x).ndim)
        axis = axis % d.known(x).ndim if d.version < 11 else axis
        return d.node(op, [x], axis=d.maybe(axis, 0.8), **{k: d.maybe(d.pick(v)) for k, v in attrs.items()})

    return row


def _scan(op: str) -> Row:
    def row(d: Draw) -> FuzzNode:
        x = d.value(SUMMED, 1, 3)
        axis = d.constant(d.axis(d.known(x).ndim), d.dtype(INDICES))
        return d.node(op, [x, axis], exclusive=d.maybe(d.integer(0, 1)), reverse=d.maybe(d.integer(0, 1)))

    return row


def _top_k(d: Draw) -> FuzzNode:
    x = d.value((*SUMMED, "uint8"), 1, 3)
    axis = d.axis(d.known(x).ndim)
    k = d.integer(0 if d.chance(0.05) else 1, max(d.known(x).shape[axis], 1))
    if d.version < 10:
        return d.node("TopK", [x], outputs=2, k=k, axis=axis % d.known(x).ndim)
    attrs = {"largest": d.maybe(d.integer(0, 1)), "sorted": d.maybe(1)} if d.version >= 11 else {}
    return d.node(
        "TopK",
        [x, d.constant([k])],
        outputs=2,
        axis=d.maybe(axis, 0.9) if d.version >= 11 else axis % d.known(x).ndim,
        **attrs,
    )


def _matmul(d: Draw) -> FuzzNode:
    x = d.value(SUMMED, 1, 4)
    a = d.known(x)
    k, n = a.shape[-1], d.size()
    lead = [b if d.chance(0.7) else 1 for b in a.shape[:-2]]
    lead = lead[d.integer(0, len(lead)) :] if d.chance(0.4) else lead
    shape = (k,) if d.chance(0.1) else (*lead, k, n)
    if a.ndim >= 2 and d.chance(0.1):
        return d.node("MatMul", [d.like(x, (*lead, n, a.shape[-2])), x])
    return d.node("MatMul", [x, d.like(x, shape)])


def _gemm(d: Draw) -> FuzzNode:
    x = d.value(SUMMED, 2, 2)
    a, n = d.known(x), d.size()
    turned, turned_b = d.integer(0, 1), d.integer(0, 1)
    m, k = a.shape[::-1] if turned else a.shape
    inputs = [x, d.like(x, (n, k) if turned_b else (k, n))]
    if d.version < 11 or d.chance(0.7):
        inputs.append(d.like(x, d.pick(((n,), (m, n), (1, n), (m, 1), (1,)))))
    alpha, beta = d.maybe(d.pick((1.0, 0.5, 2.0)), 0.4), d.maybe(d.pick((1.0, 0.5, 0.0)), 0.4)
    return d.node("Gemm", inputs, transA=turned or None, transB=turned_b or None, alpha=alpha, beta=beta)


def _fused_matmul(d: Draw) -> FuzzNode:
    x = d.value(FLOAT32, 2, 3)
    *lead, m, k = d.known(x).shape
    turned, turned_b, n = d.integer(0, 1), d.integer(0, 1), d.size()
    k = m if turned else k
    return d.node(
        "com.microsoft.FusedMatMul",
        [x, d.like(x, (*lead, n, k) if turned_b else (*lead, k, n))],
        transA=turned or None,
        transB=turned_b or None,
        alpha=d.maybe(0.5),
    )


def _einsum(d: Draw) -> FuzzNode:
    equation = str(
        d.pick(
            (
                "ij,jk->ik",
                "bij,bjk->bik",
                "ij->ji",
                "ij->i",
                "bhid,bhjd->bhij",
                "i,j->ij",
                "ij,ij->",
                "bij,kj->bik",
                "...ij,...jk->...ik",
                "ii->i",
                "ij,jk",
                "bqhd,bkhd->bhqk",
            )
        )
    )
    sizes = {c: d.integer(1, 4) for c in "abcdefghijklmnopqrstuvwxyz"}
    terms = equation.split("->")[0].split(",")
    names: list[str] = []
    for term in terms:
        shape = tuple(sizes[c] for c in term.replace("...", "ab"))
        names.append(d.like(names[0], shape) if names else shaped(d, ("float32", "float64", "int32"), shape))
    return d.node("Einsum", names, equation=equation)


def shaped(d: Draw, kinds: tuple[str, ...], shape: tuple[int, ...]) -> str:
    """An operand of one shape."""
    rank = len(shape)
    return d.value(kinds, rank, rank, lambda a: a.shape == shape, lambda kind: d.array(kind, shape))


def image(d: Draw, kinds: tuple[str, ...] = FLOAT32, channels: int = 0, axes: int = 0) -> str:
    """An operand N C and one to three spatial axes."""
    axes = axes or d.pick((1, 2, 3), (2, 8, 1))

    def make(kind: str) -> Any:
        return d.array(
            kind, (d.pick((1, 2)), channels or d.pick((1, 2, 3, 4, 6, 8, 16)), *(d.integer(1, 9) for _ in range(axes)))
        )

    return d.value(kinds, axes + 2, axes + 2, lambda a: channels in (0, a.shape[1]) and a.size <= 1500, make)


def window(d: Draw, spatial: tuple[int, ...], pool: bool = False) -> tuple[list[int], dict[str, Any]]:
    """The sizes of a window and its attributes: strides, dilations, padding by numbers or by name."""
    kernel = [d.pick((1, 2, 3, 3, 4, 5)) for _ in spatial]
    if d.chance(0.4):
        kernel = [kernel[0]] * len(spatial)
    attrs: dict[str, Any] = {}
    if d.chance(0.5):
        attrs["strides"] = [d.pick((1, 2, 2, 3)) for _ in spatial]
    if d.chance(0.25) and (not pool or d.version >= 10):
        attrs["dilations"] = [d.pick((1, 2, 3)) for _ in spatial]
    if d.chance(0.2) and "dilations" not in attrs:
        attrs["auto_pad"] = d.pick(("SAME_UPPER", "SAME_LOWER", "VALID"))
    elif d.chance(0.7):
        sides = [d.integer(0, max(k // 2, 1) if pool and k > 1 else 0 if pool else 2) for k in kernel]
        attrs["pads"] = sides * 2 if d.chance(0.7) else [d.integer(0, s) for s in sides * 2]
    return kernel, attrs


def _conv(op: str = "Conv") -> Row:
    def row(d: Draw) -> FuzzNode:
        x = image(d, ("float32", "float32", "float16") if op == "Conv" else FLOAT32)
        n, ci, *spatial = d.known(x).shape
        kernel, attrs = window(d, tuple(spatial))
        group = d.pick((1, ci, *(g for g in (2, 3) if ci % g == 0)), (3, 1, *(1 for g in (2, 3) if ci % g == 0)))
        co = group * d.pick((1, 2, 4, 8) if group < ci else (1, 1, 2))
        if math.prod((co, ci // group, *kernel, n, *spatial)) > MOST_TERMS:
            return d.node("Identity", [x])
        w = d.new(d.array(d.known(x).dtype.name, (co, ci // group, *kernel)), stored=d.chance(0.85) or None)
        bias = [d.like(x, (co,))] if d.chance(0.5) else []
        if op != "Conv":
            attrs["activation"] = d.pick(("Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid", "Clip"))
            parameters = {"LeakyRelu": [0.1], "HardSigmoid": [0.2, 0.5], "Clip": [-0.5, 1.0]}
            attrs["activation_params"] = parameters.get(attrs["activation"])
        return d.node(op, [x, w, *bias], group=group if group > 1 else None, kernel_shape=d.maybe(kernel), **attrs)

    return row


def _conv_transpose(d: Draw) -> FuzzNode:
    x = image(d)
    _, ci, *spatial = d.known(x).shape
    kernel = [d.integer(1, 4) for _ in spatial]
    group = d.pick((1, 1, 1, *(g for g in (2, ci) if ci % g == 0)))
    strides = [d.integer(1, 3) for _ in spatial]
    attrs: dict[str, Any] = {"strides": d.maybe(strides, 0.7)}
    if d.chance(0.5):
        attrs["pads"] = [d.integer(0, k // 2) for k in kernel] * 2
    elif d.chance(0.3):
        attrs["auto_pad"] = d.pick(("SAME_UPPER", "SAME_LOWER", "VALID"))
    if attrs["strides"] and d.chance(0.3):
        attrs["output_padding"] = [d.integer(0, s - 1) for s in strides]
    if d.chance(0.2):
        attrs["dilations"] = [d.integer(1, 2) for _ in spatial]
    co = d.pick((1, 2, 3, 4))
    w = d.new(d.array("float32", (ci, co, *kernel)), stored=d.chance(0.85) or None)
    bias = [d.like(x, (co * group,))] if d.chance(0.5) else []
    return d.node(
        "ConvTranspose", [x, w, *bias], group=group if group > 1 else None, kernel_shape=d.maybe(kernel), **attrs
    )


def _pool(op: str) -> Row:
    def row(d: Draw) -> FuzzNode:
        x = image(
            d, ("float32", "float32", "float16", "uint8", "int8") if op == "MaxPool" and d.version >= 12 else FLOAT32
        )
        kernel, attrs = window(d, d.known(x).shape[2:], pool=True)
        if op != "MaxPool" and d.version < (19 if op == "AveragePool" else 18):
            attrs.pop("dilations", None)
        if d.version >= (10 if op != "LpPool" else 18) and d.chance(0.3):
            attrs["ceil_mode"] = 1
        if op == "AveragePool" and d.chance(0.4):
            attrs["count_include_pad"] = d.integer(0, 1)
        if op == "LpPool":
            attrs["p"] = d.maybe(d.integer(1, 3))
        two = op == "MaxPool" and d.chance(0.25)
        attrs |= {"storage_order": d.integer(0, 1)} if two and d.chance(0.3) else {}
        return d.node(op, [x], outputs=1 + two, kernel_shape=kernel, **attrs)

    return row


def _batch_norm(d: Draw) -> FuzzNode:
    x = d.value(FLOAT32, 2, 5)
    shape = (d.known(x).shape[1],)
    names = [
        d.like(x, shape),
        d.like(x, shape),
        d.like(x, shape),
        d.new(d.array("float32", shape, 0.1, 3.0), stored=True),
    ]
    return d.node("BatchNormalization", [x, *names], epsilon=d.maybe(1e-3))


def _instance_norm(d: Draw) -> FuzzNode:
    x = d.value(FLOAT32, 3, 4)
    shape = (d.known(x).shape[1],)
    return d.node("InstanceNormalization", [x, d.like(x, shape), d.like(x, shape)], epsilon=d.maybe(1e-3))


def _group_norm(d: Draw) -> FuzzNode:
    x = image(d)
    c = d.known(x).shape[1]
    groups = d.pick([g for g in range(1, c + 1) if c % g == 0])
    n = groups if d.version < 21 else c
    return d.node("GroupNormalization", [x, d.like(x, (n,)), d.like(x, (n,))], num_groups=groups, epsilon=d.maybe(1e-3))


def _layer_norm(op: str, has_bias: bool = True) -> Row:
    def row(d: Draw) -> FuzzNode:
        x = d.value(FLOAT32, 1, 4)
        shape = d.known(x).shape
        axis = d.integer(-len(shape), len(shape) - 1) if d.chance(0.4) else -1
        names = [d.like(x, shape[axis:]), *([d.like(x, shape[axis:])] if has_bias and d.chance(0.6) else [])]
        return d.node(op, [x, *names], axis=axis if axis != -1 else d.maybe(-1), epsilon=d.maybe(1e-3))

    return row


def _skip_norm(op: str) -> Row:
    def row(d: Draw) -> FuzzNode:
        x = d.value(FLOAT32, 3, 3)
        shape = d.known(x).shape
        names = [d.like(x, shape), d.like(x, shape[-1:])]
        names += [d.like(x, shape[-1:])] * (op.endswith("SkipLayerNormalization") and d.chance(0.6))
        return d.node(op, [x, *names], epsilon=d.maybe(1e-3))

    return row


def _lrn(d: Draw) -> FuzzNode:
    return d.node(
        "LRN",
        [image(d, axes=2)],
        size=d.pick((1, 3, 5)),
        alpha=d.maybe(d.real(1e-4, 0.5)),
        beta=d.maybe(0.75),
        bias=d.maybe(d.pick((1.0, 2.0))),
    )


def _lp_norm(d: Draw) -> FuzzNode:
    x = d.value(FLOAT32, 1, 4)
    return d.node("LpNormalization", [x], axis=d.maybe(d.axis(d.known(x).ndim)), p=d.maybe(d.integer(1, 2)))


def _mean_variance(d: Draw) -> FuzzNode:
    return d.node("MeanVarianceNormalization", [d.value(FLOAT32, 4, 4)], axes=d.maybe(d.pick(([0, 2, 3], [2, 3], [1]))))


def _global(op: str) -> Row:
    return lambda d: d.node(op, [image(d)], p=d.maybe(d.integer(1, 3)) if op == "GlobalLpPool" else None)


def _det(d: Draw) -> FuzzNode:
    n = d.integer(1, 4)
    return d.node(
        "Det",
        [
            d.value(
                ("float32", "float64"),
                2,
                3,
                lambda a: a.shape[-1] == a.shape[-2] <= 6,
                lambda kind: d.array(kind, (n, n)),
            )
        ],
    )


_REDUCE = (
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSumSquare".split()
)

ROWS: dict[str, Row] = {
    **{op: _reduce(op) for op in _REDUCE},
    "ReduceSum": _reduce("ReduceSum", 13),
    **{op: _arg(op) for op in ("ArgMax", "ArgMin")},
    **{op: _over_axis(op) for op in ("Softmax", "LogSoftmax", "Hardmax")},
    "CumSum": _scan("CumSum"),
    "TopK": _top_k,
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Einsum": _einsum,
    "Det": _det,
    "Conv": _conv(),
    "ConvTranspose": _conv_transpose,
    **{op: _pool(op) for op in ("MaxPool", "AveragePool", "LpPool")},
    **{op: _global(op) for op in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")},
    "BatchNormalization": _batch_norm,
    "InstanceNormalization": _instance_norm,
    "GroupNormalization": _group_norm,
    "LayerNormalization": _layer_norm("LayerNormalization"),
    "RMSNormalization": _layer_norm("RMSNormalization", has_bias=False),
    "SimplifiedLayerNormalization": _layer_norm("SimplifiedLayerNormalization", has_bias=False),
    "LRN": _lrn,
    "LpNormalization": _lp_norm,
    "MeanVarianceNormalization": _mean_variance,
    "com.microsoft.FusedConv": _conv("com.microsoft.FusedConv"),
    "com.microsoft.FusedMatMul": _fused_matmul,
    "com.microsoft.SkipLayerNormalization": _skip_norm("com.microsoft.SkipLayerNormalization"),
    "com.microsoft.SkipSimplifiedLayerNormalization": _skip_norm("com.microsoft.SkipSimplifiedLayerNormalization"),
}
