"""Layer norm and RMS norm: rows brought to a mean of zero, or not, and a mean square of one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from webinfer.errors import ShapeError
from webinfer.graph.ir import Case, Cost, Op, TensorType, Tolerance
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.registry import all_real, declare, moved_bytes, need

Inputs = Sequence[TensorType | None]


@dataclass(frozen=True, slots=True)
class LayerNormAttrs:
    """layer_norm: a row is the last `axes` axes. RMS norm is not `centred`: the mean stays."""

    axes: int = 1
    epsilon: float = 1e-5
    centred: bool = True


def rows_of(x: TensorType, a: LayerNormAttrs) -> tuple[int, int]:
    """(rows, elements of a row)."""
    at = x.rank - a.axes
    return math.prod(x.shape[:at]), math.prod(x.shape[at:])


def infer(inputs: Inputs, a: LayerNormAttrs) -> tuple[TensorType, ...]:
    """Type of y = (x - mean) / sqrt(mean of (x - mean)^2 + epsilon) * scale + bias; without the means if not `centred`.

    Shapes:  x, y [..., D]; scale, bias [D] or absent, where D stands for the last `axes` axes
    Raises:  ShapeError if the shapes do not fit, a row is empty or epsilon is negative
    """
    x = need("layer_norm", "x", inputs[0])
    if not 1 <= a.axes <= x.rank or not rows_of(x, a)[1] or not 0 <= a.epsilon < math.inf:
        raise ShapeError(f"layer_norm: no rows of {a.axes} axes in {x.shape}, or epsilon {a.epsilon} is negative")
    for name, t in zip(("scale", "bias"), inputs[1:], strict=False):
        if t is not None and (t.shape != x.shape[x.rank - a.axes :] or t.dtype is not x.dtype):
            raise ShapeError(f"layer_norm: {name} is {t}, must fit the last {a.axes} axes of {x}")
    return (TensorType(x.shape, x.dtype),)


def cost(inputs: Inputs, outputs: Sequence[TensorType], a: LayerNormAttrs) -> Cost:
    """About eight operations for each element."""
    return Cost(8 * outputs[0].size, moved_bytes(inputs, outputs))


def _case(label: str, x: tuple[int, ...], inputs: str = "scale bias", **attrs: object) -> Case:
    a = LayerNormAttrs(**attrs)  # type: ignore[arg-type]
    row = TensorType(x[len(x) - a.axes :])
    given = (row if "scale" in inputs else None, row if "bias" in inputs else None)
    return Case(label, (TensorType(x), *given), a, low=-1.0, high=5.0, constant=(1, 2))


LAYER_NORM = declare(
    Op(
        "layer_norm", LayerNormAttrs, infer, cost,
        Tolerance(1e-5, 2e-5, "float32 sums in a free order, a root and a quotient", summed=True),
        (
            _case("rows", (3, 5, 32)), _case("odd rows", (4, 21)), _case("long rows", (2, 1030)),
            _case("two axes", (3, 4, 6), axes=2), _case("no bias", (3, 7), "scale", epsilon=0.1),
            _case("bare", (3, 8), ""), _case("bias alone", (2, 9), "bias"), _case("row of one", (4, 1)),
            _case("root mean square", (5, 24), "scale", centred=False),
            _case("root mean square, odd rows", (2, 3, 7), centred=False, epsilon=0.5),
        ),
        types=(all_real,),
    )
)  # fmt: skip
