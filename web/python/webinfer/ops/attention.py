"""Attention: softmax(q kT * scale + mask) v, by heads, as one step; the scaled logits may be capped softly."""

from __future__ import annotations

import math
from collections.abc import Sequence

from webinfer.errors import ShapeError
from webinfer.graph.ir import Case, Cost, Op, TensorType, Tolerance
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.registry import all_real, declare, moved_bytes, need

Inputs = Sequence[TensorType | None]
MAX_WIDTH = 256  # elements of a query, a key or a value


@dataclass(frozen=True, slots=True)
class AttentionAttrs:
    """`inner`: of q, k, v and y, whether the heads lie inside a row ([B, L, H, D]) or around it ([B, H, L, D]).

    `clear_nan`: a query whose weights are not numbers, for it is without any key, gets zeros, whatever the values are.
    `softcap`: a bound c of the scaled logits, which become c * tanh(x / c) before the mask is added; 0 for none.
    """

    scale: float = 1.0
    inner: tuple[bool, bool, bool, bool] = (False, False, False, False)
    clear_nan: bool = False
    softcap: float = 0.0


def by_heads(shape: Sequence[int], inner: bool) -> tuple[int, int, int, int]:
    """(batches, heads, rows, elements of a row) of q, k, v or y."""
    b, h, n, d = shape
    return (b, n, h, d) if inner else (b, h, n, d)


def infer(inputs: Inputs, a: AttentionAttrs) -> tuple[TensorType, ...]:
    """Type of y.

    Shapes:  q [B, H, Q, D], k [B, G, K, D], v [B, G, K, E], mask [1 or B, 1 or H, 1 or Q, K] or absent
             -> y [B, H, Q, E], each laid out as `inner` says; H is a multiple of G, and H / G heads in a row share
             with columns [1 or B, 1 or H, 1 or Q, C], the mask is [.., K / C]: key i gets mask[i / C] + columns[i % C],
             as keys that are the places of a picture have a bias for their row and one for their column
    Raises:  ShapeError if the shapes do not fit, something is empty, rows are longer than `MAX_WIDTH`, or a number is
             none that the kernels take
    """
    q, k, v = (need("attention", name, t, 4) for name, t in zip("qkv", inputs, strict=False))
    mask, columns = [*inputs[3:], None, None][:2]
    (b, h, n, d), (kb, g, keys, kd), values = (by_heads(t.shape, i) for t, i in zip((q, k, v), a.inner, strict=False))
    fits = kb == b and kd == d and values[:3] == (b, g, keys) and not h % max(g, 1) and (columns is None or mask)
    biases = [bias for bias in (mask, columns) if bias is not None]
    for bias in biases:
        sizes = zip(bias.shape[:3], (b, h, n), strict=True) if bias.rank == 4 else [(0, 1)]
        fits = fits and all(size in (1, full) for size, full in sizes)
    fits = fits and (not biases or math.prod(bias.shape[-1] for bias in biases) == keys)
    if not fits or len({t.dtype for t in (q, k, v, *biases)}) > 1:
        told = f", columns {columns}" if columns else ""
        raise ShapeError(f"attention: q {q}, k {k}, v {v}, mask {mask}{told} do not fit")
    if not all((*q.shape, *k.shape, *v.shape)) or max(d, values[3]) > MAX_WIDTH or not math.isfinite(a.scale):
        raise ShapeError(
            f"attention: q {q}, k {k}, v {v} must have elements, at most {MAX_WIDTH} a row; scale {a.scale}"
        )
    if not 0.0 <= a.softcap < math.inf:
        raise ShapeError(f"attention: a softcap of {a.softcap}, needs 0 for none, or more")
    shape = (b, n, h, values[3]) if a.inner[3] else (b, h, n, values[3])
    return (TensorType(shape, q.dtype),)


def cost(inputs: Inputs, outputs: Sequence[TensorType], a: AttentionAttrs) -> Cost:
    """Two products, and about five operations for each weight."""
    b, h, n, d = by_heads(need("attention", "q", inputs[0]).shape, a.inner[0])
    keys, width = by_heads(need("attention", "v", inputs[2]).shape, a.inner[2])[2:]
    return Cost(b * h * n * keys * (2 * d + 2 * width + 5), moved_bytes(inputs, outputs))


def strides(shape: Sequence[int], inner: bool) -> tuple[int, int, int]:
    """Elements from one batch to the next, from one head, from one row."""
    _, h, n, d = by_heads(shape, inner)
    return (h * n * d, d, h * d) if inner else (h * n * d, n * d, d)


def mask_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """The same of a mask, or of the part of one: 0 along an axis that it is repeated along."""
    _, h, n, k = shape
    return tuple(0 if size == 1 else step for size, step in zip(shape, (h * n * k, n * k, k), strict=False))


def _case(
    label: str, q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...] = (), mask: tuple[int, ...] = (),
    inner: tuple[bool, bool, bool, bool] = (False,) * 4, clear_nan: bool = False, scale: float = 0.3,
    values: dict[int, Sequence[float]] | None = None, columns: tuple[int, ...] = (), softcap: float = 0.0,
) -> Case:  # fmt: skip
    inputs = [TensorType(shape) for shape in (q, k, v or k, mask, columns) if shape]
    attrs = AttentionAttrs(scale, inner, clear_nan, softcap)
    return Case(label, tuple(inputs), attrs, low=-2.0, high=2.0, values=values or {})


