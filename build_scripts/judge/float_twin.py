"""A dynamic-range model with its weights in float32: what such a model claims to be, for a judge that rounds."""

from typing import Any

import numpy as np

PRODUCTS = {  # input that holds weights, by operator; a tuple of several
    "BATCH_MATMUL": (1,),
    "CONV_2D": (1,),
    "DEPTHWISE_CONV_2D": (1,),
    "FULLY_CONNECTED": (1,),
    "TRANSPOSE_CONV": (1,),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (*range(1, 9), 16),
    "UNIDIRECTIONAL_SEQUENCE_RNN": (1, 2),
}


def float_twin(data: bytes) -> bytes | None:
    """The model with float32 weights where float activations meet 8-bit ones; None if nothing is of that kind."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    names = {number: name for name, number in vars(schema.BuiltinOperator).items() if isinstance(number, int)}
    model = schema.ModelT.InitFromPackedBuf(data, 0)
    changed = False
    for graph in model.subgraphs:
        for op in graph.operators or ():
            code = model.operatorCodes[op.opcodeIndex]
            name = names.get(max(code.builtinCode, code.deprecatedBuiltinCode), "")
            x = 2 if name == "TRANSPOSE_CONV" else 0
            if name not in PRODUCTS or graph.tensors[op.inputs[x]].type != schema.TensorType.FLOAT32:
                continue
            for key in PRODUCTS[name]:
                if key < len(op.inputs) and op.inputs[key] >= 0:
                    changed |= _widen(model, graph.tensors[op.inputs[key]], schema)
    if not changed:
        return None
    builder = flatbuffers.Builder(len(data))
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _widen(model: Any, tensor: Any, schema: Any) -> bool:
    quant, data = tensor.quantization, model.buffers[tensor.buffer].data
    if tensor.type not in (schema.TensorType.INT8, schema.TensorType.UINT8) or data is None or not len(data):
        return False
    stored = np.asarray(data, np.uint8).view(np.int8).reshape(tensor.shape).astype(np.float32)  # uint8 means int8 here
    scales = np.asarray(quant.scale, np.float32)
    if len(scales) > 1:
        scales = scales.reshape([-1 if axis == quant.quantizedDimension else 1 for axis in range(stored.ndim)])
    buffer = schema.BufferT()
    buffer.data = np.frombuffer((stored * scales).astype(np.float32).tobytes(), np.uint8)
    model.buffers.append(buffer)
    tensor.type, tensor.quantization, tensor.buffer = schema.TensorType.FLOAT32, None, len(model.buffers) - 1
    return True
