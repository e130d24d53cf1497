"""Small TFLite files for tests, written with the flatbuffers package and LiteRT's own schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from webinfer.importers.tflite.convert import CONVERTERS

Array = np.ndarray[Any, np.dtype[Any]]
Quant = tuple[float | Sequence[float], int | Sequence[int], int] | tuple[float, int]
TYPES = {
    "float32": 0, "float16": 1, "int32": 2, "uint8": 3, "int64": 4, "string": 5, "bool": 6, "int16": 7, "int8": 9,
    "uint32": 15, "complex64": 8, "int4": 17, "int2": 19,
}  # fmt: skip


class Writer:
    """A model under construction; tensors are their indices."""

    def __init__(self) -> None:
        self.model = schema.ModelT()
        self.model.version, self.model.operatorCodes = 3, []
        self.model.buffers = [schema.BufferT()]
        self.model.subgraphs = []
        self.begin_subgraph()

    def begin_subgraph(self) -> None:
        """Makes a new subgraph the one that tensors and nodes go to; the first one is the model's."""
        self.graph = schema.SubGraphT()
        self.graph.tensors, self.graph.operators, self.graph.inputs, self.graph.outputs = [], [], [], []
        self.model.subgraphs.append(self.graph)

    def tensor(
        self, name: str, shape: Sequence[int], dtype: str = "float32", quant: Quant | None = None, **fields: Any
    ) -> int:
        """A tensor without data; `fields` are further fields of the schema's Tensor."""
        tensor = schema.TensorT()
        tensor.name, tensor.shape, tensor.type, tensor.hasRank = name, list(shape), TYPES[dtype], True
        if quant is not None:
            scales, zeros = np.atleast_1d(quant[0]), np.atleast_1d(quant[1])
            tensor.quantization = schema.QuantizationParametersT()
            tensor.quantization.scale = scales.astype(np.float32)
            tensor.quantization.zeroPoint = np.broadcast_to(zeros, scales.shape).astype(np.int64)
            tensor.quantization.quantizedDimension = quant[2] if len(quant) > 2 else 0
        for field, value in fields.items():
            setattr(tensor, _camel(field), value)
        self.graph.tensors.append(tensor)
        return len(self.graph.tensors) - 1

    def input(
        self, name: str, shape: Sequence[int], dtype: str = "float32", quant: Quant | None = None, **fields: Any
    ) -> int:
        """An input of the graph."""
        index = self.tensor(name, shape, dtype, quant, **fields)
        self.graph.inputs.append(index)
        return index

    def constant(self, name: str, data: Any, quant: Quant | None = None, **fields: Any) -> int:
        """A tensor with data; Python numbers become int32 or float32."""
        array = np.asarray(data)
        if array.dtype in (np.float64, np.int64) and not isinstance(data, np.ndarray):
            array = array.astype(np.float32 if array.dtype == np.float64 else np.int32)
        index = self.tensor(name, array.shape, array.dtype.name, quant, **fields)
        self.graph.tensors[index].buffer = self.buffer(array.tobytes())
        return index

    def buffer(self, data: bytes) -> int:
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(data, np.uint8)
        self.model.buffers.append(buffer)
        return len(self.model.buffers) - 1

    def node(self, op: str, inputs: Sequence[int], outputs: Sequence[int], /, version: int = 1, **options: Any) -> None:
        """An operator; options are named as the schema names them."""
        kind = CONVERTERS[op][1] if op in CONVERTERS else ""
        node = self._operator(getattr(schema.BuiltinOperator, op), "", inputs, outputs, version)
        if kind:
            table = getattr(schema, kind + "T")()
            if hasattr(schema.BuiltinOptions, kind):
                node.builtinOptionsType, node.builtinOptions = getattr(schema.BuiltinOptions, kind), table
            else:
                node.builtinOptions2Type, node.builtinOptions2 = getattr(schema.BuiltinOptions2, kind), table
            for name, value in options.items():
                assert hasattr(table, _camel(name)), name
                setattr(table, _camel(name), value)

    def custom(
        self, name: str, inputs: Sequence[int], outputs: Sequence[int], options: bytes = b"", version: int = 1
    ) -> None:
        """A custom operator with raw options."""
        node = self._operator(schema.BuiltinOperator.CUSTOM, name, inputs, outputs, version)
        node.customOptions = np.frombuffer(options, np.uint8)

    def _operator(self, code: int, custom: str, inputs: Sequence[int], outputs: Sequence[int], version: int) -> Any:
        entry = schema.OperatorCodeT()
        entry.builtinCode, entry.deprecatedBuiltinCode, entry.version = code, min(code, 127), version
        entry.customCode = custom or None
        self.model.operatorCodes.append(entry)
        node = schema.OperatorT()
        node.opcodeIndex = len(self.model.operatorCodes) - 1
        node.inputs, node.outputs = list(inputs), list(outputs)
        self.graph.operators.append(node)
        return node

    def finish(self, *outputs: int) -> bytes:
        """The file, with these outputs of the first subgraph; without any, as they were set."""
        if outputs:
            self.model.subgraphs[0].outputs = list(outputs)
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def single(
    op: str, inputs: Sequence[Any], outputs: Sequence[tuple[Any, ...]], version: int = 1, **options: Any
) -> bytes:
    """A model of one operator. An input is (shape, dtype, quant), an array (a constant), (array, quant) or None.

    (shape, dtype, None, True) is a variable of the model.
    """
    writer = Writer()
    indices = [_operand(writer, f"in{i}", given) for i, given in enumerate(inputs)]
    results = [writer.tensor(f"out{i}", *given) for i, given in enumerate(outputs)]
    writer.node(op, indices, results, version, **options)
    return writer.finish(*results)


def _operand(writer: Writer, name: str, given: Any) -> int:
    if given is None:
        return -1
    if isinstance(given, np.ndarray):
        return writer.constant(name, given)
    if isinstance(given[0], np.ndarray):
        return writer.constant(name, given[0], given[1])
    if len(given) > 3:
        return writer.tensor(name, given[0], given[1], is_variable=True)
    return writer.input(name, *given)
