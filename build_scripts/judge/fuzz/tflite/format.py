"""TFLite models of random graphs, and what LiteRT computes: with its delegate, without, by its reference kernels."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from tests.importers.tflite_writer import Writer

from build_scripts.judge.fuzz.graphs import Array, FuzzGraph, FuzzNode, Quant
from build_scripts.judge.fuzz.noise import Noise, fed, near_zero
from build_scripts.judge.fuzz.tflite import elementwise, movement, sums
from build_scripts.judge.fuzz.tflite.drawing import TfliteDraw
from build_scripts.judge.fuzz.tflite.elementwise import Row

ROWS: dict[str, Row] = {**elementwise.ROWS, **movement.ROWS, **sums.ROWS}
EVERYDAY = (
    "ADD SUB MUL DIV RELU RELU6 LOGISTIC TANH HARD_SWISH LEAKY_RELU PRELU MAXIMUM MINIMUM CAST QUANTIZE DEQUANTIZE "
    "RESHAPE TRANSPOSE SQUEEZE EXPAND_DIMS CONCATENATION PACK SPLIT SLICE STRIDED_SLICE GATHER PAD MIRROR_PAD CONV_2D "
    "CONV_2D DEPTHWISE_CONV_2D AVERAGE_POOL_2D MAX_POOL_2D FULLY_CONNECTED BATCH_MATMUL SOFTMAX MEAN SUM "
    "RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR TRANSPOSE_CONV SPACE_TO_DEPTH DEPTH_TO_SPACE"
).split()
POLYNOMIALS = frozenset("ATAN2 COS ELU EXP GELU LOG LOGISTIC LOG_SOFTMAX SIN TANH".split())
EXACT = {"RANGE": (0, 1, 2)}  # inputs that decide shapes
MOVING = frozenset(movement.ROWS) - {"RESIZE_BILINEAR"}  # what computes nothing: its results are exact
MOVED_ODDS = 0.25  # of a quantised number to be one larger or smaller where noise moves it


class Tflite:
    """The format: `rows` draws nodes, `model` writes a file, `node_by_node` and `whole` are the runtime's numbers."""

    name, suffix, runtime, reference_name = "tflite", "tflite", "LiteRT", "a reference kernel of LiteRT"
    rows, everyday = ROWS, EVERYDAY

    def start(self, seed: Sequence[int]) -> TfliteDraw:
        """A graph of no nodes yet."""
        return TfliteDraw(seed)

    def model(self, graph: FuzzGraph) -> bytes:
        """The file's bytes."""
        writer, indices = Writer(), dict[str, int]()

        def index(name: str, dtype: str) -> int:
            if not name:
                return -1
            if name not in indices:
                quant = _written(graph.quants.get(name))
                array = graph.constants.get(name, graph.inputs.get(name, graph.values.get(name)))
                if name in graph.constants:
                    indices[name] = writer.constant(name, np.asarray(array), quant)
                elif name in graph.inputs:
                    shape = np.asarray(array).shape
                    signature = {"shape_signature": [-1] * len(shape)} if graph.open_sizes else {}
                    indices[name] = writer.input(name, shape, np.asarray(array).dtype.name, quant, **signature)
                else:
                    indices[name] = writer.tensor(name, () if array is None else array.shape, dtype, quant)
            return indices[name]

        for name in graph.inputs:
            index(name, "")
        for node in graph.nodes:
            outputs = [index(name, dtype) for name, dtype in zip(node.outputs, node.types, strict=True)]
            writer.node(node.op, [index(name, "") for name in node.inputs], outputs, **node.attrs)
        return writer.finish(*(index(name, "float32") for name in graph.outputs))

    def whole(self, graph: FuzzGraph) -> list[Array]:
        """LiteRT's outputs, with its defaults.

        Raises:  RuntimeError or ValueError
        """
        return self._run(graph, OpResolverType.AUTO)

    def run_piece(self, piece: FuzzGraph) -> list[Array]:
        """What LiteRT makes of some nodes without its delegate.

        Raises:  RuntimeError or ValueError
        """
        return self._run(piece, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)

    def reference(self, graph: FuzzGraph) -> list[Array]:
        """What LiteRT's reference kernels compute.

        Raises:  RuntimeError or ValueError
        """
        return self._run(graph, OpResolverType.BUILTIN_REF)

    def _run(self, graph: FuzzGraph, resolver: OpResolverType) -> list[Array]:
        interpreter = Interpreter(
            model_content=self.model(graph), num_threads=1, experimental_op_resolver_type=resolver
        )
        interpreter.allocate_tensors()
        for detail, array in zip(interpreter.get_input_details(), graph.inputs.values(), strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        return [interpreter.get_tensor(detail["index"]).copy() for detail in interpreter.get_output_details()]

    def node_by_node(self, graph: FuzzGraph, noise: Noise | None = None) -> dict[str, Array]:
        """All values, each node in a model of its own: nothing is fused; noise moves what goes in and comes out."""
        values = {**graph.inputs, **graph.constants}
        for node in graph.nodes:
            piece = self.piece(graph, [node], values, noise)
            for name, y in zip(piece.outputs, self.run_piece(piece), strict=True):
                exact = noise is None or node.op in MOVING
                values[name] = y if exact else self._moved(graph, node, name, y, noise)
        return values

    def _moved(self, graph: FuzzGraph, node: FuzzNode, name: str, y: Array, noise: Noise | None) -> Array:
        assert noise is not None
        if name in graph.quants:
            return noise.stepped(y, MOVED_ODDS)
        return noise.moved(y, near_zero([node], POLYNOMIALS, graph))

    def piece(
        self, graph: FuzzGraph, nodes: Sequence[FuzzNode], values: Mapping[str, Array], noise: Noise | None = None
    ) -> FuzzGraph:
        """A graph of some nodes, fed by what is known."""
        names = list(dict.fromkeys(name for node in nodes for name in node.inputs if name))
        exact = {node.inputs[i] for node in nodes for i in EXACT.get(node.op, ())}
        given, stored = fed(graph, names, exact, values, noise)
        outputs = tuple(name for node in nodes for name in node.outputs)
        return FuzzGraph(graph.version, tuple(nodes), given, stored, outputs, {}, graph.quants)

    def hidden(self, nodes: list[FuzzNode]) -> set[str]:
        """Results that are no tensors: none."""
        return set()

    def is_refusal(self, error: Exception) -> bool:
        """Whether LiteRT refused a node; anything else is a fault of the row that drew it."""
        return isinstance(error, (RuntimeError, ValueError))


def _written(quant: Quant | None) -> Any:
    return None if quant is None else (list(quant.scales), list(quant.zero_points), quant.axis)
