"""TFLite's matrix products."""

from __future__ import annotations

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core.steps import CLAMPS
from webinfer.importers.tflite.operation import Operation, Row
from webinfer.importers.tflite.schema import SHUFFLED_WEIGHTS
from webinfer.ops import matmul
from webinfer.ops.activation import Activation


def _fully_connected(op: Operation) -> Value:
    """x flattened to rows of K, times weights [N, K] transposed."""
    x = op.value(0)
    w = op.weights(1, x)
    if op.number("weights_format") == SHUFFLED_WEIGHTS:
        op.refuse("shuffled 4x16 weights")
    if w.type.rank != 2 or w.type.shape[1] < 1 or x.type.size % w.type.shape[1]:
        op.fail(f"x {x.type.shape} does not split into rows for weights {w.type.shape}")
    n, k = w.type.shape
    activation = op.activation((*CLAMPS, Activation.TANH) if op.out_type() is None else CLAMPS)
    attrs = matmul.MatmulAttrs(transpose_b=True, activation=activation, out_type=op.out_type())
    rows = op.rounded(op.reshape(x, (x.type.size // k, k)), 1, 1)
    y = op.emit(matmul.MATMUL, [rows, w, op.bias(2, x)], attrs)
    if op.flag("keep_num_dims"):
        if not x.type.shape or x.type.shape[-1] != k:
            op.fail(f"the last axis of x {x.type.shape} must be {k} to keep its rank")
        return op.reshape(y, (*x.type.shape[:-1], n))
    return y


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
