"""Matrix products and look-ups by position."""

from __future__ import annotations

from webinfer.dtypes import DType
from webinfer.errors import ModelFormatError
from webinfer.graph.ir import Value
from webinfer.importers.tflite.movement import cut, expand
from webinfer.importers.tflite.operation import Operation, Row
from webinfer.importers.tflite.schema import SHUFFLED_WEIGHTS
from webinfer.importers.tflite.windows import bias_of, weights_of
from webinfer.ops import gather, matmul, pattern
from webinfer.ops.activation import Activation

_CLAMPS = (Activation.NONE, Activation.RELU, Activation.RELU6, Activation.RELU_N1_TO_1)


def _fully_connected(op: Operation) -> Value:
    """x flattened to rows of K, times weights [N, K] transposed."""
    x = op.value(0)
    w = weights_of(op, x, op.value(1))
    if op.number("weights_format") == SHUFFLED_WEIGHTS:
        op.refuse("shuffled 4x16 weights")
    if w.type.rank != 2 or w.type.shape[1] < 1 or x.type.size % w.type.shape[1]:
        raise ModelFormatError(f"{op.info}: x {x.type.shape} does not split into rows for weights {w.type.shape}")
    n, k = w.type.shape
    activation = op.activation((*_CLAMPS, Activation.TANH) if op.out_type() is None else _CLAMPS)
    attrs = matmul.MatmulAttrs(transpose_b=True, activation=activation, out_type=op.out_type())
    y = op.emit(matmul.MATMUL, [op.reshape(x, (x.type.size // k, k)), w, bias_of(op, 2, x)], attrs)
    if op.flag("keep_num_dims"):
        if not x.type.shape or x.type.shape[-1] != k:
            raise ModelFormatError(f"{op.info}: the last axis of x {x.type.shape} must be {k} to keep its rank")
        return op.reshape(y, (*x.type.shape[:-1], n))
    return y


def _batch_matmul(op: Operation) -> Value:
    a, b = op.value(0), op.value(1)
    if a.type.dtype is DType.FLOAT32:
        b = op.as_float(b)
    attrs = matmul.MatmulAttrs(op.flag("adj_x"), op.flag("adj_y"), out_type=op.out_type())
    return op.emit(matmul.MATMUL, [a, b], attrs)


def _gather(op: Operation) -> Value:
    x, positions = op.value(0), op.value(1)
    axis, batch = op.axis(op.number("axis"), x.type.rank), op.number("batch_dims")
    batch = op.axis(batch, positions.type.rank) if batch < 0 else batch
    if positions.type.shape == () and positions.constant is not None and x.constant is None:
        at = op.axis(op.integer(1), x.type.shape[axis])  # one known row is a slice
        return op.reshape(cut(op, x, axis, at, 1), (*x.type.shape[:axis], *x.type.shape[axis + 1 :]))
    return op.emit(gather.GATHER, [x, positions], gather.GatherAttrs(axis, batch))


def _gather_nd(op: Operation) -> Value:
    return op.emit(gather.GATHER_ND, [op.value(0), op.value(1)], gather.GatherNdAttrs())


def _embedding_lookup(op: Operation) -> Value:
    table = op.value(1)
    if op.declared().dtype is DType.FLOAT32:
        table = op.as_float(table)
    return op.emit(gather.GATHER, [table, op.value(0)], gather.GatherAttrs(0))


def _scatter_nd(op: Operation) -> Value:
    """Updates are added up onto zeros."""
    positions, updates = op.value(0), op.value(1)
    zeros = expand(op, op.constant([0], updates.type.dtype, ()), op.integers(2))
    return op.emit(gather.SCATTER_ND, [zeros, positions, updates], gather.ScatterNdAttrs(add=True))


def _one_hot(op: Operation) -> Value:
    x = op.value(0)
    depth, on, off = op.integer(1), op.scalar(2), op.scalar(3)
    axis = op.axis(op.number("axis"), x.type.rank + 1)
    return op.emit(pattern.ONE_HOT, [x], pattern.OneHotAttrs(depth, axis, on, off, op.value(2).type.dtype))


CONVERTERS: dict[str, Row] = {
    "BATCH_MATMUL": (_batch_matmul, "BatchMatMulOptions"),
    "EMBEDDING_LOOKUP": (_embedding_lookup, ""),
    "FULLY_CONNECTED": (_fully_connected, "FullyConnectedOptions"),
    "GATHER": (_gather, "GatherOptions"),
    "GATHER_ND": (_gather_nd, ""),
    "ONE_HOT": (_one_hot, "OneHotOptions"),
    "SCATTER_ND": (_scatter_nd, ""),
}
