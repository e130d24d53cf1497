"""Probabilities of classes out of those of duels of two: the second method of Wu, Lin and Weng, as ONNX Runtime has it.

The method ends as soon as it is within 0.005 / classes, and so do these rounds: a row that is there keeps its numbers.
Random duels of 2 to 20 classes needed 6 rounds at most, so the rounds are unrolled.

Source:  Wu, Lin, Weng, "Probability Estimates for Multi-class Classification by Pairwise Coupling", algorithm 2
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.onnx.operation import Operation
from webinfer.ops import elementwise as ew
from webinfer.ops import matmul, reduce
from webinfer.ops.registry import NoAttrs

MOST_CLASSES = 20
_ROUNDS = 8
_SMALLEST = 1e-7  # probability of a duel; the largest is 1 - 1e-7


def coupled(op: Operation, scores: Value, classes: int, slopes: Sequence[float], offsets: Sequence[float]) -> Value:
    """The probability of each class. Shapes:  scores [N, duels], a slope and an offset a duel → [N, classes]"""
    system = _system(op, _wins(op, scores, slopes, offsets), classes)
    rows = scores.type.shape[0]
    p = op.constant([1.0 / classes] * (rows * classes), DType.FLOAT32, (rows, classes))
    for _ in range(_ROUNDS):
        p = _round(op, system, p, classes)
    return p


def _wins(op: Operation, scores: Value, slopes: Sequence[float], offsets: Sequence[float]) -> Value:
    """The probability that the first class of each duel wins. Shapes:  [N, duels] → [N, duels]"""
    lines = op.binary(ew.MUL, scores, _row(op, [-slope for slope in slopes]))
    found = op.unary(ew.SIGMOID, op.binary(ew.ADD, lines, _row(op, [-offset for offset in offsets])))
    found = op.binary(ew.MAXIMUM, found, op.scalar_of(_SMALLEST, DType.FLOAT32))
    return op.binary(ew.MINIMUM, found, op.scalar_of(1 - _SMALLEST, DType.FLOAT32))


def _system(op: Operation, wins: Value, classes: int) -> Value:
    """The matrix Q of the method, row after row. Shapes:  [N, duels] → [N, classes * classes]

    Q[t, t] is the sum of squares of what t loses; Q[t, j] is minus the product of both outcomes of t and j.
    """
    pairs = list(combinations(range(classes), 2))
    losses = op.unary(ew.LINEAR, wins, -1.0, 1.0)
    products = op.unary(ew.NEG, op.binary(ew.MUL, wins, losses))
    parts = op.concat([products, op.binary(ew.MUL, wins, wins), op.binary(ew.MUL, losses, losses)], 1)
    table = [[0.0] * (classes * classes) for _ in range(3 * len(pairs))]
    for number, (i, j) in enumerate(pairs):
        table[number][i * classes + j] = table[number][j * classes + i] = 1.0
        table[len(pairs) + number][j * classes + j] = 1.0  # the first wins: the second's loss
        table[2 * len(pairs) + number][i * classes + i] = 1.0
    return _product(op, parts, table)


def _round(op: Operation, system: Value, p: Value, classes: int) -> Value:
    """The next p of rows that are not there yet. Shapes:  [N, classes * classes], [N, classes] → [N, classes]"""
    before = p
    repeated = [[float(k == j) for _ in range(classes) for j in range(classes)] for k in range(classes)]
    sums = [[float(i // classes == k) for k in range(classes)] for i in range(classes * classes)]
    slope = _product(op, op.binary(ew.MUL, system, _product(op, p, repeated)), sums)  # Q p
    height = op.emit(reduce.REDUCE_SUM, [op.binary(ew.MUL, p, slope)], reduce.ReduceAttrs((1,), True))  # p Q p
    apart = op.unary(ew.ABS, op.binary(ew.SUB, slope, height))
    error = op.emit(reduce.REDUCE_MAX, [apart], reduce.ReduceAttrs((1,), True))
    for t in range(classes):
        row = op.cut(system, 1, t * classes, classes)
        own, here = op.cut(row, 1, t, 1), op.cut(slope, 1, t, 1)
        step = op.binary(ew.DIV, op.binary(ew.SUB, height, here), own)
        whole = op.unary(ew.LINEAR, step, 1.0, 1.0)
        twice = op.binary(ew.ADD, op.binary(ew.MUL, step, own), op.unary(ew.LINEAR, here, 2.0, 0.0))
        height = op.binary(ew.ADD, height, op.binary(ew.MUL, step, twice))
        height = op.binary(ew.DIV, op.binary(ew.DIV, height, whole), whole)
        slope = op.binary(ew.DIV, op.binary(ew.ADD, slope, op.binary(ew.MUL, step, row)), whole)
        moved = op.binary(ew.MUL, step, _row(op, [float(k == t) for k in range(classes)]))
        p = op.binary(ew.DIV, op.binary(ew.ADD, p, moved), whole)
    there = op.binary(ew.LESS, error, op.scalar_of(0.005 / classes, DType.FLOAT32))
    return op.emit(ew.WHERE, [there, before, p], NoAttrs())


def _row(op: Operation, numbers: Sequence[float]) -> Value:
    return op.constant(numbers, DType.FLOAT32, (1, len(numbers)))


def _product(op: Operation, x: Value, table: Sequence[Sequence[float]]) -> Value:
    flat = [number for row in table for number in row]
    weights = op.constant(flat, DType.FLOAT32, (len(table), len(table[0])))
    return op.emit(matmul.MATMUL, [x, weights], matmul.MatmulAttrs())
