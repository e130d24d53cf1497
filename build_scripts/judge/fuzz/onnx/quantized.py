"""Random nodes on quantised numbers: rows come with their scales and zero points."""

from typing import Any

from build_scripts.judge.fuzz.draw import Draw
from build_scripts.judge.fuzz.graphs import FuzzNode
from build_scripts.judge.fuzz.onnx.elementwise import Row
from build_scripts.judge.fuzz.onnx.sums import image, window

BYTES = ("uint8", "int8")


def _scale(d: Draw, shape: tuple[int, ...] = ()) -> str:
    return d.new(d.array("float32", shape, 0.005, 0.2), stored=True)


def _zero(d: Draw, kind: str, shape: tuple[int, ...] = ()) -> str:
    return d.new(d.array(kind, shape, *((0, 255) if kind == "uint8" else (-20, 20))), stored=True)


def _quantize(d: Draw) -> FuzzNode:
    x = d.value(("float32",))
    shape = d.known(x).shape
    axis = d.axis(len(shape)) if shape and d.version >= 13 and d.chance(0.3) else None
    sizes = () if axis is None else (shape[axis],)
    zero = [_zero(d, d.pick(BYTES), sizes)] if d.chance(0.85) else []
    return d.node("QuantizeLinear", [x, _scale(d, sizes), *zero], axis=axis)


def _dequantize(d: Draw) -> FuzzNode:
    x = d.value((*BYTES, "int32"))
    a = d.known(x)
    axis = d.axis(a.ndim) if a.ndim and d.version >= 13 and d.chance(0.3) else None
    sizes = () if axis is None else (a.shape[axis],)
    zero = [_zero(d, a.dtype.name, sizes)] if a.dtype.itemsize == 1 and d.chance(0.8) else []
    return d.node("DequantizeLinear", [x, _scale(d, sizes), *zero], axis=axis)


def _dynamic(d: Draw) -> FuzzNode:
    return d.node("DynamicQuantizeLinear", [d.value(("float32",))], outputs=3)


def _matmul_integer(d: Draw) -> FuzzNode:
    x = d.value(BYTES, 2, 3)
    k = d.known(x).shape[-1]
    kind = d.pick(BYTES)
    w = d.new(d.array(kind, (k, d.size())), stored=True)
    zeros = [[], [_zero(d, d.known(x).dtype.name)], [_zero(d, d.known(x).dtype.name), _zero(d, kind)]]
    return d.node("MatMulInteger", [x, w, *d.pick(zeros)])


