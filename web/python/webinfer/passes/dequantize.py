"""A quantised graph becomes one of real numbers: the same network, computed in float32."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterable

from webinfer.dtypes import DType
from webinfer.graph.ir import Constant, Graph, Node, Quantization, State, TensorType, Value
from webinfer.graph.queries import remove, substitute
from webinfer.ops import elementwise as ew
from webinfer.ops.activation import Activation
from webinfer.passes.sink_dequantize import sink_dequantize
from webinfer.rewrite.products import AXES

# Elements of a constant up to which it is converted here; larger ones are by the backend, at load: half and double
# changed none of 146 graphs.
SMALL = 4096


def dequantize(graph: Graph) -> int:
    """Number of values that became real; inputs and outputs of the graph are among them, under their names.

    Results are no longer rounded, nor cut to the range of 8 bits but where that stands for RELU or RELU6.
    What a graph wants of stored bits (tables, top_k of bytes) is the same order of real numbers.
    """
    if any(node.op is ew.CAST and node.attrs.quant is not None for node in graph.nodes):
        return _leave_rounding_out(graph)  # integers of ONNX have no scale of their own: they stay where wanted
    found: dict[Value, None] = dict.fromkeys(v for v in graph.inputs if _is_quantized(v))
    constants: dict[Value, Value] = {}
    made: list[Node] = []
    for node in graph.nodes:
        _scale_bias(node)
        for i, value in enumerate(node.inputs):
            if value is not None and value.is_constant and _is_quantized(value):
                if value not in constants:
                    constants[value] = _real_constant(value, made)
                node.inputs[i] = constants[value]
        found |= dict.fromkeys(v for v in node.outputs if _is_quantized(v))
        if getattr(node.attrs, "activation", None) is Activation.NONE:
            node.attrs = dataclasses.replace(node.attrs, activation=_implied_activation(node.outputs[0].type))
        if getattr(node.attrs, "out_type", None) is not None:
            node.attrs = dataclasses.replace(node.attrs, out_type=None)
        if node.op.name == "pad":
            node.attrs = dataclasses.replace(node.attrs, value=_real_fill(node))
    graph.states = [_real_state(state, found) for state in graph.states]
    for value in found:
        value.type = TensorType(value.type.shape)
    graph.nodes[:0] = made
    _drop_conversions(graph)
    return len(found) + len(constants)


def _leave_rounding_out(graph: Graph) -> int:
    """Number of times that real numbers are no longer rounded to integers and made real again."""
    sink_dequantize(graph)
    writers = graph.producers()
    count = 0
    for node in graph.nodes:
        source = writers.get(node.required_input(0)) if node.op is ew.DEQUANTIZE else None
        if source is not None and source.op is ew.QUANTIZE:
            node.op, node.attrs, node.inputs = ew.IDENTITY, ew.UnaryAttrs(), [source.required_input(0)]
            count += 1
    return count


def _real_state(state: State, found: Iterable[Value]) -> State:
    """The state with its first value in float32, where the graph held it quantised."""
    quant = state.type.quant
    if quant is None or not any(value.name and value.name in (state.input, state.output) for value in found):
        return state
    type, initial = TensorType(state.type.shape), state.initial
    if initial is not None:
        stored = struct.unpack(f"<{type.size}{state.type.dtype.letter}", initial)
        numbers = [(number - quant.zero_points[0]) * quant.scales[0] for number in stored]
        initial = memoryview(struct.pack(f"<{type.size}f", *numbers))
    return dataclasses.replace(state, type=type, initial=initial)


def _is_quantized(value: Value) -> bool:
    return value.type.quant is not None and not value.type.dtype.is_float


def _implied_activation(type: TensorType) -> Activation:
    """What a range that begins at zero stands for: writers leave RELU and RELU6 to the stored type."""
    quant = type.quant
    if quant is None or type.dtype.itemsize != 1 or len(quant.scales) != 1:
        return Activation.NONE
    least, greatest = type.dtype.range
    if (quant.zero_points or (0,))[0] != least:
        return Activation.NONE
    end = quant.scales[0] * (greatest - least)
    return Activation.RELU6 if abs(end - 6.0) <= quant.scales[0] else Activation.RELU


def _scale_bias(node: Node) -> None:
    """Gives an integer bias the scale that it has in a sum of products: that of the data by that of the weights."""
    if node.op not in AXES or len(node.inputs) < 3:
        return
    x, w, bias = node.inputs[:3]
    if x is None or w is None or bias is None or bias.type.dtype is not DType.INT32 or bias.type.quant is not None:
        return
    if x.type.quant is not None and w.type.quant is not None:
        scales = tuple(x.type.quant.scales[0] * s for s in w.type.quant.scales)
        quant = Quantization(scales, (0,) * len(scales), 0 if len(scales) > 1 else None)
        bias.type = dataclasses.replace(bias.type, quant=quant)


def _real_constant(value: Value, made: list[Node]) -> Value:
    """The constant in float32: its bytes if it is small, else the result of a step that runs at load."""
    real, quant = Value(value.name, TensorType(value.type.shape)), value.type.quant
    assert quant is not None
    assert value.constant is not None
    if value.type.size > SMALL or value.constant.sparsity is not None:
        made.append(Node(ew.DEQUANTIZE, [value], [real], ew.CastAttrs(DType.FLOAT32), value.name))
        return real
    inner = 1
    if quant.axis is not None:
        for n in value.type.shape[quant.axis + 1 :]:
            inner *= n
    channels, zeros = len(quant.scales), quant.zero_points or (0,)
    numbers = [
        (number - zeros[i // inner % channels % len(zeros)]) * quant.scales[i // inner % channels]
        for i, number in enumerate(value.numbers())
    ]
    real.constant = Constant(memoryview(struct.pack(f"<{len(numbers)}f", *numbers)), DType.FLOAT32)
    return real


def _real_fill(node: Node) -> float:
    """The number that a PAD writes, which quantised ones hold as stored bits."""
    value, x = float(node.attrs.value), node.inputs[0]
    if x is None or x.type.quant is None or not _is_quantized(node.outputs[0]):
        return value
    return (value - (x.type.quant.zero_points or (0,))[0]) * x.type.quant.scales[0]


def _drop_conversions(graph: Graph) -> None:
    """Conversions between a value and itself vanish, or become copies where the graph's results need them."""
    outputs, replacements, dropped = set(graph.outputs), dict[Value, Value](), set[Node]()
    for node in graph.nodes:
        if node.op not in (ew.QUANTIZE, ew.DEQUANTIZE) or node.inputs[0] is None or _is_quantized(node.inputs[0]):
            continue
        if node.output in outputs:
            node.op, node.attrs = ew.IDENTITY, ew.UnaryAttrs()
        else:
            replacements[node.output] = node.inputs[0]
            dropped.add(node)
    remove(graph, dropped)
    substitute(graph, replacements)
