"""Products of matrices of integers, in integers: no float32 lies between, so that no sum is rounded."""

from __future__ import annotations

import math

from webinfer.graph.ir import Value
from webinfer.importers.core.limits import within
from webinfer.importers.core.operation import BaseOperation
from webinfer.ops import elementwise as ew
from webinfer.ops import reduce

MAX_PRODUCTS = 2**24  # which are held all at once


def whole_product(op: BaseOperation, a: Value, b: Value, transpose_a: bool = False, transpose_b: bool = False) -> Value:
    """a times b in their own integer type, which wraps around; leading axes broadcast.

    Shapes:  a [..., M, K] (or [..., K, M] transposed), b [..., K, N] (or [..., N, K]) -> [..., M, N]
    Raises:  LimitError if there are too many products
    """
    a, b = (_turned(op, x) if turned else x for x, turned in ((a, transpose_a), (b, transpose_b)))
    (*lead, m, k), (*other, inner, n) = a.type.shape, b.type.shape
    if k != inner:
        op.fail(f"inner sizes {k} of {a.type.shape} and {inner} of {b.type.shape} differ")
    count = max(math.prod(lead), 1) * max(math.prod(other), 1) * m * k * n
    within(f"{op.what}: products of integers", count, MAX_PRODUCTS, "use float32, or smaller matrices")
    left, right = op.reshape(a, (*lead, m, k, 1)), op.reshape(b, (*other, 1, k, n))
    products = op.binary(ew.MUL, left, right)
    return op.emit(reduce.REDUCE_SUM, [products], reduce.ReduceAttrs((products.type.rank - 2,)))


def _turned(op: BaseOperation, x: Value) -> Value:
    """x with its last two axes swapped."""
    rank = x.type.rank
    return op.transpose(x, (*range(rank - 2), rank - 1, rank - 2))
