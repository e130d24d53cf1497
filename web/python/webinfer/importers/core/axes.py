"""What several formats do along one axis: parts of it, positions on it, running products, neighbours."""

from __future__ import annotations

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core.limits import within
from webinfer.importers.core.operation import BaseOperation
from webinfer.ops import elementwise as ew
from webinfer.ops import gather, pool
from webinfer.ops import movement as mv

LONGEST_PRODUCT = 256  # elements that a running product is written out for
MAX_RADIUS = 65536


def equal_split(op: BaseOperation, count: int) -> tuple[Value, int, list[int]]:
    """x, an axis and the sizes of `count` equal parts along it; the axis is input 0, x the next one."""
    x = op.value(1)
    axis = op.axis(op.integer(0), x.type.rank)
    if count < 1 or x.type.shape[axis] % count:
        op.fail(f"axis {axis} of {x.type.shape} does not split into {count} equal parts")
    return x, axis, [x.type.shape[axis] // count] * count


def sized_split(op: BaseOperation) -> tuple[Value, int, list[int]]:
    """x, an axis and sizes of parts along it, which are inputs 0, 2 and 1; a size of -1 is what the others leave."""
    x, sizes = op.value(0), list(op.integers(1))
    axis = op.axis(op.integer(2), x.type.rank)
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = x.type.shape[axis] - sum(s for s in sizes if s != -1)
    return x, axis, sizes


def gathered(op: BaseOperation, x: Value, positions: Value, axis: int, batch: int) -> Value:
    """x at positions of an axis; the first `batch` axes belong to both, counted from the end if negative."""
    axis = op.axis(axis, x.type.rank)
    batch = op.axis(batch, positions.type.rank) if batch < 0 else batch
    if positions.type.shape == () and positions.constant is not None and x.constant is None:
        return op.row(x, axis, op.axis(int(positions.numbers()[0]), x.type.shape[axis]))  # a known one is a slice
    return op.emit(gather.GATHER, [x, positions], gather.GatherAttrs(axis, batch))


def running_product(op: BaseOperation, x: Value, axis: int, exclusive: bool, reverse: bool) -> Value:
    """The products of all elements up to each one, or before it; `reverse` starts at the end."""
    size = x.type.shape[axis]
    within(f"{op.what}: elements of a running product", size, LONGEST_PRODUCT, "use shorter rows")
    parts = op.pieces(x, axis, [1] * size)
    parts = parts[::-1] if reverse else parts
    if exclusive and parts:
        parts = [op.expand(op.scalar_of(1, x.type.dtype), parts[0].type.shape), *parts[:-1]]
    done: list[Value] = []
    for part in parts:
        done.append(op.binary(ew.MUL, done[-1], part) if done else part)
    done = done[::-1] if reverse else done
    return op.concat(done, axis) if len(done) > 1 else done[0] if done else x


def local_response(op: BaseOperation, x: Value, radius: int, alpha: float, beta: float, bias: float) -> Value:
    """x / (bias + alpha * sum of x^2 over 2*radius + 1 channels)^beta: the sum as an average over a padded row."""
    if x.type.rank != 4 or not 0 <= radius <= MAX_RADIUS:
        op.fail(f"x has shape {x.type.shape}, needs rank 4; radius {radius} must not be negative")
    n, h, w, c = x.type.shape
    squares = op.reshape(op.unary(ew.SQUARE, x), (n, h * w, c, 1))
    wide = op.emit(mv.PAD, [squares], mv.PadAttrs((0, 0, radius, 0), (0, 0, radius, 0)))
    taps = 2 * radius + 1
    mean = op.emit(pool.AVERAGE_POOL2D, [wide], pool.Pool2dAttrs((1, taps)))
    base = op.unary(ew.LINEAR, mean, alpha * taps, bias)
    power = op.binary(ew.POW, base, op.scalar_of(-beta, DType.FLOAT32))
    return op.binary(ew.MUL, x, op.reshape(power, (n, h, w, c)))
