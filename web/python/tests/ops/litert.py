"""One-operator TFLite models, run by ai-edge-litert: the judge of quantised arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from webinfer.dtypes import DType
from webinfer.graph.ir import TensorType

Array = np.ndarray[Any, np.dtype[Any]]
TYPES = {
    DType.FLOAT32: schema.TensorType.FLOAT32, DType.FLOAT16: schema.TensorType.FLOAT16, DType.INT8: schema.TensorType.INT8,
    DType.UINT8: schema.TensorType.UINT8, DType.INT16: schema.TensorType.INT16, DType.INT32: schema.TensorType.INT32,
    DType.INT64: schema.TensorType.INT64, DType.BOOL: schema.TensorType.BOOL,
}  # fmt: skip


@dataclass(frozen=True)
class Operand:
    """An input of the operator; with `data`, a constant."""

    type: TensorType
    data: Array | None = None


def model(op: str, options: Any, inputs: Sequence[Operand], outputs: Sequence[TensorType], version: int = 1) -> bytes:
    """A .tflite file of one operator. `options` is an options object of the schema, or None."""
    code = schema.OperatorCodeT()
    code.builtinCode = getattr(schema.BuiltinOperator, op)
    code.deprecatedBuiltinCode = min(code.builtinCode, 127)
    code.version = version
    buffers, tensors = [schema.BufferT()], []
    for i, operand in enumerate([*inputs, *(Operand(t) for t in outputs)]):
        tensors.append(_tensor(f"t{i}", operand, buffers))
    node = schema.OperatorT()
    node.inputs = list(range(len(inputs)))
    node.outputs = list(range(len(inputs), len(tensors)))
    if options is not None:
        node.builtinOptionsType = getattr(schema.BuiltinOptions, type(options).__name__.removesuffix("T"))
        node.builtinOptions = options
    graph = schema.SubGraphT()
    graph.tensors, graph.operators = tensors, [node]
    graph.inputs = [i for i, operand in enumerate(inputs) if operand.data is None]
    graph.outputs = node.outputs
    root = schema.ModelT()
    root.version, root.operatorCodes, root.subgraphs, root.buffers = 3, [code], [graph], buffers
    builder = flatbuffers.Builder(1024)
    builder.Finish(root.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _tensor(name: str, operand: Operand, buffers: list[Any]) -> Any:
    tensor = schema.TensorT()
    tensor.name, tensor.shape, tensor.type, tensor.hasRank = name, list(operand.type.shape), TYPES[operand.type.dtype], True
    if operand.data is not None:
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(np.ascontiguousarray(operand.data).tobytes(), np.uint8)
        tensor.buffer = len(buffers)
        buffers.append(buffer)
    quant = operand.type.quant
    if quant is not None:
        tensor.quantization = schema.QuantizationParametersT()
        tensor.quantization.scale, tensor.quantization.zeroPoint = list(quant.scales), list(quant.zero_points)
        tensor.quantization.quantizedDimension = quant.axis or 0
    return tensor


def litert(data: bytes, arrays: Sequence[Array], *, delegate: bool = True) -> list[Array]:
    """What ai-edge-litert computes, with its default delegate unless told otherwise."""
    kind = OpResolverType.AUTO if delegate else OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = Interpreter(model_content=data, experimental_op_resolver_type=kind, num_threads=1)
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), arrays, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]).copy() for detail in interpreter.get_output_details()]
