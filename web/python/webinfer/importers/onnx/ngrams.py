"""Counts of n-grams in rows of numbers.

Source:  onnx v1.23, TfIdfVectorizer-9 and onnx/reference/ops/op_tfidf_vectorizer.py
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core.limits import within
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.ops import elementwise as ew
from webinfer.ops import gather, reduce

MAX_COMPARED = 2**24  # comparisons of an element with one of an n-gram


def _vectorizer(op: Operation) -> Value:
    """How often each n-gram of a pool is in a row, its elements next to each other or with up to so many between."""
    x, pool = op.value(0), op.wholes("pool_int64s")
    if pool is None or x.type.dtype not in (DType.INT32, DType.INT64):
        op.refuse(f"n-grams of {x.type.dtype}, or strings")
    indexes = op.wholes("ngram_indexes") or ()
    if x.type.rank not in (1, 2) or len(set(indexes)) != len(indexes) or min(indexes, default=-1) < 0:
        op.refuse(f"rows of {x.type.shape}, or n-grams that share a result")
    rows = op.reshape(x, (1, *x.type.shape)) if x.type.rank == 1 else x
    sizes = range(op.whole("min_gram_length", 1), op.whole("max_gram_length", 1) + 1)
    found, number = [op.zeros((rows.type.shape[0], 1), DType.FLOAT32)], 0
    places: dict[int, int] = {}  # of what each n-gram counts, behind a column of zeros
    for size, grams in enumerate(_pools(op, pool), 1):
        if size in sizes and grams:
            found.append(_counted(op, rows, grams, op.whole("max_skip_count", 0) if size > 1 else 0))
            places |= {indexes[number + i]: len(places) + 1 + i for i in range(len(grams))}
        number += len(grams)
    columns = [places.get(i, 0) for i in range(max(indexes) + 1)]
    within(f"{op.what}: results", len(columns), MAX_COMPARED, "use fewer n-grams")
    counts = op.concat(found, 1) if len(found) > 1 else found[0]
    y = op.emit(gather.GATHER, [counts, op.constant(columns, DType.INT32)], gather.GatherAttrs(1))
    y = _weighted(op, y, len(columns))
    return op.reshape(y, (len(columns),)) if x.type.rank == 1 else y


def _pools(op: Operation, pool: Sequence[int]) -> list[list[tuple[int, ...]]]:
    """The n-grams of each size from 1 on; the file says where each size begins."""
    starts = [*(op.wholes("ngram_counts") or ()), len(pool)]
    spans = list(enumerate(itertools.pairwise(starts), 1))
    if starts != sorted(starts) or starts[0] != 0 or any((end - start) % n for n, (start, end) in spans):
        op.fail(f"n-grams that begin at {starts[:-1]} of {len(pool)} numbers")
    return [[tuple(pool[i : i + n]) for i in range(start, end, n)] for n, (start, end) in spans]


def _counted(op: Operation, rows: Value, grams: Sequence[tuple[int, ...]], skips: int) -> Value:
    """Shapes:  rows [N, L] -> [N, n-grams]"""
    (n, length), size = rows.type.shape, len(grams[0])
    within(f"{op.what}: comparisons", n * length * len(grams) * size * (skips + 1), MAX_COMPARED, "use fewer n-grams")
    total = op.zeros((n, len(grams)), DType.FLOAT32)
    for step in range(1, skips + 2):
        count = length - step * (size - 1)
        if count < 1:
            break
        same = []
        for k in range(size):
            part = op.reshape(op.cut(rows, 1, step * k, count), (n, count, 1))
            wanted = op.constant([gram[k] for gram in grams], rows.type.dtype, (1, 1, len(grams)))
            same.append(op.binary(ew.EQUAL, part, wanted))
        hits = op.cast(functools.reduce(lambda a, b: op.binary(ew.LOGICAL_AND, a, b), same), DType.FLOAT32)
        total = op.binary(ew.ADD, total, op.emit(reduce.REDUCE_SUM, [hits], reduce.ReduceAttrs((1,))))
    return total


def _weighted(op: Operation, y: Value, columns: int) -> Value:
    mode, weights = op.chosen("mode", ("TF", "IDF", "TFIDF"), "TF"), op.reals("weights")
    if mode == "IDF":
        y = op.cast(op.binary(ew.GREATER, y, op.scalar_of(0.0, DType.FLOAT32)), DType.FLOAT32)
    if mode == "TF" or not weights:
        return y
    if len(weights) != columns:
        op.fail(f"{len(weights)} weights for {columns} results")
    return op.binary(ew.MUL, y, op.constant(weights, DType.FLOAT32))


CONVERTERS: dict[str, Convert] = {"TfIdfVectorizer": _vectorizer}
