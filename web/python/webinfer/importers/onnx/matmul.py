"""ONNX's matrix products."""

from __future__ import annotations

from webinfer.graph.ir import Value
from webinfer.importers.core.einsum import einsum
from webinfer.importers.core.whole_product import whole_product
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.ops import elementwise as ew
from webinfer.ops import matmul as mm
from webinfer.ops import movement as mv


def product(op: Operation, a: Value, b: Value, transpose_a: bool = False, transpose_b: bool = False) -> Value:
    """a times b as NumPy multiplies; vectors are rows of a and columns of b."""
    if min(a.type.rank, b.type.rank) < 1:
        op.fail(f"a product of {a.type.shape} and {b.type.shape}")
    row, column = a.type.rank == 1, b.type.rank == 1
    a = op.reshape(a, (1, *a.type.shape)) if row else a
    b = op.reshape(b, (*b.type.shape, 1)) if column else b
    if a.type.dtype.is_float:
        y = op.emit(mm.MATMUL, [a, b], mm.MatmulAttrs(transpose_a, transpose_b))
    else:
        y = whole_product(op, a, b, transpose_a, transpose_b)
    shape = list(y.type.shape)
    if column:
        del shape[-1]
    if row:
        del shape[-1 if column else -2]
    return op.reshape(y, shape)


def _swapped(op: Operation, key: int) -> tuple[Value, bool]:
    """An operand, and whether its last two axes stand the other way round in what is computed."""
    x = op.arranged(key)
    rank = len(x.perm)
    if rank >= 2 and x.perm == (*range(rank - 2), rank - 1, rank - 2):
        return x.value, True
    return op.value(key), False


def _matmul(op: Operation) -> Value:
    (a, first), (b, second) = _swapped(op, 0), _swapped(op, 1)
    return product(op, a, b, first, second)


def _gemm(op: Operation) -> Value:
    """alpha * A * B + beta * C"""
    (a, first), (b, second) = _swapped(op, 0), _swapped(op, 1)
    if a.type.rank != 2 or b.type.rank != 2:
        op.fail(f"{a.type.shape} and {b.type.shape} are not matrices")
    alpha, beta, addend = op.real("alpha", 1.0), op.real("beta", 1.0), op.optional(2)
    turned = first != bool(op.whole("transA", 0)), second != bool(op.whole("transB", 0))
    if not a.type.dtype.is_float:
        op.refuse(f"a product of {a.type.dtype}")
    size = (b.type.shape[0] if turned[1] else b.type.shape[1],)
    bias = addend if addend is not None and addend.type.shape == size and alpha == beta == 1.0 else None
    y = op.emit(mm.MATMUL, [a, b, bias] if bias is not None else [a, b], mm.MatmulAttrs(*turned))
    if alpha != 1.0:
        y = op.unary(ew.LINEAR, y, alpha, 0.0)
    if addend is None or bias is not None:
        return y
    return op.binary(ew.ADD, y, addend if beta == 1.0 else op.unary(ew.LINEAR, addend, beta, 0.0))


def _fused_matmul(op: Operation) -> Value:
    """A product of operands that may be transposed, times alpha; a batch may be the last axis but one."""
    a, b = (_batched(op, key, bool(op.whole(name, 0))) for key, name in enumerate(("transBatchA", "transBatchB")))
    y = product(op, a, b, bool(op.whole("transA", 0)), bool(op.whole("transB", 0)))
    alpha = op.real("alpha", 1.0)
    return y if alpha == 1.0 else op.unary(ew.LINEAR, y, alpha)


def _batched(op: Operation, key: int, turned: bool) -> Value:
    """An operand; where it is `turned`, [M, batch..., K] as [batch..., M, K]."""
    x = op.value(key)
    if not turned or x.type.rank < 3:
        return x
    return op.transpose(x, (*range(1, x.type.rank - 1), 0, x.type.rank - 1))


def _einsum(op: Operation) -> Value:
    return einsum(op, op.word("equation", ""), op.values())


def _determinant(op: Operation) -> Value:
    """Of matrices of up to four rows, by their first rows."""
    x = op.value(0)
    size = x.type.shape[-1] if x.type.rank > 1 else 0
    if x.type.rank < 2 or x.type.shape[-2] != size or not x.type.dtype.is_float:
        op.fail(f"{x.type} is not a square matrix")
    if not size:  # an empty product
        return op.emit(mv.EXPAND, [op.scalar_of(1.0, x.type.dtype)], mv.ExpandAttrs(x.type.shape[:-2]))
    if size > 4:
        op.refuse(f"matrices of {size} rows")
    flat = op.reshape(x, (*x.type.shape[:-2], size * size))
    cells = [op.row(flat, x.type.rank - 2, i) for i in range(size * size)]

    def below(first: int, columns: tuple[int, ...]) -> Value:
        """The determinant of the rows from `first` on, in these columns."""
        if len(columns) == 1:
            return cells[first * size + columns[0]]
        total: Value | None = None
        for i, column in enumerate(columns):
            rest = below(first + 1, (*columns[:i], *columns[i + 1 :]))
            part = op.binary(ew.MUL, cells[first * size + column], rest)
            total = part if total is None else op.binary(ew.SUB if i % 2 else ew.ADD, total, part)
        assert total is not None
        return total

    return below(0, tuple(range(size)))


CONVERTERS: dict[str, Convert] = {
    "Det": _determinant,
    "Einsum": _einsum,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "com.microsoft.FusedMatMul": _fused_matmul,
    "com.microsoft.TransposeMatMul": _fused_matmul,
}
