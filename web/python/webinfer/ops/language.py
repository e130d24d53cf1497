"""What language models are made of: products with weights in a file's blocks, attention over a cache, the next word."""

from __future__ import annotations

import enum
import math
import struct
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from webinfer.dtypes import DType
from webinfer.errors import ShapeError
from webinfer.expr import formula as f
from webinfer.expr.kernel import Kernel, Kind, Tensor, axes, sizes
from webinfer.graph.ir import Case, Cost, Op, TensorType, Tolerance
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.registry import EXACT, TRANSCENDENTAL, NoAttrs, declare, moved_bytes, need

Inputs = Sequence[TensorType | None]
MAX_ROWS = 512  # activations of a product with blocks
MAX_HEAD = 128  # elements of a head of attention over a cache
LANES = 8  # rows of the cache whose keys lie side by side
MOST = 4095  # of a cache of whole numbers: a row of a head is such numbers times a scale
SCALE = 2  # numbers of 16 bits in whose place a scale lies
CACHES = (DType.INT16, DType.FLOAT32)  # what keys and values may be kept as
PLACE = TensorType((2,), DType.INT32)


class BlockType(enum.IntEnum):
    """How weights lie in a GGUF file, by the file's number."""

    F32 = 0
    F16 = 1
    Q4_0 = 2
    Q4_1 = 3
    Q5_0 = 6
    Q5_1 = 7
    Q8_0 = 8
    Q4_K = 12
    Q5_K = 13
    Q6_K = 14
    BF16 = 30

    @property
    def is_float(self) -> bool:
        """Whether each weight is a number of its own."""
        return self in (BlockType.F32, BlockType.F16, BlockType.BF16)

    @property
    def elements(self) -> int:
        """Weights of a block."""
        return 256 if self.name.endswith("_K") else 1 if self.is_float else 32

    @property
    def nbytes(self) -> int:
        """Bytes of a block."""
        return _BYTES[self]


_BYTES = dict(zip(BlockType, (4, 2, 18, 20, 22, 24, 34, 144, 176, 210, 2), strict=True))


def row_bytes(type: BlockType, k: int) -> int:
    """Bytes of a row of k weights.

    Raises:  ShapeError unless they fill whole blocks, of 32 at least
    """
    if k < 1 or k % max(type.elements, 32):
        raise ShapeError(f"a row of {k} weights does not fill blocks of {max(type.elements, 32)} ({type.name})")
    return k // type.elements * type.nbytes


def _check(op: str, **wanted: tuple[TensorType | None, tuple[int, ...], DType]) -> None:
    for name, (found, shape, dtype) in wanted.items():
        if found is not None and (found.shape != shape or found.dtype is not dtype):
            raise ShapeError(f"{op}: {name} is {found}, needs {TensorType(shape, dtype)}")


# ----- products with weights in blocks


@dataclass(frozen=True, slots=True)
class BlockAttrs:
    """block_matmul and block_rows: how the weights lie."""

    type: BlockType


def _matmul(inputs: Inputs, a: BlockAttrs) -> tuple[TensorType, ...]:
    """Type of y = x wT + bias + residual. Unless weights are floats, x is rounded: each 32 elements become whole
    numbers from -16256 to 16256 times a scale.

    Shapes:  x [M, K], w bytes [N, row], bias [N] or absent, residual [M, N] or absent, place int32 [2] or absent
             -> y [M, N]; the second number of place is how many rows count, others become 0
    Raises:  ShapeError if the sizes do not fit
    """
    x, w = need("block_matmul", "x", inputs[0], 2), need("block_matmul", "w", inputs[1], 2)
    bias, residual, place = [*inputs, None, None, None][2:5]
    rows, n, float32 = x.shape[0], w.shape[0], DType.FLOAT32
    if not 0 < rows <= MAX_ROWS or not n:
        raise ShapeError(f"block_matmul: x {x} by w {w}; needs 1 to {MAX_ROWS} rows of x")
    _check(
        "block_matmul", x=(x, x.shape, float32), w=(w, (n, row_bytes(a.type, x.shape[1])), DType.UINT8),
        bias=(bias, (n,), float32), residual=(residual, (rows, n), float32), place=(place, (2,), DType.INT32),
    )  # fmt: skip
    return (TensorType((rows, n)),)


