"""The graph of a decoder: one part for each number of tokens per run, all over the same weights and KV cache."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.errors import ModelFormatError
from webinfer.graph.ir import Constant, Graph, Node, Op, TensorType, Value, apply
from webinfer.importers.gguf.architecture import HEAD_NORMS, Architecture
from webinfer.importers.gguf.container import GgufFile, StoredTensor
from webinfer.ops import gather, language, movement, normalization
from webinfer.ops.language import BlockAttrs, BlockType, CachedAttentionAttrs
from webinfer.ops.registry import NoAttrs


def input_names(rows: int) -> tuple[str, str]:
    """Input names of the part for `rows` tokens: token ids, and the row whose logits are computed."""
    return f"ids_{rows}", f"last_{rows}"


def output_names(rows: int) -> tuple[str, str, str]:
    """Output names of the part for `rows` tokens: the sampled token, one row of logits, the last hidden states."""
    return f"token_{rows}", f"logits_{rows}", f"hidden_{rows}"


def batch_names(slot: int) -> tuple[str, str, str]:
    """Names in the batch part: a sequence's position, its sampling options, and its next token."""
    return f"place_of_{slot}", f"options_of_{slot}", f"token_of_{slot}"


BATCH_IDS = "ids_batch"


def cache_name(kind: str, block: int, slot: int = 0) -> str:
    """The resident value that holds the "keys" or "values" of one layer and one sequence."""
    return f"{kind}.{block}" if not slot else f"{kind}.{block}.{slot}"


def decoder_graph(
    file: GgufFile, model: Architecture, rows: Sequence[int], capacity: int, batch_size: int = 1,
    cache: DType = DType.FLOAT32,
) -> Graph:  # fmt: skip
    """A graph with one part per entry of `rows`; the KV cache holds `capacity` positions of type `cache`.

    `place` holds the first row's position and the number of valid rows; `options` is for sampling (`ops.language`).
    With `batch_size` > 1 one more part decodes one token of each sequence. Every sequence has a KV cache of its own;
    the first one's is also the cache of the other parts.

    Raises:  ModelFormatError naming a tensor that is missing or has other sizes
    """
    return _Decoder(file, model, capacity, batch_size, cache).graph(rows)


