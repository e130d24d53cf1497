"""Recurrent layers, one time step after the other."""

from __future__ import annotations

import numpy as np

from webinfer.backends.reference.arrays import Array, Compute, Inputs, required, rounded, wide
from webinfer.backends.reference.dynamic_range import nearest_levels
from webinfer.backends.reference.elementwise import activate, sigmoid
from webinfer.graph.ir import Node, Op
from webinfer.ops import recurrent as ops
from webinfer.ops.recurrent import Cell, RecurrentAttrs


class _Layer:
    """The weights, and the next state from the one before."""

    def __init__(self, inputs: Inputs, a: RecurrentAttrs) -> None:
        sums, r, bias, _, _, peepholes, _ = [None if x is None else wide(x) for x in (*inputs, *[None] * 7)][:7]
        self.a, self.size = a, required(r).shape[1]
        self.r = required(r).reshape(-1, self.size, self.size)
        zeros = np.zeros(required(sums).shape[2])
        self.bias = (zeros if bias is None else bias).reshape(-1, self.size)
        self.look = np.zeros((3, self.size)) if peepholes is None else peepholes.reshape(3, self.size)

    def product(self, h: Array, gate: int) -> Array:
        if self.a.symmetric is not None:
            h = wide(nearest_levels(h[None], self.a.symmetric)[0])
        return np.asarray(h @ self.r[gate].T + self.bias[gate])

    def act(self, x: Array) -> Array:
        return activate(x, self.a.activation)

    def clipped(self, x: Array) -> Array:
        return np.clip(x, -self.a.clip, self.a.clip)

    def step(self, sums: Array, h: Array, c: Array) -> tuple[Array, Array]:
        """Shapes:  sums [gates, H], h, c [H] -> h, c"""
        if self.a.cell is Cell.RNN:
            return self.act(self.clipped(sums[0] + self.product(h, 0))), c
        if self.a.cell is Cell.LSTM:
            return self._lstm(sums, h, c)
        update, reset = (sigmoid(self.clipped(sums[i] + self.product(h, i))) for i in (0, 1))
        past = reset * self.product(h, 2) if self.a.reset_after else self.product(reset * h, 2)
        return update * h + (1 - update) * self.act(self.clipped(sums[2] + past)), c

    def _lstm(self, sums: Array, h: Array, c: Array) -> tuple[Array, Array]:
        total = [x + self.product(h, i) for i, x in enumerate(sums)]
        forget = sigmoid(self.clipped(total[2] + c * self.look[2]))
        enter = 1 - forget if self.a.coupled else sigmoid(self.clipped(total[0] + c * self.look[0]))
        cells = forget * c + enter * self.act(self.clipped(total[3]))
        cells = np.clip(cells, -self.a.cell_clip, self.a.cell_clip)
        return sigmoid(self.clipped(total[1] + cells * self.look[1])) * self.act(cells), cells


def recurrent(inputs: Inputs, node: Node) -> list[Array]:
    """All states, the last one and, of an LSTM, the last cells."""
    a, sums = node.attrs, wide(required(inputs[0]))
    layer = _Layer(inputs, a)
    steps, batch, _ = sums.shape
    h, c = (
        np.zeros((batch, layer.size)) if i >= len(inputs) or (x := inputs[i]) is None else wide(x).copy()
        for i in (3, 4)
    )
    lengths = inputs[6] if len(inputs) > 6 else None
    y = np.zeros((steps, batch, layer.size))
    for b in range(batch):
        count = steps if lengths is None else min(max(int(lengths[b]), 0), steps)
        for t in reversed(range(count)) if a.backward else range(count):
            h[b], c[b] = layer.step(sums[t, b].reshape(-1, layer.size), h[b], c[b])
            y[t, b] = h[b]
    return [rounded(x, out.type) for x, out in zip((y, h, c), node.outputs, strict=False)]


LOWERINGS: dict[Op, Compute] = {ops.RECURRENT: recurrent}
