"""Recurrent layers whose products are convolutions: an LSTM of pictures or of rows.

Source:  keras v2.15, layers/rnn/base_conv_lstm.py
"""

from __future__ import annotations

from webinfer.graph.ir import Value
from webinfer.importers.core.geometry import image_pads
from webinfer.importers.core.limits import MAX_TIME_STEPS, within
from webinfer.importers.keras.conv import attributes, kernel
from webinfer.importers.keras.elementwise import activated
from webinfer.importers.keras.operation import Convert, Operation
from webinfer.importers.keras.recurrent import kept, last_states
from webinfer.ops import conv
from webinfer.ops import elementwise as ew


def _frames(op: Operation, axes: int) -> Value:
    """The first value as [N, T, H, W, C]."""
    x = op.real()
    if x.type.rank != axes + 3:
        op.fail(f"it reads {x.type}, needs rank {axes + 3}")
    x = op.transpose(x, (0, 1, *range(3, axes + 3), 2)) if op.channels_first else x
    return x if axes == 2 else op.reshape(x, (*x.type.shape[:2], 1, *x.type.shape[2:]))


def _shown(op: Operation, y: Value, axes: int) -> Value:
    """Pictures [N, (T,) H, W, C] as the layer gives them."""
    lead = y.type.rank - 3
    y = y if axes == 2 else op.reshape(y, (*y.type.shape[:lead], *y.type.shape[lead + 1 :]))
    first = (*range(lead), lead + axes, *range(lead, lead + axes))
    return op.transpose(y, first) if op.channels_first else y


def _held(op: Operation, i: int, state: tuple[int, ...], axes: int) -> Value:
    """A state that is given as [N, H, W, C]."""
    given = op.real(i)
    given = op.transpose(given, (0, *range(2, axes + 2), 1)) if op.channels_first else given
    return op.reshape(given, state)


def _states(op: Operation, shape: tuple[int, ...], axes: int) -> list[Value]:
    if len(op.inputs) > 1:
        if len(op.inputs) != 3:
            op.fail(f"{len(op.inputs) - 1} states are given, it has 2")
        return [_held(op, i, shape, axes) for i in (1, 2)]
    return kept(op, 2, shape)


def _conv_lstm(axes: int) -> Convert:
    """Gates input, forget, new, output. Weights [KH, KW, C, 4*F] and [KH, KW, F, 4*F]."""

    def convert(op: Operation) -> list[Value]:
        x, w, r = _frames(op, axes), kernel(op, "kernel", axes), kernel(op, "recurrent_kernel", axes)
        size = r.type.shape[2]
        if w.type.shape[3] != 4 * size or r.type.shape[3] != 4 * size or w.type.shape[2] != x.type.shape[4]:
            op.fail(f"its weights {w.type.shape} and {r.type.shape} do not fit {x.type}")
        if op.mask() is not None:
            op.refuse("a mask")
        n, steps, *picture = x.type.shape
        within("steps of a sequence", steps, MAX_TIME_STEPS, "use a shorter sequence")
        x = op.reshape(op.transpose(x, (1, 0, 2, 3, 4)), (steps * n, *picture))
        sums = op.emit(conv.CONV2D, [x, op.transpose(w, (3, 0, 1, 2)), op.bias()], attributes(op, x, w, axes))
        sums = op.reshape(sums, (steps, n, *sums.type.shape[1:]))
        state = (n, *sums.type.shape[2:4], size)
        pads = image_pads(state, r.type.shape[:2], (1, 1))
        past, around = op.transpose(r, (3, 0, 1, 2)), conv.Conv2dAttrs((1, 1), pads)
        gate = op.config.get("recurrent_activation") or "hard_sigmoid"
        new = op.config.get("activation") or "tanh"
        h, c = _states(op, state, axes)
        backward, outputs = op.flag("go_backwards"), list[Value]()
        for i in reversed(range(steps)) if backward else range(steps):
            total = op.binary(ew.ADD, op.row(sums, 0, i), op.emit(conv.CONV2D, [h, past, None], around))
            enter, keep, fresh, leave = op.pieces(total, 3, [size] * 4)
            kept_part = op.binary(ew.MUL, activated(op, keep, gate), c)
            c = op.binary(ew.ADD, kept_part, op.binary(ew.MUL, activated(op, enter, gate), activated(op, fresh, new)))
            h = op.binary(ew.MUL, activated(op, leave, gate), activated(op, c, new))
            outputs.append(h)
        last_states(op, [h, c])
        y = h
        if op.flag("return_sequences"):
            if backward and "positions" in op.config:
                outputs.reverse()
            y = op.stack(outputs, 1)
        results = [y, *([h, c] if op.flag("return_state") else [])]
        return [_shown(op, each, axes) for each in results]

    return convert


CONVERTERS: dict[str, Convert] = {"ConvLSTM1D": _conv_lstm(1), "ConvLSTM2D": _conv_lstm(2)}
