"""TensorFlow.js models of random graphs, and what TensorFlow.js computes in Node: in JavaScript, by WebAssembly."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.importers import tfjs_writer as writer

from build_scripts.judge.fuzz.draw import Draw
from build_scripts.judge.fuzz.graphs import Array, FuzzGraph, FuzzNode
from build_scripts.judge.fuzz.noise import Noise, fed, near_zero
from build_scripts.judge.fuzz.tfjs import elementwise, movement, sums
from build_scripts.judge.fuzz.tfjs.elementwise import KINDS, Row
from build_scripts.judge.fuzz.tfjs.node import NodeProcess, Refused

ROWS: dict[str, Row] = {**elementwise.ROWS, **movement.ROWS, **sums.ROWS}
EVERYDAY = (
    "AddV2 Sub Mul RealDiv Relu Relu6 Sigmoid Tanh Identity LeakyRelu Prelu Maximum Minimum Cast Reshape Transpose "
    "Squeeze ExpandDims ConcatV2 Pack Split Slice StridedSlice GatherV2 Pad MirrorPad Conv2D _FusedConv2D MatMul "
    "DepthwiseConv2dNative AvgPool MaxPool _FusedMatMul BatchMatMulV2 Softmax Mean Sum ResizeBilinear "
    "ResizeNearestNeighbor Conv2DBackpropInput BiasAdd FusedBatchNormV3 ClipByValue"
).split()
WEIGHTS = {"float32": 5.0, "int32": 2.0, "bool": 0.7}
POLYNOMIALS = frozenset((
    "Acos Acosh Asin Asinh Atan Atanh Atan2 Cos Cosh Elu Erf Exp Expm1 Log Log1p LogSoftmax Selu Sigmoid Sin Sinh "
    "Softplus Tan Tanh _FusedConv2D _FusedMatMul"
).split())  # fmt: skip
EXACT = {"Range": (0, 1, 2)}  # inputs that decide shapes
MOVING = frozenset(movement.ROWS) - {"ResizeBilinear"}  # what computes nothing: its results are exact


class Tfjs:
    """The format: `rows` draws nodes, `model` writes a file, `node_by_node` and `whole` are the runtime's numbers."""

    name, suffix, runtime, reference_name = "tfjs", "zip", "TensorFlow.js", "TensorFlow.js by WebAssembly"
    rows, everyday = ROWS, EVERYDAY

    def __init__(self) -> None:
        self._node = NodeProcess()

    def start(self, seed: Sequence[int]) -> Draw:
        """A graph of no nodes yet."""
        return Draw(seed, 1, dict(WEIGHTS))

    def model(self, graph: FuzzGraph) -> bytes:
        """The model's files, zipped."""
        return writer.zipped(_files(graph))

    def whole(self, graph: FuzzGraph) -> list[Array]:
        """What TensorFlow.js computes in plain JavaScript.

        Raises:  Refused
        """
        return self._run(graph, "cpu")

    def run_piece(self, piece: FuzzGraph) -> list[Array]:
        """As `whole`."""
        return self._run(piece, "cpu")

    def reference(self, graph: FuzzGraph) -> list[Array]:
        """What its WebAssembly kernels compute.

        Raises:  Refused
        """
        return self._run(graph, "wasm")

    def _run(self, graph: FuzzGraph, backend: str) -> list[Array]:
        places = _places(graph.nodes)
        outputs = [places[name] for name in graph.outputs]
        return self._node.ask(_files(graph), graph.inputs, outputs, backend)

    def node_by_node(self, graph: FuzzGraph, noise: Noise | None = None) -> dict[str, Array]:
        """All values, each node in a model of its own: nothing is fused; noise moves what goes in and comes out."""
        values = {**graph.inputs, **graph.constants}
        for node in graph.nodes:
            piece = self.piece(graph, [node], values, noise)
            for name, y in zip(piece.outputs, self.run_piece(piece), strict=True):
                exact = noise is None or node.op in MOVING
                values[name] = y if exact or noise is None else noise.moved(y, near_zero([node], POLYNOMIALS, piece))
        return values

    def piece(
        self, graph: FuzzGraph, nodes: Sequence[FuzzNode], values: Mapping[str, Array], noise: Noise | None = None
    ) -> FuzzGraph:
        """A graph of some nodes, fed by what is known."""
        names = list(dict.fromkeys(name for node in nodes for name in node.inputs if name))
        exact = {node.inputs[i] for node in nodes for i in EXACT.get(node.op, ())}
        given, stored = fed(graph, names, exact, values, noise)
        outputs = tuple(name for node in nodes for name in node.outputs)
        return FuzzGraph(1, tuple(nodes), given, stored, outputs)

    def hidden(self, nodes: list[FuzzNode]) -> set[str]:
        """Results that are no tensors: none."""
        return set()

    def is_refusal(self, error: Exception) -> bool:
        """Whether TensorFlow.js refused a node; anything else is a fault of the row that drew it."""
        return isinstance(error, Refused)


def _places(nodes: Sequence[FuzzNode]) -> dict[str, str]:
    """How the format refers to results: the node's name, and which result it is."""
    return {
        name: node.outputs[0] if i == 0 else f"{node.outputs[0]}:{i}"
        for node in nodes
        for i, name in enumerate(node.outputs)
    }


def _files(graph: FuzzGraph) -> dict[str, bytes]:
    places = _places(graph.nodes)
    shapes = {n: [-1] * a.ndim if graph.open_sizes else a.shape for n, a in graph.inputs.items()}
    nodes = [writer.placeholder(n, shapes[n], KINDS[a.dtype.name]) for n, a in graph.inputs.items()]
    for node in graph.nodes:
        inputs = [places.get(name, name) for name in node.inputs]
        nodes.append(writer.node(node.outputs[0], node.op, *inputs, **node.attrs))
    outputs: dict[str, Any] = {}
    for name in graph.outputs:
        place = places[name]
        outputs[name] = {"name": place if ":" in place else f"{place}:0"}
    signature = {"inputs": {n: {"name": f"{n}:0"} for n in graph.inputs}, "outputs": outputs}
    return writer.model(nodes, graph.constants, signature=signature)
