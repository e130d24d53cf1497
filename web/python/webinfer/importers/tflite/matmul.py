"""TFLite's matrix products."""

from __future__ import annotations

from webinfer.dtypes import DType
from webinfer.graph.ir import Constant, TensorType, Value
from webinfer.importers.core.steps import CLAMPS
from webinfer.importers.tflite.operation import Operation, Row
from webinfer.importers.tflite.schema import SHUFFLED_WEIGHTS
from webinfer.ops import matmul, packed_matmul
from webinfer.ops.activation import Activation


def _fully_connected(op: Operation) -> Value:
    """x flattened to rows of K, times weights [N, K] transposed."""
    x = op.value(0)
    given = op.tensors[op.info.inputs[1]] if op.count > 1 and op.info.inputs[1] >= 0 else None
    if given is not None and given.blocks[1]:
        return _blockwise(op, x, given.blocks)
    w = op.weights(1, x)
    if op.number("weights_format") == SHUFFLED_WEIGHTS:
        op.refuse("shuffled 4x16 weights")
    if w.type.rank != 2 or w.type.shape[1] < 1 or x.type.size % w.type.shape[1]:
        op.fail(f"x {x.type.shape} does not split into rows for weights {w.type.shape}")
    n, k = w.type.shape
    activation = op.activation((*CLAMPS, Activation.TANH) if op.out_type() is None else CLAMPS)
    attrs = matmul.MatmulAttrs(transpose_b=True, activation=activation, out_type=op.out_type())
    rows = op.rounded(op.reshape(x, (x.type.size // k, k)), 1, 1)
    y = op.emit(matmul.MATMUL, [rows, w, op.bias(2, x, n)], attrs)
    if op.flag("keep_num_dims"):
        if not x.type.shape or x.type.shape[-1] != k:
            op.fail(f"the last axis of x {x.type.shape} must be {k} to keep its rank")
        return op.reshape(y, (*x.type.shape[:-1], n))
    return y


def _blockwise(op: Operation, x: Value, blocks: tuple[int, int]) -> Value:
    """x times weights of 4 or 8 bits with a scale for each block of a row, which stay packed."""
    w, (index, block) = op.value(1), blocks
    if x.type.dtype is not DType.FLOAT32 or w.constant is None or w.type.dtype is not DType.INT8:
        op.refuse(f"blocks of weights {w.type} beside x {x.type}")
    if w.type.rank != 2 or not 0 <= index < len(op.tensors) or block < 2 or block % 2 or w.type.shape[1] % block:
        op.fail(f"blocks of {block} do not fit weights {w.type.shape}")
    (n, k), tensor = w.type.shape, op.tensors[index]
    if tensor.data is None or tensor.dtype is None or not tensor.dtype.is_float or tensor.sparsity is not None:
        op.refuse(f"scales of type {tensor.type_name}, or computed ones")
    if not k or x.type.size % k or tensor.shape != (n, k // block):
        op.fail(f"x {x.type.shape} and scales {tensor.shape} do not fit weights {w.type.shape}")
    narrow = op.tensors[op.info.inputs[1]].type_name == "INT4"
    data = _packed(w.constant.data.tobytes()) if narrow else bytes(w.constant.data).translate(_SHIFTED)
    stored = Value(w.name, TensorType((n, len(data) // n), DType.UINT8), Constant(memoryview(data), DType.UINT8))
    scales = Value(tensor.name, TensorType(tensor.shape, tensor.dtype), Constant(tensor.data, tensor.dtype))
    rows = op.rounded(op.reshape(x, (x.type.size // k, k)), 1, 1)
    attrs = packed_matmul.PackedMatmulAttrs(4 if narrow else 8, block)
    inputs = [rows, stored, op.as_float(scales), None, op.bias(2, x)]
    y = op.activate(op.emit(packed_matmul.PACKED_MATMUL, inputs, attrs), op.activation((*CLAMPS, Activation.TANH)))
    return op.reshape(y, (*x.type.shape[:-1], n)) if op.flag("keep_num_dims") else y


_SHIFTED = bytes(byte ^ 128 for byte in range(256))  # int8 as uint8 with 128 for 0


def _packed(data: bytes) -> bytes:
    """Pairs of int8 as the halves of bytes, 8 for 0."""
    low, high = (data[i::2].translate(bytes((byte + 8 & 15) << 4 * i for byte in range(256))) for i in (0, 1))
    whole = int.from_bytes(low, "little") | int.from_bytes(high, "little")
    return whole.to_bytes(len(low), "little")


def _batch_matmul(op: Operation) -> Value:
    a, b = op.value(0), op.value(1)
    if a.type.dtype is DType.FLOAT32:
        a = a if op.flag("adj_x") else op.rounded(a, 1, a.type.rank - 1)
        b = op.as_float(b)
    attrs = matmul.MatmulAttrs(op.flag("adj_x"), op.flag("adj_y"), out_type=op.out_type())
    return op.emit(matmul.MATMUL, [a, b], attrs)


CONVERTERS: dict[str, Row] = {
    "BATCH_MATMUL": (_batch_matmul, "BatchMatMulOptions"),
    "FULLY_CONNECTED": (_fully_connected, "FullyConnectedOptions"),
}