def _conv_parts(d: Draw) -> tuple[str, str, int, dict[str, Any]]:
    x = image(d, BYTES, axes=2)
    ci = d.known(x).shape[1]
    kernel, attrs = window(d, d.known(x).shape[2:])
    group = d.pick((1, 1, ci))
    co = group * d.pick((1, 2, 4) if group == 1 else (1, 2))
    kind = d.pick(("uint8", "int8") if d.known(x).dtype.name == "uint8" else ("int8",))
    w = d.new(d.array(kind, (co, ci // group, *kernel)), stored=True)
    return x, w, co, {"group": group if group > 1 else None, **attrs}


def _conv_integer(d: Draw) -> FuzzNode:
    x, w, _, attrs = _conv_parts(d)
    zeros = [[], [_zero(d, d.known(x).dtype.name)], [_zero(d, d.known(x).dtype.name), _zero(d, d.known(w).dtype.name)]]
    return d.node("ConvInteger", [x, w, *d.pick(zeros)], **attrs)


def _qlinear_conv(d: Draw) -> FuzzNode:
    x, w, co, attrs = _conv_parts(d)
    kind, per = d.known(x).dtype.name, d.chance(0.5)
    zero = d.new(
        d.array(
            d.known(w).dtype.name, (co,) if per else (), *((0, 0) if d.known(w).dtype.name == "int8" else (100, 140))
        ),
        stored=True,
    )
    bias = [d.new(d.array("int32", (co,), -500, 500), stored=True)] if d.chance(0.6) else []
    scales = d.new(d.array("float32", (co,) if per else (), 0.001, 0.02), stored=True)
    return d.node(
        "QLinearConv", [x, _scale(d), _zero(d, kind), w, scales, zero, _scale(d), _zero(d, kind), *bias], **attrs
    )


def _qlinear_matmul(d: Draw) -> FuzzNode:
    x = d.value(BYTES, 2, 3)
    kind, k = d.known(x).dtype.name, d.known(x).shape[-1]
    w = d.new(d.array(kind, (k, d.size())), stored=True)
    return d.node(
        "QLinearMatMul", [x, _scale(d), _zero(d, kind), w, _scale(d), _zero(d, kind), _scale(d), _zero(d, kind)]
    )


def _qlinear_binary(op: str) -> Row:
    def row(d: Draw) -> FuzzNode:
        x = d.value(BYTES)
        kind = d.known(x).dtype.name
        return d.node(
            op, [x, _scale(d), _zero(d, kind), d.partner(x), _scale(d), _zero(d, kind), _scale(d), _zero(d, kind)]
        )

    return row


def _qlinear_unary(op: str, **attrs: Any) -> Row:
    def row(d: Draw) -> FuzzNode:
        x = d.value(BYTES)
        kind = d.known(x).dtype.name
        return d.node(op, [x, _scale(d), _zero(d, kind), _scale(d), _zero(d, kind)], **attrs)

    return row


def _qlinear_pool(op: str) -> Row:
    def row(d: Draw) -> FuzzNode:
        x = image(d, BYTES, axes=2)
        kind = d.known(x).dtype.name
        attrs: dict[str, Any] = {}
        if not op.endswith("GlobalAveragePool"):
            kernel, attrs = window(d, d.known(x).shape[2:], pool=True)
            attrs.pop("dilations", None)
            attrs |= {"kernel_shape": kernel, "count_include_pad": d.maybe(1)}
        return d.node(op, [x, _scale(d), _zero(d, kind), _scale(d), _zero(d, kind)], **attrs)

    return row


def _qlinear_concat(d: Draw) -> FuzzNode:
    x = d.value(BYTES, 1, 4)
    a, axis = d.known(x), d.integer(0, d.known(x).ndim - 1)
    kind = a.dtype.name
    parts = [
        x,
        *(
            d.new(d.array(kind, [d.size() if i == axis else n for i, n in enumerate(a.shape)]))
            for _ in range(d.integer(0, 2))
        ),
    ]
    inputs = [name for part in parts for name in (part, _scale(d), _zero(d, kind))]
    return d.node("com.microsoft.QLinearConcat", [_scale(d), _zero(d, kind), *inputs], axis=axis)


def _qlinear_softmax(d: Draw) -> FuzzNode:
    x = d.value(BYTES, 1, 3)
    kind = d.known(x).dtype.name
    return d.node(
        "com.microsoft.QLinearSoftmax",
        [
            x,
            _scale(d),
            _zero(d, kind),
            d.constant(1 / 256, "float32"),
            d.constant(0 if kind == "uint8" else -128, kind),
        ],
        axis=d.axis(d.known(x).ndim),
        opset=13,
    )


def _dynamic_matmul(d: Draw) -> FuzzNode:
    x = d.value(("float32",), 2, 3)
    kind, n = d.pick(BYTES), d.size()
    w = d.new(d.array(kind, (d.known(x).shape[-1], n)), stored=True)
    zero = [_zero(d, kind)] if d.chance(0.6) else []
    return d.node("com.microsoft.DynamicQuantizeMatMul", [x, w, _scale(d), *zero])


def _integer_to_float(d: Draw) -> FuzzNode:
    x = d.value(BYTES, 2, 3)
    kind, of_x = d.pick(BYTES), d.known(x).dtype.name
    w = d.new(d.array(kind, (d.known(x).shape[-1], d.size())), stored=True)
    return d.node("com.microsoft.MatMulIntegerToFloat", [x, w, _scale(d), _scale(d), _zero(d, of_x), _zero(d, kind)])


def _way_and_back(d: Draw) -> list[FuzzNode]:
    """Float, stored, float again: what quantisers put around operators."""
    x, kind = d.value(("float32",)), d.pick(BYTES)
    scale, zero = _scale(d), _zero(d, kind)
    there = d.node("QuantizeLinear", [x, scale, zero])
    return [there, d.node("DequantizeLinear", [there.outputs[0], scale, zero])]


ROWS: dict[str, Row] = {
    "ConvInteger": _conv_integer,
    "DequantizeLinear": _dequantize,
    "DynamicQuantizeLinear": _dynamic,
    "MatMulInteger": _matmul_integer,
    "QLinearConv": _qlinear_conv,
    "QLinearMatMul": _qlinear_matmul,
    "QuantizeLinear": _quantize,
    "QuantizeLinear and back": _way_and_back,
    "com.microsoft.DynamicQuantizeMatMul": _dynamic_matmul,
    "com.microsoft.MatMulIntegerToFloat": _integer_to_float,
    "com.microsoft.QLinearAdd": _qlinear_binary("com.microsoft.QLinearAdd"),
    "com.microsoft.QLinearMul": _qlinear_binary("com.microsoft.QLinearMul"),
    "com.microsoft.QLinearAveragePool": _qlinear_pool("com.microsoft.QLinearAveragePool"),
    "com.microsoft.QLinearConcat": _qlinear_concat,
    "com.microsoft.QLinearGlobalAveragePool": _qlinear_pool("com.microsoft.QLinearGlobalAveragePool"),
    "com.microsoft.QLinearLeakyRelu": _qlinear_unary("com.microsoft.QLinearLeakyRelu", alpha=0.1),
    "com.microsoft.QLinearSigmoid": _qlinear_unary("com.microsoft.QLinearSigmoid"),
    "com.microsoft.QLinearSoftmax": _qlinear_softmax,
}