_NONE, _LEAST = -math.inf, -3.4028234663852886e38  # float32's lowest number, which exporters write for -inf
_SOME = (0.0, _NONE, 1.0, _NONE, _NONE, _NONE)
_CAUSAL: dict[int, Sequence[float]] = {3: [0.0 if j <= i + 100 else _NONE for i in range(40) for j in range(140)]}
_WINDOW: dict[int, Sequence[float]] = {
    3: [0.0 if i + 60 < j <= i + 100 else _NONE for i in range(40) for j in range(140)]
}
_WIDE = (  # rows of more than 128 elements
    _case("160 elements", (2, 5, 2, 160), (2, 9, 2, 160), (2, 2, 9, 160), inner=(True, True, False, True), scale=0.1),
    _case("192 elements, a mask for each head", (1, 2, 19, 192), (1, 2, 36, 192), mask=(1, 2, 19, 36), scale=0.1),
    _case("values of 192 for keys of 256", (1, 2, 9, 256), (1, 1, 70, 256), (1, 1, 70, 192), scale=0.06),
    _case("values of 8 for keys of 136", (1, 2, 9, 136), (1, 2, 37, 136), (1, 2, 37, 8), scale=0.1),
    _case("values of 200 for keys of 12", (1, 2, 9, 12), (1, 2, 37, 12), (1, 2, 37, 200)),
    _case("odd sizes, 193 and 131", (1, 2, 7, 193), (1, 2, 13, 193), (1, 2, 13, 131), scale=0.1),
    _case("causal rows of 256", (1, 4, 40, 256), (1, 2, 140, 256), mask=(1, 1, 40, 140), values=_CAUSAL, scale=0.06),
    _case("a window of keys, with a softcap", (1, 4, 40, 256), (1, 2, 140, 256), mask=(1, 1, 40, 140), values=_WINDOW,
        scale=0.06, softcap=3.0),
    _case("one row of 256, many keys", (1, 8, 1, 256), (1, 4, 150, 256), scale=0.5),
    _case("biases of rows and columns, 256", (1, 2, 24, 256), (1, 2, 24, 256), mask=(1, 2, 24, 6),
        columns=(1, 2, 24, 4), scale=0.06),
    _case("a wide query without keys", (1, 1, 2, 144), (1, 1, 6, 144), mask=(1, 1, 2, 6), clear_nan=True, scale=0.1,
        values={3: (*_SOME, *[_NONE] * 6)}),
)  # fmt: skip
ATTENTION = declare(
    Op(
        "attention", AttentionAttrs, infer, cost,
        Tolerance(1e-5, 3e-5, "float32 sums in a free order; an error of a logit is a factor", summed=True),
        (
            _case("heads around rows", (2, 3, 10, 8), (2, 3, 16, 8)),
            _case("heads inside rows", (2, 10, 3, 8), (2, 16, 3, 8), inner=(True,) * 4),
            _case("mixed, odd sizes", (1, 2, 7, 5), (1, 13, 2, 5), (1, 2, 13, 3), inner=(False, True, False, True)),
            _case("a mask for each query", (1, 4, 9, 12), (1, 4, 11, 12), mask=(1, 1, 9, 11)),
            _case("a mask for each batch", (2, 2, 5, 4), (2, 2, 6, 4), mask=(2, 1, 1, 6)),
            _case("a mask for each head", (1, 3, 2, 4), (1, 3, 70, 4), mask=(1, 3, 2, 70),
                inner=(False, False, False, True)),
            _case("heads that share keys", (1, 6, 3, 8), (1, 2, 9, 8)),
            _case("many keys, steep", (1, 1, 6, 32), (1, 1, 150, 32), scale=4.0),
            _case("one query, one key", (1, 1, 1, 4), (1, 1, 1, 4)),
            _case("hidden keys", (1, 1, 2, 4), (1, 1, 6, 4), mask=(1, 1, 2, 6), values={3: _SOME * 2}),
            _case("more rows than a block, keys in blocks", (1, 2, 30, 12), (1, 2, 70, 12)),
            _case("heads that share keys, a mask each", (1, 4, 7, 6), (1, 2, 69, 6), mask=(1, 4, 1, 69)),
            _case("later keys are hidden", (1, 1, 9, 4), (1, 1, 140, 4), mask=(1, 1, 9, 140),
                values={3: [0.0 if j <= i else _NONE for i in range(9) for j in range(140)]}),
            _case("first keys are next to hidden", (1, 1, 3, 4), (1, 1, 200, 4), mask=(1, 1, 3, 200),
                values={3: [0.0 if 70 < j < 75 + i else _LEAST for i in range(3) for j in range(200)]}),
            _case("all keys are next to hidden", (1, 1, 2, 4), (1, 1, 130, 4), mask=(1, 1, 1, 130),
                values={3: [_LEAST] * 130}),
            _case("a bias for rows and one for columns", (1, 3, 35, 8), (1, 3, 35, 8), mask=(1, 3, 35, 5),
                columns=(1, 3, 35, 7)),
            _case("quads of columns, in blocks of keys", (2, 48, 2, 4), (2, 144, 2, 4), mask=(2, 2, 48, 12),
                columns=(2, 2, 48, 12), inner=(True, True, True, True)),
            _case("columns of one for all, many rows", (1, 4, 9, 4), (1, 2, 130, 4), mask=(1, 1, 9, 65),
                columns=(1, 4, 1, 2)),
            _case("a softcap", (1, 4, 9, 8), (1, 2, 70, 8), mask=(1, 1, 9, 70), scale=1.5, softcap=2.5),
            _case("a softcap, quads of keys", (1, 3, 2, 12), (1, 3, 12, 12), (1, 3, 12, 5), softcap=0.5),
            *_WIDE,
            _case("a query without keys", (1, 1, 2, 4), (1, 1, 6, 4), mask=(1, 1, 2, 6), clear_nan=True,
                values={3: (*_SOME, *[_NONE] * 6)}),
        ),
        types=(all_real,),
    )
)  # fmt: skip
