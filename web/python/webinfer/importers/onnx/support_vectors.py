"""ONNX's regressions and classes by support vectors; one-class machines are regressions too.

Source:  onnx v1.23, ai.onnx.ml SVMRegressor-1 and SVMClassifier-1; the line without vectors, and which class of two
         wins, as ONNX Runtime has it
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core.limits import within
from webinfer.importers.onnx.coupling import MOST_CLASSES, coupled
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.importers.onnx.tree_ensemble import label, labels_of, transformed
from webinfer.importers.onnx.trees import rows_of
from webinfer.ops import elementwise as ew
from webinfer.ops import matmul, reduce
from webinfer.ops.registry import NoAttrs

KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")
_MOST_WEIGHTS = 2**22
_MOST_TERMS = 2**26  # differences of all rows, vectors and features at once: 256 MB of float32


def _regressor(op: Operation) -> Value:
    """The weighted sum of likenesses to the vectors, plus rho. Shapes:  [N, F] → [N, 1]"""
    x, count = rows_of(op), op.whole("n_supports", 0)
    weights, rho = op.reals("coefficients") or (), op.reals("rho") or ()
    kind = _kernel(op)
    if op.chosen("post_transform", ("NONE",), "NONE") != "NONE" or len(rho) != 1:
        op.fail(f"{len(rho)} numbers as rho, needs one")
    if not count:  # the coefficients are those of a line
        vectors, kind, weights, count = weights, "LINEAR", (1.0,), 1
    else:
        vectors = op.reals("support_vectors") or ()
    features = x.type.shape[1]
    if len(weights) != count or len(vectors) != count * features:
        op.fail(f"{len(weights)} coefficients and {len(vectors)} numbers of {count} vectors of {features} features")
    likeness = _likeness(op, x, op.constant(vectors, DType.FLOAT32, (count, features)), kind)
    product = op.emit(matmul.MATMUL, [likeness, op.constant(weights, DType.FLOAT32, (count, 1))], matmul.MatmulAttrs())
    score = op.binary(ew.ADD, product, op.scalar_of(rho[0], DType.FLOAT32))
    if not op.whole("one_class", 0):
        return score
    inside = op.binary(ew.GREATER, score, op.scalar_of(0.0, DType.FLOAT32))
    both = [op.scalar_of(number, DType.FLOAT32) for number in (1.0, -1.0)]
    return op.emit(ew.WHERE, [inside, *both], NoAttrs())


def _kernel(op: Operation) -> str:
    return op.chosen("kernel_type", KERNELS, "LINEAR")


def _classifier(op: Operation) -> list[Value]:
    """The class that wins most of the duels of two, and the score of each duel, or of each class on lines."""
    x, labels = rows_of(op), labels_of(op, ("classlabels_ints", "classlabels_strings"))
    sizes = op.wholes("vectors_per_class") or ()
    return _duels(op, x, labels, sizes) if sum(sizes) else _lines(op, x, labels)


def _duels(op: Operation, x: Value, labels: Sequence[int], sizes: Sequence[int]) -> list[Value]:
    """Every two classes are told apart by their vectors.

    Shapes:  [N, F] → [N], [N, duels] (of two classes, or with probabilities, [N, classes])
    """
    count, classes = sum(sizes), len(labels)
    pairs = list(combinations(range(classes), 2))
    weights, rho = op.reals("coefficients") or (), op.reals("rho") or ()
    vectors, features = op.reals("support_vectors") or (), x.type.shape[1]
    if len(sizes) != classes or len(weights) != (classes - 1) * count or len(rho) != len(pairs):
        op.fail(f"{len(weights)} coefficients and {len(rho)} numbers as rho for {classes} classes of {sizes} vectors")
    if len(vectors) != count * features:
        op.fail(f"{len(vectors)} numbers of {count} vectors of {features} features")
    within(f"{op.what}: weights of duels", count * len(pairs), _MOST_WEIGHTS, "use fewer classes")
    begins = [sum(sizes[:i]) for i in range(classes)]
    table = [[0.0] * len(pairs) for _ in range(count)]
    for number, (i, j) in enumerate(pairs):
        for own, other in ((i, j - 1), (j, i)):  # a class has a row of coefficients against each of the others
            for vector in range(begins[own], begins[own] + sizes[own]):
                table[vector][number] = weights[other * count + vector]
    likeness = _likeness(op, x, op.constant(vectors, DType.FLOAT32, (count, features)), _kernel(op))
    flat = [number for row in table for number in row]
    product = op.emit(
        matmul.MATMUL, [likeness, op.constant(flat, DType.FLOAT32, (count, len(pairs)))], matmul.MatmulAttrs()
    )
    scores = op.binary(ew.ADD, product, op.constant(rho, DType.FLOAT32, (1, len(pairs))))
    first = op.cast(op.binary(ew.GREATER, scores, op.scalar_of(0.0, DType.FLOAT32)), DType.FLOAT32)
    turns = [
        float((k == i) - (k == j)) for i, j in pairs for k in range(classes)
    ]  # of a vote, from the second to the first
    votes = op.emit(
        matmul.MATMUL, [first, op.constant(turns, DType.FLOAT32, (len(pairs), classes))], matmul.MatmulAttrs()
    )
    before = [float(sum(k == j for _, j in pairs)) for k in range(classes)]
    votes = op.binary(ew.ADD, votes, op.constant(before, DType.FLOAT32, (1, classes)))
    place = op.emit(reduce.ARG_MAX, [votes], reduce.ArgAttrs(1, False, DType.INT32))
    slopes, offsets = op.reals("prob_a") or (), op.reals("prob_b") or ()
    if slopes or offsets:
        if not len(slopes) == len(offsets) == len(pairs):
            op.fail(f"{len(slopes)} numbers as prob_a and {len(offsets)} as prob_b for {len(pairs)} duels")
        within(f"{op.what}: classes with probabilities", classes, MOST_CLASSES, "ask for the scores of duels")
        return [label(op, labels, place), transformed(op, coupled(op, scores, classes, slopes, offsets))]
    if classes > 2:
        return [label(op, labels, place), transformed(op, scores)]
    if op.chosen("post_transform", ("NONE",), "NONE") != "NONE":
        op.refuse("a transform of the score of two classes")
    return [label(op, labels, place), op.concat([op.unary(ew.NEG, scores), scores], 1)]


def _lines(op: Operation, x: Value, labels: Sequence[int]) -> list[Value]:
    """A line for each class. Shapes:  [N, F] → [N], [N, classes]"""
    weights, rho, features = op.reals("coefficients") or (), op.reals("rho") or (), x.type.shape[1]
    if len(weights) != len(labels) * features or not rho:
        op.fail(f"{len(weights)} coefficients and {len(rho)} numbers as rho, needs {len(labels) * features} and one")
    lines = op.constant(weights, DType.FLOAT32, (len(labels), features))
    product = op.emit(matmul.MATMUL, [x, lines], matmul.MatmulAttrs(transpose_b=True))
    scores = op.binary(ew.ADD, product, op.scalar_of(rho[0], DType.FLOAT32))
    place = op.emit(reduce.ARG_MAX, [scores], reduce.ArgAttrs(1, False, DType.INT32))
    if len(labels) == 2:  # ONNX Runtime then takes the second one as soon as either score is large
        best = op.emit(reduce.REDUCE_MAX, [scores], reduce.ReduceAttrs((1,)))
        positive = all(weight >= 0 for weight in weights)
        large = op.binary(
            ew.GREATER_EQUAL if positive else ew.GREATER, best, op.scalar_of(0.5 * positive, DType.FLOAT32)
        )
        place = op.emit(ew.WHERE, [large, op.scalar_of(1, DType.INT32), place], NoAttrs())
    return [label(op, labels, place), transformed(op, scores)]


def _likeness(op: Operation, x: Value, vectors: Value, kind: str) -> Value:
    """The kernel of each row and each vector. Shapes:  [N, F], [S, F] → [N, S]"""
    numbers = op.reals("kernel_params") or ()
    gamma, more, degree = numbers if len(numbers) == 3 else (0.0, 0.0, 0.0)
    if kind != "LINEAR" and len(numbers) != 3:
        op.fail(f"{len(numbers)} numbers of the kernel, needs gamma, coef0 and degree")
    if kind == "RBF":
        (rows, features), count = x.type.shape, vectors.type.shape[0]
        within(f"{op.what}: differences", rows * features * count, _MOST_TERMS, "use fewer rows at once")
        apart = op.binary(ew.SUB, op.reshape(x, (rows, 1, features)), op.reshape(vectors, (1, count, features)))
        square = op.emit(reduce.REDUCE_SUM_SQUARE, [apart], reduce.ReduceAttrs((2,)))
        return op.unary(ew.EXP, op.unary(ew.LINEAR, square, -gamma, 0.0))
    product = op.emit(matmul.MATMUL, [x, vectors], matmul.MatmulAttrs(transpose_b=True))
    if kind == "LINEAR":
        return product
    line = op.unary(ew.LINEAR, product, gamma, more)
    return (
        op.unary(ew.TANH, line) if kind == "SIGMOID" else op.binary(ew.POW, line, op.scalar_of(degree, DType.FLOAT32))
    )


CONVERTERS: dict[str, Convert] = {
    "ai.onnx.ml.SVMClassifier": _classifier,
    "ai.onnx.ml.SVMRegressor": _regressor,
}