class _Decoder:
    def __init__(self, file: GgufFile, model: Architecture, capacity: int, batch_size: int, cache: DType) -> None:
        self._file, self._model, self._batch_size = file, model, batch_size
        self._constants: dict[str, Value] = {}
        self._nodes: list[Node] = []
        self._place = Value("place", language.PLACE)
        self._options = Value("options", TensorType((4,)))
        found = language.cache_shapes(model.groups, model.head_width, capacity, cache)
        shapes = dict(zip(("keys", "values"), found, strict=True))
        self._cache = [
            [
                tuple(Value(cache_name(kind, block, slot), TensorType(shape, cache)) for kind, shape in shapes.items())
                for block in range(model.layers)
            ]
            for slot in range(batch_size)
        ]
        speeds = struct.pack(f"<{len(model.speeds)}f", *model.speeds)
        self._speeds = Value("speeds", TensorType((len(model.speeds),)), Constant(memoryview(speeds), DType.FLOAT32))

    def graph(self, rows: Sequence[int]) -> Graph:
        graph = Graph(self._file.name, [self._place, self._options], [], [])
        for count in rows:
            self._part(graph, count)
            graph.parts.append(len(self._nodes))
        if self._batch_size > 1:
            self._batch_part(graph)
            graph.parts.append(len(self._nodes))
        graph.nodes = self._nodes
        graph.resident = [value for slot in self._cache for pair in slot for value in pair]
        return graph

    def _part(self, graph: Graph, rows: int) -> None:
        ids, last = input_names(rows)
        given = Value(ids, TensorType((rows,), DType.INT32)), Value(last, TensorType((1,), DType.INT32))
        graph.inputs += given
        hidden = self._blocks(given[0], [self._place], self._place)
        one = self._node(gather.GATHER, [hidden, given[1]], gather.GatherAttrs(0), "last row")
        logits = self._logits(one)
        token = self._node(language.SAMPLE, [logits, self._options], NoAttrs(), "sample")
        for value, name in zip((token, logits, hidden), output_names(rows), strict=True):
            value.name = name
            graph.outputs.append(value)

    def _batch_part(self, graph: Graph) -> None:
        """Matrix products read their weights once for all sequences; attention handles one sequence at a time."""
        ids = Value(BATCH_IDS, TensorType((self._batch_size,), DType.INT32))
        names = [batch_names(slot) for slot in range(self._batch_size)]
        places = [Value(place, language.PLACE) for place, _, _ in names]
        options = [Value(name, TensorType((4,))) for _, name, _ in names]
        graph.inputs += [ids, *places, *options]
        logits = self._logits(self._blocks(ids, places, None))
        for slot, (_, _, name) in enumerate(names):
            token = self._node(language.SAMPLE, [self._row(logits, slot), options[slot]], NoAttrs(), f"sample {slot}")
            token.name = name
            graph.outputs.append(token)

    def _row(self, x: Value, row: int) -> Value:
        attrs = movement.SliceAttrs((row, 0), (1, x.type.shape[1]), (1, 1))
        return self._node(movement.SLICE, [x], attrs, f"row {row}")

    def _blocks(self, ids: Value, places: Sequence[Value], place: Value | None) -> Value:
        """The last layer's normalized output; with several places each row belongs to another sequence."""
        table = self._matrix("token_embd.weight", self._model.vocabulary, self._model.width)
        x = self._node(language.BLOCK_ROWS, [table[0], ids], table[1], "token_embd")
        for block in range(self._model.layers):
            x = self._block(x, block, places, place)
        return self._norm(x, "output_norm.weight")

    def _logits(self, x: Value) -> Value:
        head = "output.weight" if "output.weight" in self._file.tensors else "token_embd.weight"
        return self._product(x, head, self._model.vocabulary)

    def _block(self, x: Value, block: int, places: Sequence[Value], place: Value | None) -> Value:
        m, at = self._model, f"blk.{block}."
        row = m.groups * m.head_width
        normed = self._norm(x, f"{at}attn_norm.weight")
        sizes = {"q": m.heads * m.head_width, "k": row, "v": row}
        qkv = [self._product(normed, f"{at}attn_{name}.weight", size, place=place) for name, size in sizes.items()]
        if m.head_norms:
            qkv[:2] = [self._head_norm(x, f"{at}{name}") for x, name in zip(qkv, HEAD_NORMS, strict=False)]
        attrs = CachedAttentionAttrs(m.heads, m.groups, 2 * len(m.speeds), m.adjacent, m.head_width**-0.5)
        rows = []
        for slot, its_place in enumerate(places):
            given = [self._row(value, slot) for value in qkv] if len(places) > 1 else qkv
            inputs = [*given, its_place, self._speeds, *self._cache[slot][block]]
            rows.append(self._node(language.CACHED_ATTENTION, inputs, attrs, f"{at}attention"))
        seen = self._node(movement.CONCAT, rows, movement.ConcatAttrs(0), f"{at}rows") if len(rows) > 1 else rows[0]
        x = self._product(seen, f"{at}attn_output.weight", m.width, x, place)
        normed = self._norm(x, f"{at}ffn_norm.weight")
        gate, up = (self._product(normed, f"{at}ffn_{n}.weight", m.inner, place=place) for n in ("gate", "up"))
        mixed = self._node(language.SWIGLU, [gate, up], NoAttrs(), f"{at}swiglu")
        return self._product(mixed, f"{at}ffn_down.weight", m.width, x, place)

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

    def _head_norm(self, x: Value, name: str) -> Value:
        """Each head of each row normed by itself; all heads have one scale."""
        apart = movement.ReshapeAttrs((x.type.size // self._model.head_width, self._model.head_width))
        normed = self._norm(self._node(movement.RESHAPE, [x], apart, f"{name} heads"), name)
        return self._node(movement.RESHAPE, [normed], movement.ReshapeAttrs(x.type.shape), f"{name} rows")

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
