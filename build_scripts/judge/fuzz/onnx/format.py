"""ONNX models of random graphs, and what ONNX Runtime and the format's reference compute."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from build_scripts.judge.fuzz.draw import Draw
from build_scripts.judge.fuzz.graphs import Array, FuzzGraph, FuzzNode, read_names
from build_scripts.judge.fuzz.noise import Noise, fed, near_zero
from build_scripts.judge.fuzz.onnx import control, elementwise, language, movement, quantized, recurrent, sums
from build_scripts.judge.fuzz.onnx.elementwise import CODES, Row

ROWS: dict[str, Row] = {
    **elementwise.ROWS, **movement.ROWS, **sums.ROWS, **quantized.ROWS, **recurrent.ROWS, **control.ROWS,
    **language.ROWS,
}  # fmt: skip
VERSIONS, VERSION_ODDS = (9, 11, 13, 15, 17, 18, 20, 21, 22, 23, 24), (1, 2, 5, 2, 5, 3, 2, 3, 1, 2, 1)
BITS_BELOW = {18: 8, 21: 9}  # the file's own version, by opset; newer opsets have 10
EXACT = {"Resize": (2, 3), "Range": (0, 1, 2), "OneHot": (0, 1, 2)}  # inputs that decide shapes or positions
EVERYDAY = (
    "Add Mul Sub Div Relu Sigmoid Tanh HardSwish LeakyRelu Clip PRelu Identity Dropout Cast Expand Reshape Transpose "
    "Unsqueeze Squeeze Flatten Concat Split Slice Gather Pad Conv MaxPool AveragePool GlobalAveragePool "
    "BatchNormalization LayerNormalization MatMul Gemm Softmax ReduceMean Resize Pow Sqrt Erf Where"
    " Conv Conv Conv MatMul"
).split()
POLYNOMIALS = frozenset((
    "Acos Acosh Asin Asinh Atan Atanh Attention BlackmanWindow Cos Cosh DFT Erf GRU Gelu HammingWindow HannWindow "
    "LSTM Log Mish RNN Selu Elu Celu Sigmoid Sin Sinh Softplus Swish Tan Tanh ReduceLogSum ReduceLogSumExp LogSoftmax "
    "com.microsoft.BiasGelu com.microsoft.FastGelu com.microsoft.FusedConv com.microsoft.Gelu "
    "com.microsoft.QuickGelu com.microsoft.MultiHeadAttention GridSample"
).split())  # fmt: skip
DOMAINS = (("com.microsoft", 1), ("ai.onnx.ml", 3))


class Refused(RuntimeError):
    """The runtime gave nothing for an output."""


class Onnx:
    """The format: `rows` draws nodes, `model` writes a file, `node_by_node` and `whole` are the runtime's numbers."""

    name, suffix, runtime, reference_name = "onnx", "onnx", "onnxruntime", "onnx.reference"
    rows = ROWS
    everyday = EVERYDAY

    def start(self, seed: Sequence[int]) -> Draw:
        """A graph of no nodes yet, of a random opset."""
        version = int(
            np.random.default_rng([*seed, 9]).choice(VERSIONS, p=np.asarray(VERSION_ODDS) / sum(VERSION_ODDS))
        )
        return Draw(seed, version)

    def model(self, graph: FuzzGraph) -> bytes:
        """The file's bytes."""
        return bytes(_model(graph).SerializeToString())

    def whole(self, graph: FuzzGraph) -> list[Array]:
        """ONNX Runtime's outputs, with its defaults.

        Raises:  Exception of its own kinds
        """
        return _run(_session(self.model(graph)), graph)

    def node_by_node(self, graph: FuzzGraph, noise: Noise | None = None) -> dict[str, Array]:
        """All values, each node in a model of its own: nothing is fused; noise moves what goes in and comes out."""
        values = {**graph.inputs, **graph.constants}
        for nodes in pieces(graph):
            piece = self.piece(graph, nodes, values, noise)
            for name, y in zip(piece.outputs, self.run_piece(piece), strict=True):
                values[name] = y if noise is None else noise.moved(y, near_zero(nodes, POLYNOMIALS, piece))
        return values

    def piece(
        self, graph: FuzzGraph, nodes: Sequence[FuzzNode], values: Mapping[str, Array], noise: Noise | None = None
    ) -> FuzzGraph:
        """A graph of some nodes, fed by what is known."""
        names = sorted(set().union(*map(read_names, nodes)) - {name for node in nodes for name in node.outputs})
        exact = {node.inputs[i] for node in nodes for i in EXACT.get(node.op, ()) if i < len(node.inputs)}
        given, stored = fed(graph, names, exact, values, noise)
        outputs = [name for node in nodes for name in node.outputs if name and name not in graph.hidden]
        return FuzzGraph(
            graph.version,
            tuple(nodes),
            given,
            stored,
            tuple(outputs),
            {},
            graph.quants,
            graph.hidden,
        )

    def run_piece(self, piece: FuzzGraph) -> list[Array]:
        """What the runtime makes of some nodes, as they are.

        Raises:  Exception of its own kinds
        """
        return _run(_session(self.model(piece), optimised=False), piece)

    def hidden(self, nodes: list[FuzzNode]) -> set[str]:
        """Results that are no tensors."""
        return control.hidden(nodes)

    def is_refusal(self, error: Exception) -> bool:
        """Whether the runtime refused a node; anything else is a fault of the row that drew it."""
        return isinstance(error, Refused) or type(error).__module__.startswith("onnxruntime")

    def reference(self, graph: FuzzGraph) -> list[Array]:
        """What the package onnx computes.

        Raises:  Exception of any kind: it is not complete
        """
        from onnx.reference import ReferenceEvaluator

        with np.errstate(all="ignore"):
            found = ReferenceEvaluator(_model(graph)).run(list(graph.outputs), dict(graph.inputs))
        return [np.asarray(y) for y in found]


