"""Reads and writes at positions that are tensors; positions outside go to the nearest element."""

from __future__ import annotations

import numpy as np

from webinfer.backends.reference.arrays import Array, Compute, Inputs, required
from webinfer.graph.ir import Node, Op
from webinfer.ops import gather as ops


def _inside(positions: Array, size: int) -> Array:
    signed = positions.astype(np.int64)
    return np.clip(np.where(signed < 0, signed + size, signed), 0, max(size - 1, 0))


def gather(inputs: Inputs, node: Node) -> list[Array]:
    """Slices of x at positions along an axis, batch by batch where the node has batch dimensions."""
    x, a = required(inputs[0]), node.attrs
    positions = _inside(required(inputs[1]), x.shape[a.axis])
    if a.batch_dims == 0:
        return [np.take(x, positions, axis=a.axis)]
    batch = x.shape[: a.batch_dims]
    rows = [np.take(x[i], positions[i], axis=a.axis - a.batch_dims) for i in np.ndindex(batch)]
    return [np.array(rows, x.dtype).reshape(node.output.type.shape)]


def gather_elements(inputs: Inputs, node: Node) -> list[Array]:
    """For each position its element of x along an axis; all other coordinates are the position's own."""
    x, axis = required(inputs[0]), node.attrs.axis
    return [np.take_along_axis(x, _inside(required(inputs[1]), x.shape[axis]), axis=axis)]


def _nd_index(x: Array, positions: Array, batch_dims: int) -> tuple[Array, ...]:
    depth = positions.shape[-1]
    leading = positions.shape[:-1]
    batch = [
        np.arange(n).reshape([-1 if i == j else 1 for j in range(len(leading))])
        for i, n in enumerate(leading[:batch_dims])
    ]
    return (*batch, *(_inside(positions[..., i], x.shape[batch_dims + i]) for i in range(depth)))


def gather_nd(inputs: Inputs, node: Node) -> list[Array]:
    """Slices of x at coordinates: the last dimension of the positions counts dimensions of x."""
    x = required(inputs[0])
    return [x[_nd_index(x, required(inputs[1]), node.attrs.batch_dims)]]


def scatter_elements(inputs: Inputs, node: Node) -> list[Array]:
    """A copy of x with updates at positions along an axis; of several for one place, the last stays."""
    x, axis, updates = required(inputs[0]), node.attrs.axis, required(inputs[2])
    positions = _inside(required(inputs[1]), x.shape[axis])
    y = x.copy()
    for at in np.ndindex(updates.shape):  # in order: the last update of one position stays
        y[(*at[:axis], positions[at], *at[axis + 1 :])] = updates[at]
    return [y]


def scatter_nd(inputs: Inputs, node: Node) -> list[Array]:
    """A copy of x with slices at coordinates replaced by updates, or added to; in order, so the last one stays."""
    x, positions, updates = map(required, inputs)
    y, places = x.copy(), _nd_index(x, positions, 0)
    for at in np.ndindex(positions.shape[:-1]):
        place = tuple(p[at] for p in places)
        y[place] = y[place] + updates[at] if node.attrs.add else updates[at]
    return [y]


LOWERINGS: dict[Op, Compute] = {
    ops.GATHER: gather,
    ops.GATHER_ELEMENTS: gather_elements,
    ops.GATHER_ND: gather_nd,
    ops.SCATTER_ELEMENTS: scatter_elements,
    ops.SCATTER_ND: scatter_nd,
}
