"""Rotary positions: pairs of a row's elements turn by the angles of the row's position."""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.errors import ShapeError
from webinfer.expr.formula import Operand, select
from webinfer.expr.kernel import Kernel, Kind, Tensor, axes, real, sizes
from webinfer.graph.ir import Case, Op, TensorType, Tolerance
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.registry import all_real, declare, elementwise_cost, need

Inputs = Sequence[TensorType | None]


@dataclass(frozen=True, slots=True)
class RotateAttrs:
    """A pair is the elements 2j and 2j + 1 if `adjacent`, else j and j + half of those that turn.

    `inner`: whether heads lie inside a row ([N, L, heads, size]) or around it.
    """

    adjacent: bool = False
    inner: bool = False


def _rotate(inputs: Inputs, a: RotateAttrs) -> tuple[TensorType, ...]:
    """Type of y: pair j of each row, turned by an angle of which `cos` and `sin` hold both; what is behind stays.

    Shapes:  x [N, heads, L, size], cos and sin [N or 1, 1, L, T], 2 T <= size -> y like x; or all with L before heads
    Raises:  ShapeError if the shapes do not fit
    """
    x, cos, sin = (need("rotate", name, t, 4) for name, t in zip(("x", "cos", "sin"), inputs, strict=True))
    n, length, turned = cos.shape[0], cos.shape[1 if a.inner else 2], cos.shape[3]
    fits = cos.shape == sin.shape and cos.shape[2 if a.inner else 1] == 1 and n in (1, x.shape[0])
    fits = fits and length == x.shape[1 if a.inner else 2]
    if not fits or turned < 1 or 2 * turned > x.shape[3] or len({x.dtype, cos.dtype, sin.dtype}) > 1:
        raise ShapeError(f"rotate: x {x}, cos {cos}, sin {sin} do not fit")
    return (TensorType(x.shape, x.dtype),)


def _rotate_kernel(inputs: Sequence[TensorType], outputs: Sequence[TensorType], a: RotateAttrs) -> Kernel:
    (batches, outer, inner, width), own, turned = inputs[0].shape, inputs[1].shape[0], inputs[1].shape[3]
    n, first_axis, second_axis, size, half = sizes(batches=batches, outer=outer, inner=inner, size=width, half=turned)
    rows = first_axis if a.inner else second_axis
    angles, each = sizes(angles=own, each=0 if own == 1 else 1)  # how many, and how many of them a batch has
    x = Tensor("x", (n, first_axis, second_axis, size), Kind.NUMBER)
    cos, sin = (Tensor(name, (angles, rows, half), Kind.NUMBER) for name in ("cos", "sin"))
    b, o, k, i = axes(b=n, o=first_axis, k=second_axis, i=size)
    step: Operand = 1 if a.adjacent else half
    first = i // 2 * 2 >= i if a.adjacent else i < half
    pair = i // 2 if a.adjacent else select(first, i, i - half)
    own_part, other = x[b, o, k, i], x[b, o, k, select(first, i + step, i - step)]
    place = (b * each, o if a.inner else k, pair)
    turn = own_part * cos[place] + other * sin[place] * real(select(first, -1, 1))
    value = select(i < half * 2, turn, own_part)
    name = f"rotate{'_adjacent' if a.adjacent else ''}{'_inner' if a.inner else ''}"
    return Kernel(name, (x, cos, sin), (b, o, k, i), value, Kind.NUMBER)


def _case(label: str, x: tuple[int, ...], angles: tuple[int, ...], *attrs: bool) -> Case:
    return Case(label, tuple(map(TensorType, (x, angles, angles))), RotateAttrs(*attrs))


ROTATE = declare(
    Op(
        "rotate", RotateAttrs, _rotate, elementwise_cost,
        Tolerance(1e-6, 1e-6, "a sum of two products, which may be rounded once", summed=True),
        (
            _case("whole rows", (1, 3, 4, 8), (1, 1, 4, 4)),
            _case("angles for each batch, a part turns", (2, 2, 3, 10), (2, 1, 3, 3)),
            _case("neighbours, one row", (1, 5, 1, 6), (1, 1, 1, 3), True),
            _case("neighbours, a part turns, shared angles", (2, 2, 3, 7), (1, 1, 3, 2), True),
            _case("heads inside rows, angles for each batch", (2, 3, 4, 8), (2, 3, 1, 4), False, True),
            _case("heads inside rows, neighbours", (1, 5, 2, 6), (1, 5, 1, 3), True, True),
        ),
        types=(all_real,), kernel=_rotate_kernel,
    )
)  # fmt: skip
