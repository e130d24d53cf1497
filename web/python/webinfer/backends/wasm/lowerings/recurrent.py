"""Recurrent layers: one step of the program for a whole sequence."""

from __future__ import annotations

from webinfer import kernel_constants as constants
from webinfer.backends.wasm.builder import Builder, Lower
from webinfer.backends.wasm.lowerings.products import DenseWeights, activation_args, pack_dense, require_float
from webinfer.graph.ir import Node, Op
from webinfer.ops import recurrent as ops
from webinfer.plan.blocks import Arguments

CELLS = {
    ops.Cell.RNN: constants.RECURRENT_RNN, ops.Cell.GRU: constants.RECURRENT_GRU,
    ops.Cell.LSTM: constants.RECURRENT_LSTM,
}  # fmt: skip

ROUNDED = {None: 0, False: constants.RECURRENT_ROUNDED, True: constants.RECURRENT_SYMMETRIC}


def recurrent(node: Node, builder: Builder) -> None:
    """f32_recurrent, its weights packed in panels; threads share the sequences of a batch."""
    require_float(node)
    sums, r, a, (y, last, *cells) = node.required_input(0), node.required_input(1), node.attrs, node.outputs
    (steps, batch, width), size, columns = sums.type.shape, r.type.shape[1], constants.RECURRENT_COLUMNS
    packed = pack_dense(node, builder, DenseWeights(1, width, 1, size, 0, size, 0), columns, width)
    work = 2 * -(-width // columns) * columns + size + 4
    names = ("h", "c", "peepholes", "lengths")
    given: Arguments = {name: builder.optional_ref(node.optional_input(i)) for i, name in enumerate(names, 3)}
    builder.step(
        "f32_recurrent", given, activation_args(a.activation), sums=builder.ref(sums), w=packed,
        work=builder.scratch(4 * batch * work), work_step=work,
        y=builder.ref(y), last=builder.ref(last), cells=builder.optional_ref(cells[0] if cells else None), steps=steps,
        batch=batch, size=size, cell=CELLS[a.cell], backward=int(a.backward), reset_after=int(a.reset_after),
        coupled=int(a.coupled), rounded=ROUNDED[a.symmetric], clip=a.clip, cell_clip=a.cell_clip, units=batch,
    )  # fmt: skip
    builder.because(f"{a.cell} over {steps} steps at once, {builder.isa} build")


LOWERINGS: dict[Op, Lower] = {ops.RECURRENT: recurrent}