def _matmul_cost(inputs: Inputs, outputs: Sequence[TensorType], a: BlockAttrs) -> Cost:
    return Cost(2 * need("block_matmul", "x", inputs[0]).shape[1] * outputs[0].size, moved_bytes(inputs, outputs))


def _rows(inputs: Inputs, a: BlockAttrs) -> tuple[TensorType, ...]:
    """Type of y, the rows of a table that numbers name; a number that it has not counts as 0.

    Shapes:  table bytes [V, row], ids int32 [M] -> y [M, K]
    Raises:  ShapeError if the sizes do not fit, or the table has no rows
    """
    table, ids = need("block_rows", "table", inputs[0], 2), need("block_rows", "ids", inputs[1], 1)
    k = table.shape[1] // a.type.nbytes * a.type.elements
    if not table.shape[0]:
        raise ShapeError(f"block_rows: table {table} has no rows")
    _check(
        "block_rows", table=(table, (table.shape[0], row_bytes(a.type, k)), DType.UINT8),
        ids=(ids, ids.shape, DType.INT32),
    )  # fmt: skip
    return (TensorType((*ids.shape, k)),)


def _moved(inputs: Inputs, outputs: Sequence[TensorType], a: object) -> Cost:
    return Cost(8 * outputs[0].size, moved_bytes((), outputs) * 2)


class _SampleBlocks(Sequence[int]):
    """Bytes of weights between -1 and 1 about, the same each time. Made when they are read: only tests do."""

    def __init__(self, type: BlockType, n: int, k: int) -> None:
        self._type, self._nbytes = type, n * row_bytes(type, k)

    @cached_property
    def _bytes(self) -> list[int]:
        return _sample_bytes(self._type, self._nbytes)

    def __len__(self) -> int:
        return self._nbytes

    def __getitem__(self, index: Any) -> Any:
        return self._bytes[index]