def pieces(graph: FuzzGraph) -> Iterator[list[FuzzNode]]:
    """The nodes one at a time; nodes that values join which are no tensors together."""
    piece: list[FuzzNode] = []
    for i, node in enumerate(graph.nodes):
        piece.append(node)
        made = {name for one in piece for name in one.outputs} & graph.hidden
        if not any(made & set(later.inputs) for later in graph.nodes[i + 1 :]):
            yield piece
            piece = []


def _model(graph: FuzzGraph) -> onnx.ModelProto:
    opsets = [helper.make_opsetid("", graph.version), *(helper.make_opsetid(*domain) for domain in DOMAINS)]
    bits = next((bits for below, bits in BITS_BELOW.items() if graph.version < below), 10)
    return helper.make_model(_graph(graph), opset_imports=opsets, ir_version=bits)


def _graph(graph: FuzzGraph, name: str = "fuzz") -> onnx.GraphProto:
    stored = [numpy_helper.from_array(a, n) for n, a in graph.constants.items()]
    outputs = [_info(n, graph.values.get(n)) for n in graph.outputs]
    inputs = [_open(n, a) if graph.open_sizes else _info(n, a) for n, a in graph.inputs.items()]
    return helper.make_graph(list(map(_node, graph.nodes)), name, inputs, outputs, stored)


def _open(name: str, array: Array) -> onnx.ValueInfoProto:
    shape = [f"{name}_{i}" for i in range(array.ndim)]
    return helper.make_tensor_value_info(name, CODES[array.dtype.name], shape)


def _info(name: str, array: Array | None) -> onnx.ValueInfoProto:
    if array is None:
        return onnx.ValueInfoProto(name=name)
    return helper.make_tensor_value_info(name, CODES[array.dtype.name], array.shape)


def _node(node: FuzzNode) -> onnx.NodeProto:
    domain, _, op = node.op.rpartition(".")
    made = helper.make_node(op, list(node.inputs), list(node.outputs), domain=domain)
    for key, value in node.attrs.items():
        kind = onnx.AttributeProto.INTS if isinstance(value, list) and not value else None
        made.attribute.append(helper.make_attribute(key, _attribute(value), attr_type=kind))
    return made


def _attribute(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return numpy_helper.from_array(value)
    return _graph(value, "inner") if isinstance(value, FuzzGraph) else value


@functools.cache
def _options(optimised: bool) -> onnxruntime.SessionOptions:
    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return options


def _session(model: bytes, optimised: bool = True) -> Any:
    return onnxruntime.InferenceSession(model, _options(optimised), providers=["CPUExecutionProvider"])


def _run(session: Any, graph: FuzzGraph) -> list[Array]:
    found = session.run(list(graph.outputs), dict(graph.inputs))
    if any(y is None for y in found):
        raise Refused("an output is None")
    return [np.asarray(y) for y in found]
