"""The graph of a decoder: the same weights and one cache for each number of rows that a run may take."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.errors import ModelFormatError
from webinfer.graph.ir import Constant, Graph, Node, Op, TensorType, Value, apply
from webinfer.importers.gguf.architecture import Architecture
from webinfer.importers.gguf.container import GgufFile, StoredTensor
from webinfer.ops import gather, language, normalization
from webinfer.ops.language import BlockAttrs, BlockType, CachedAttentionAttrs, NoAttrs


def input_names(rows: int) -> tuple[str, str]:
    """The inputs of the part for so many rows: numbers of words, and which row's logits are wanted."""
    return f"ids_{rows}", f"last_{rows}"


def output_names(rows: int) -> tuple[str, str, str]:
    """The outputs of the part for so many rows: a word's number, logits of one row, the last block's result."""
    return f"word_{rows}", f"logits_{rows}", f"hidden_{rows}"


def decoder_graph(file: GgufFile, model: Architecture, rows: Sequence[int], capacity: int) -> Graph:
    """A graph with one part for each number of rows; the cache holds `capacity` positions.

    `place` is the first row's position and how many rows count, `options` how a word is drawn (see `ops.language`).

    Raises:  ModelFormatError naming a tensor that is missing or has other sizes
    """
    return _Decoder(file, model, capacity).graph(rows)


class _Decoder:
    def __init__(self, file: GgufFile, model: Architecture, capacity: int) -> None:
        self._file, self._model = file, model
        self._constants: dict[str, Value] = {}
        self._nodes: list[Node] = []
        self._place = Value("place", language.PLACE)
        self._options = Value("options", TensorType((4,)))
        shapes = language.cache_shapes(model.groups, model.head_width, capacity)
        self._cache = [
            tuple(
                Value(f"{kind}.{i}", TensorType(shape)) for kind, shape in zip(("keys", "values"), shapes, strict=True)
            )
            for i in range(model.blocks)
        ]
        speeds = struct.pack(f"<{len(model.speeds)}f", *model.speeds)
        self._speeds = Value("speeds", TensorType((len(model.speeds),)), Constant(memoryview(speeds), DType.FLOAT32))

    def graph(self, rows: Sequence[int]) -> Graph:
        graph = Graph(self._file.name, [self._place, self._options], [], [])
        for count in rows:
            self._part(graph, count)
            graph.parts.append(len(self._nodes))
        graph.nodes = self._nodes
        graph.resident = [value for pair in self._cache for value in pair]
        return graph

    def _part(self, graph: Graph, rows: int) -> None:
        ids, last = input_names(rows)
        given = Value(ids, TensorType((rows,), DType.INT32)), Value(last, TensorType((1,), DType.INT32))
        graph.inputs += given
        table = self._matrix("token_embd.weight", self._model.words, self._model.width)
        x = self._node(language.BLOCK_ROWS, [table[0], given[0]], table[1], "token_embd")
        for block in range(self._model.blocks):
            x = self._block(x, block)
        hidden = self._norm(x, "output_norm.weight")
        one = self._node(gather.GATHER, [hidden, given[1]], gather.GatherAttrs(0), "last row")
        head = "output.weight" if "output.weight" in self._file.tensors else "token_embd.weight"
        logits = self._product(one, head, self._model.words)
        word = self._node(language.SAMPLE, [logits, self._options], NoAttrs(), "sample")
        for value, name in zip((word, logits, hidden), output_names(rows), strict=True):
            value.name = name
            graph.outputs.append(value)

    def _block(self, x: Value, block: int) -> Value:
        m, at = self._model, f"blk.{block}."
        row = m.groups * m.head_width
        normed = self._norm(x, f"{at}attn_norm.weight")
        sizes = {"q": m.heads * m.head_width, "k": row, "v": row}
        q, k, v = (
            self._product(normed, f"{at}attn_{name}.weight", size, place=self._place) for name, size in sizes.items()
        )
        attrs = CachedAttentionAttrs(m.heads, m.groups, 2 * len(m.speeds), m.adjacent, m.head_width**-0.5)
        inputs = [q, k, v, self._place, self._speeds, *self._cache[block]]
        seen = self._node(language.CACHED_ATTENTION, inputs, attrs, f"{at}attention")
        x = self._product(seen, f"{at}attn_output.weight", m.width, x, self._place)
        normed = self._norm(x, f"{at}ffn_norm.weight")
        gate, up = (self._product(normed, f"{at}ffn_{n}.weight", m.inner, place=self._place) for n in ("gate", "up"))
        mixed = self._node(language.SWIGLU, [gate, up], NoAttrs(), f"{at}swiglu")
        return self._product(mixed, f"{at}ffn_down.weight", m.width, x, self._place)

    def _node(self, op: Op, inputs: Sequence[Value | None], attrs: object, label: str) -> Value:
        node = apply(op, inputs, attrs, label)
        self._nodes.append(node)
        return node.output

    def _product(self, x: Value, name: str, n: int, residual: Value | None = None, place: Value | None = None) -> Value:
        w, attrs = self._matrix(name, n, x.type.shape[1])
        bias_name = f"{name.removesuffix('weight')}bias"
        bias = self._vector(bias_name, n) if bias_name in self._file.tensors else None
        return self._node(language.BLOCK_MATMUL, [x, w, bias, residual, place], attrs, name.removesuffix(".weight"))

    def _norm(self, x: Value, name: str) -> Value:
        attrs = normalization.LayerNormAttrs(1, self._model.epsilon, False)
        scale = self._vector(name, x.type.shape[1])
        return self._node(normalization.LAYER_NORM, [x, scale, None], attrs, name.removesuffix(".weight"))

    def _stored(self, name: str, sizes: tuple[int, ...]) -> StoredTensor:
        found = self._file.tensors.get(name)
        if found is None or found.sizes != sizes:
            what = "missing" if found is None else f"of sizes {found.sizes}"
            raise ModelFormatError(f"{self._file.name!r}: tensor {name} is {what}, needs {sizes}; the file is damaged")
        return found

    def _matrix(self, name: str, n: int, k: int) -> tuple[Value, BlockAttrs]:
        stored = self._stored(name, (k, n))
        assert stored.type is not None  # `architecture_of` has refused others
        value = self._constants.get(name)
        if value is None:
            type = TensorType((n, language.row_bytes(stored.type, k)), DType.UINT8)
            value = self._constants[name] = Value(name, type, Constant(stored.data, DType.UINT8))
        return value, BlockAttrs(stored.type)

    def _vector(self, name: str, n: int) -> Value:
        stored = self._stored(name, (n,))
        dtype = {BlockType.F32: DType.FLOAT32, BlockType.F16: DType.FLOAT16}.get(stored.type)  # type: ignore[arg-type]
        if dtype is None:
            raise ModelFormatError(f"{self._file.name!r}: tensor {name} is {stored.type_name}; needs F32 or F16")
        value = self._constants.get(name)
        if value is None:
            value = self._constants[name] = Value(name, TensorType((n,)), Constant(stored.data, dtype))
        return value