def _sample_bytes(type: BlockType, nbytes: int) -> list[int]:
    data = bytearray((i * 73 + i // 7 * 5 + i // 256) % 256 for i in range(nbytes))
    small, heads = struct.pack("<e", 0.04), {"Q6_K": (208,), "Q8_0": (0,), "Q4_0": (0,), "Q5_0": (0,)}
    for at in range(0, len(data), type.nbytes):
        if type.is_float:
            number = ((at // type.nbytes * 37) % 101 - 50) / 50
            wide = struct.pack("<f", number)
            data[at : at + type.nbytes] = {4: wide, 2: struct.pack("<e", number)}[type.nbytes]
            if type is BlockType.BF16:
                data[at : at + 2] = wide[2:]
            continue
        for head in heads.get(type.name, (0, 2)):
            scale = struct.pack("<e", 0.0007 * (1 + at % 3)) if type.elements == 256 else small
            data[at + head : at + head + 2] = scale if type is not BlockType.Q8_0 else struct.pack("<e", 0.006)
    return list(data)


def _matmul_case(type: BlockType, rows: int, n: int, k: int, label: str = "", **more: bool) -> Case:
    extra = (
        TensorType((n,)) if more.get("bias") else None, TensorType((rows, n)) if more.get("residual") else None,
        PLACE if more.get("place") else None,
    )  # fmt: skip
    w = TensorType((n, row_bytes(type, k)), DType.UINT8)
    values: dict[int, Sequence[float]] = {1: _SampleBlocks(type, n, k)}
    if more.get("place"):
        values[4] = (5, rows)
    name = f"{type.name}, {rows} by {n} by {k}{label}"
    return Case(name, (TensorType((rows, k)), w, *extra), BlockAttrs(type), values=values, constant=(1, 2))


BLOCK_MATMUL = declare(
    Op(
        "block_matmul", BlockAttrs, _matmul, _matmul_cost,
        Tolerance(1e-3, 2e-5, "the order of a float32 sum is free; terms of cases are as large as 16", summed=True),
        (
            *(_matmul_case(type, rows, 13, 512) for type in BlockType for rows in (1, 6)),
            _matmul_case(BlockType.Q4_1, 1, 24, 1824, ", bias and residual", bias=True, residual=True, place=True),
            _matmul_case(BlockType.Q4_1, 9, 9, 1824, ", bias and residual", bias=True, residual=True, place=True),
            _matmul_case(BlockType.F16, 3, 5, 64, ", residual", residual=True),
        ),
    )
)  # fmt: skip
BLOCK_ROWS = declare(
    Op(
        "block_rows", BlockAttrs, _rows, _moved, Tolerance(1e-6, 1e-6, "a product and a sum in float32"),
        tuple(
            Case(
                type.name, (TensorType((9, row_bytes(type, 256)), DType.UINT8), TensorType((4,), DType.INT32)),
                BlockAttrs(type), values={0: _SampleBlocks(type, 9, 256), 1: (3, 0, 8, 11)}, constant=(0,),
            )
            for type in BlockType
        ),
    )
)  # fmt: skip


# ----- attention over a cache


@dataclass(frozen=True, slots=True)
class CachedAttentionAttrs:
    """`turned` elements of each query and key turn with the position; a pair is 2j and 2j+1 if `adjacent`, else j and
    j + turned/2. `scale` is that of the logits."""

    heads: int
    groups: int
    turned: int
    adjacent: bool
    scale: float


def cache_shapes(
    groups: int, width: int, capacity: int, dtype: DType = DType.FLOAT32
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shapes of a cache of keys and of one of values.

    Of floats, keys lie 8 rows side by side. Of whole numbers both caches have blocks of 8 rows, each with 8 float32
    scales, then the numbers: element d of key j at [d/2, j, d%2], of value j at [j/2, d, j%2].
    """
    if dtype is DType.INT16:
        return ((groups, capacity // LANES, LANES * (SCALE + width)),) * 2
    return (groups, capacity // LANES, width, LANES), (groups, capacity, width)


def cache_sizes(values: TensorType) -> tuple[int, int, int]:
    """Groups, capacity and width of a cache of values."""
    groups, rows, row = values.shape
    return (groups, rows * LANES, row // LANES - SCALE) if values.dtype is DType.INT16 else (groups, rows, row)


def cache_row_bytes(dtype: DType, width: int) -> int:
    """Bytes that a row of one head takes in a cache."""
    return 2 * (SCALE + width) if dtype is DType.INT16 else 4 * width


def _cached(inputs: Inputs, a: CachedAttentionAttrs) -> tuple[TensorType, ...]:
    """Type of y. Row i of q, k and v has the position place[0] + i; place[1] rows count, of others y is 0. So is all of
    it where the caches do not hold the positions of the rows that count.

    The rows of k, turned, and of v are written to the caches, which are changed in place, at their positions. Then
    y = softmax(q kT * scale) v over the caches' rows up to the query's own.

    Into caches of int16 go numbers from -4095 to 4095: a row of a head has a scale. Queries are rounded likewise.

    Shapes:  q [M, heads*D], k and v [M, groups*D], place int32 [2], speeds [turned/2] radians a position,
             keys and values as `cache_shapes` says -> y [M, heads*D]
    Raises:  ShapeError if the sizes do not fit
    """
    names = ("q", "k", "v", "place", "speeds", "keys", "values")
    q, k, v, place, speeds, keys, values = (need("cached_attention", n, t) for n, t in zip(names, inputs, strict=True))
    if a.groups < 1 or a.heads < 1 or a.heads % a.groups or q.rank != 2 or q.shape[1] % a.heads or values.rank != 3:
        raise ShapeError(f"cached_attention: {a.heads} heads in {a.groups} groups, q {q}, values {values} do not fit")
    rows, width, real, kept = q.shape[0], q.shape[1] // a.heads, DType.FLOAT32, values.dtype
    capacity = cache_sizes(values)[1]
    if kept not in CACHES:
        raise ShapeError(f"cached_attention: values {values}, needs {' or '.join(CACHES)}")
    if width % 4 or not 0 < width <= MAX_HEAD or capacity % LANES or not capacity or not rows:
        raise ShapeError(f"cached_attention: heads of {width}, needs 4, 8 .. {MAX_HEAD}; capacity {capacity}, 8, 16 ..")
    if a.turned % 2 or not 0 < a.turned <= width or not math.isfinite(a.scale):
        raise ShapeError(f"cached_attention: {a.turned} of {width} elements turn, scale {a.scale}")
    shapes, row = cache_shapes(a.groups, width, capacity, kept), (rows, a.groups * width)
    _check(
        "cached_attention", q=(q, q.shape, real), k=(k, row, real), v=(v, row, real), place=(place, (2,), DType.INT32),
        speeds=(speeds, (a.turned // 2,), real), keys=(keys, shapes[0], kept), values=(values, shapes[1], kept),
    )  # fmt: skip
    return (q,)


def _cached_cost(inputs: Inputs, outputs: Sequence[TensorType], a: CachedAttentionAttrs) -> Cost:
    q, values = outputs[0], need("cached_attention", "values", inputs[6])
    half = cache_sizes(values)[1] // 2  # of the cache is filled, say
    return Cost(4 * q.size * half, moved_bytes((q, q), ()) + values.nbytes)


def _sample_cache(groups: int, width: int, capacity: int) -> list[int]:
    """A cache of whole numbers, the same each time."""
    words: list[int] = []
    for block in range(groups * capacity // LANES):
        scales = [5e-6 + 2.5e-7 * ((block + lane) % 7) for lane in range(LANES)]
        words += struct.unpack(f"<{LANES * SCALE}h", struct.pack(f"<{LANES}f", *scales))
        words += [(i * 2917 + block * 613) % (2 * MOST + 1) - MOST for i in range(LANES * width)]
    return words


def _cached_case(
    label: str, rows: int, heads: int, groups: int, width: int, capacity: int, place: tuple[int, int],
    kept: DType = DType.FLOAT32, **attrs: object,
) -> Case:  # fmt: skip
    turned = int(attrs.pop("turned", width))  # type: ignore[call-overload]
    whole = kept is DType.INT16  # small numbers, as weights of 13 bits are further from the sum than floats
    a = CachedAttentionAttrs(heads, groups, turned, bool(attrs.pop("adjacent", False)), 400.0 if whole else 0.4)
    row, caches = TensorType((rows, groups * width)), cache_shapes(groups, width, capacity, kept)
    inputs = (
        TensorType((rows, heads * width)), row, row, PLACE, TensorType((turned // 2,)),
        *(TensorType(shape, kept) for shape in caches),
    )  # fmt: skip
    values: dict[int, Sequence[float]] = {3: place, 4: [100.0 ** (-2 * i / turned) for i in range(turned // 2)]}
    if whole:
        values |= dict.fromkeys((5, 6), _sample_cache(groups, width, capacity))
    most = 0.03 if whole else 2.0
    return Case(label, inputs, a, low=-most, high=most, values=values, constant=(4,))


CACHED_ATTENTION = declare(
    Op(
        "cached_attention", CachedAttentionAttrs, _cached, _cached_cost,
        Tolerance(2e-5, 1e-4, "float32 sums in a free order, and sines of float32 angles", summed=True),
        (
            _cached_case("one row, groups", 1, 6, 2, 8, 32, (19, 1)),
            _cached_case("some rows from the start, adjacent", 5, 4, 4, 16, 16, (0, 5), adjacent=True),
            _cached_case("rows behind others", 9, 6, 2, 8, 96, (70, 9)),
            _cached_case("a part turns", 3, 2, 1, 12, 16, (8, 3), turned=8),
            _cached_case("the cache becomes full", 8, 3, 1, 64, 72, (64, 8)),
            _cached_case("one row, many keys", 1, 9, 3, 12, 160, (143, 1)),
            _cached_case("one row, groups, whole numbers", 1, 6, 2, 8, 32, (19, 1), DType.INT16),
            _cached_case("one row, many keys, whole numbers", 1, 9, 3, 12, 160, (143, 1), DType.INT16),
            _cached_case("a row that the cache cannot hold, whole numbers", 1, 2, 1, 8, 16, (16, 1), DType.INT16),
            _cached_case("rows behind others, whole numbers", 9, 8, 2, 16, 96, (70, 9), DType.INT16),
            _cached_case("the cache becomes full, whole numbers", 8, 3, 1, 64, 72, (64, 8), DType.INT16),
        ),
    )
)  # fmt: skip


# ----- SwiGLU, and the next word


def _swiglu(inputs: Inputs, a: NoAttrs) -> tuple[TensorType, ...]:
    """Type of y = gate / (1 + exp(-gate)) * up.

    Shapes:  gate, up, y alike
    Raises:  ShapeError if they are not
    """
    gate, up = need("swiglu", "gate", inputs[0]), need("swiglu", "up", inputs[1])
    _check("swiglu", gate=(gate, gate.shape, DType.FLOAT32), up=(up, gate.shape, DType.FLOAT32))
    return (gate,)


def _swiglu_kernel(inputs: Inputs, outputs: Sequence[TensorType], a: NoAttrs) -> Kernel:
    (one, whole), kind = sizes(one=1, whole=outputs[0].size), Kind.NUMBER
    row, i = axes(row=one, i=whole)
    gate, up = Tensor("gate", (one, whole), kind), Tensor("up", (one, whole), kind)
    x = gate[row, i]
    shut = f.exp(f.min(-x, 80.0))  # e^80 is far from what overflows, and leaves nothing of the gate
    return Kernel("swiglu", (gate, up), (row, i), x / (1.0 + shut) * up[row, i], kind)


SWIGLU = declare(
    Op(
        "swiglu", NoAttrs, _swiglu, _moved, TRANSCENDENTAL,
        (
            Case("plain", (TensorType((3, 20)),) * 2, NoAttrs()),
            Case("an odd size, steep", (TensorType((1, 7)),) * 2, NoAttrs(), low=-90.0, high=90.0),
        ),
        kernel=_swiglu_kernel,
    )
)  # fmt: skip


def _sample(inputs: Inputs, a: NoAttrs) -> tuple[TensorType, ...]:
    """Type of y: the place of one logit, drawn with weights exp(x / temperature), and the place of the largest.

    `options` are temperature (0: the largest logit is taken), how many of the largest logits count (0: all), what
    share of their weight counts (the largest up to there), and the draw from 0 to 1.

    Shapes:  x [1, N], options float32 [4] -> y int32 [2]
    Raises:  ShapeError if the sizes do not fit
    """
    x, options = need("sample", "x", inputs[0], 2), need("sample", "options", inputs[1])
    _check("sample", x=(x, (1, max(x.shape[1], 1)), DType.FLOAT32), options=(options, (4,), DType.FLOAT32))
    return (TensorType((2,), DType.INT32),)


def _sample_case(label: str, n: int, *options: float) -> Case:
    spread = [((i * 7919 + 3) % n) / n * 6 - 3 for i in range(n)]
    return Case(label, (TensorType((1, n)), TensorType((4,))), NoAttrs(), values={0: spread, 1: options})


SAMPLE = declare(
    Op(
        "sample", NoAttrs, _sample, _moved, EXACT,
        (
            _sample_case("the largest", 37, 0.0, 0, 1, 0.9), _sample_case("all", 1030, 0.8, 0, 1, 0.61),
            _sample_case("the five largest", 203, 1.0, 5, 1, 0.99), _sample_case("a share", 501, 0.5, 0, 0.6, 0.8),
            _sample_case("a share of some", 501, 2.0, 50, 0.5, 0.97), _sample_case("one at least", 11, 1.0, 0, 0, 0.5),
            _sample_case("the last of all", 203, 1.0, 0, 1, 1.0),
            _sample_case("the last of a share", 77, 1.0, 9, 0.9, 1.0),
        ),
    )
)  # fmt: skip
