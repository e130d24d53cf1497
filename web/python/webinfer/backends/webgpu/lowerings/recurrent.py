"""Recurrent layers: a dispatch for a whole sequence where a workgroup holds the state, else a few for each step."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from webinfer.backends.webgpu.dispatch import (
    MAX_TURNS,
    WORKGROUP,
    Binding,
    Dispatch,
    Literal,
    Scratch,
    Target,
    groups_for,
    read,
    update,
    write,
)
from webinfer.backends.webgpu.lowerings.conversion import in_words, plain_cast
from webinfer.backends.webgpu.lowerings.dynamic_range import round_rows
from webinfer.backends.webgpu.lowerings.epilogue import packed_columns
from webinfer.codegen.prelude import f32, u32
from webinfer.codegen.templates import Variable
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node, Value, apply
from webinfer.ops.dynamic_range import ROUND_ROWS, RoundRowsAttrs
from webinfer.ops.recurrent import Cell, RecurrentAttrs
from webinfer.ops.registry import LARGEST
from webinfer.ops.strides import StridedCopy

MOST_INVOCATIONS = 256  # of a workgroup, on every device (WebGPU's limit)
MOST_SHARED = 16384  # bytes of a workgroup, on every device (WebGPU's limit)


class Stage(enum.StrEnum):
    """What recurrent_step.wgsl makes of a product."""

    RESET = "reset"
    NEXT = "next"


class _Layer:
    """What all dispatches of a layer share."""

    def __init__(self, node: Node, target: Target) -> None:
        self.node, self.target, self.a = node, target, node.attrs
        self.sums, r = node.required_input(0), node.required_input(1)
        self.steps, self.batch, _ = self.sums.type.shape
        self.size, self.gates = r.type.shape[1], self.a.cell.gates
        self.padded = -(-self.size // 4) * 4
        self.gated = self.a.cell is Cell.GRU and not self.a.reset_after
        self.states = 1 + (self.gated or self.a.symmetric is not None)  # in a workgroup: another one for products
        shape, order = (self.size, self.gates, self.size), (self.gates * self.padded, self.padded, 1)
        copy = StridedCopy(0, shape, 0, (1, self.size * self.size, self.size), 0, order)
        self.weights = packed_columns(r, copy, (self.size, self.gates, self.padded), "recurrent", target)
        names = ((2, "bias"), (5, "peepholes"), (6, "lengths"))
        self.given = {name: v for i, name in names if (v := node.optional_input(i)) is not None}
        a: RecurrentAttrs = self.a
        self.variables: dict[str, Variable] = {
            "cell": a.cell, "activation": a.activation, "backward": a.backward, "coupled": int(a.coupled),
            "reset_after": int(a.reset_after), "rounded": a.symmetric is not None,
            "symmetric": bool(a.symmetric), "biased": "bias" in self.given, "peepholes": "peepholes" in self.given,
            "lengths": "lengths" in self.given, "size": self.size, "padded": self.padded, "gates": self.gates,
        }  # fmt: skip
        self.params = (
            *u32(batch=self.batch, steps=self.steps),
            *f32(clip=min(a.clip, LARGEST), cell_clip=min(a.cell_clip, LARGEST)),
        )

    def start(self) -> list[Dispatch]:
        """The last state, and cells, as they are before the first step."""
        count = self.batch * self.size
        zeros = Literal(bytes(4 * count))
        firsts = zip(self.node.outputs[1:], (3, 4), strict=False)
        return [plain_cast(self.node.optional_input(i) or zeros, out, count, self.target) for out, i in firsts]

    def reads(self, *names: str) -> tuple[Binding, ...]:
        """The sums and those of the named inputs that there are."""
        return read("sums", self.sums), *(read(name, self.given[name]) for name in names if name in self.given)

    def outputs(self) -> tuple[Binding, ...]:
        """All states, the last one and the cells, which are computed in place."""
        y, *lasts = self.node.outputs
        names = zip(("last", "cells"), lasts, strict=False)
        return write("y", y, single=True), *(update(name, v, single=True) for name, v in names)


def _sequence(layer: _Layer) -> list[Dispatch]:
    """recurrent_sequence.wgsl: once, or as often as a software adapter's loops end."""
    quads = layer.gates * layer.padded // 4
    width = min(MOST_INVOCATIONS, -(-quads // 32) * 32)
    turns = -(-quads // width) * (layer.size + 2) + layer.size + 4 * -(-layer.size // width) + 8
    chunk = max(1, MAX_TURNS // turns) if layer.target.software else layer.steps
    variables = layer.variables | {"workgroup": width, "gated": layer.gated, "room": layer.padded * layer.states}
    names = ("bias", "peepholes", "lengths")
    bindings = (*layer.reads(*names), read("w", layer.weights), *layer.outputs())
    return [
        Dispatch(
            "recurrent_sequence", variables, bindings,
            (*u32(first=i, last=min(i + chunk, layer.steps)), *layer.params), (layer.batch, 1, 1),
            f"{layer.a.cell}, a workgroup of {width} for each sequence",
        )
        for i in range(0, layer.steps, chunk)
    ]  # fmt: skip


def _product(layer: _Layer, x: Value | Scratch, y: Scratch, gates: range) -> Dispatch:
    quads, first, end = (n * layer.padded // 4 for n in (layer.gates, gates.start, gates.stop))
    params = u32(
        parts=layer.batch * (end - first), batch=layer.batch, size=layer.size, quads=quads, first=first, end=end
    )
    bindings = (read("x", x), read("w", layer.weights), update("y", y))
    groups = groups_for(layer.batch * (end - first), layer.target)
    return Dispatch("recurrent_product", {"workgroup": WORKGROUP}, bindings, params, groups, "one step's products")


def _step(layer: _Layer, i: int, shares: Scratch, stage: Stage, outputs: Sequence[Binding]) -> Dispatch:
    variables = layer.variables | {"workgroup": WORKGROUP, "stage": stage}
    names = ("bias", "lengths") if stage is Stage.RESET else ("bias", "peepholes", "lengths")
    if stage is Stage.RESET:
        variables["peepholes"] = False
    bindings = (*layer.reads(*names), read("shares", shares), *outputs)
    groups = groups_for(layer.batch * layer.size, layer.target)
    return Dispatch("recurrent_step", variables, bindings, (*u32(i=i), *layer.params), groups, f"one step, {stage}")


def _steps(layer: _Layer) -> list[Dispatch]:
    shares = Scratch((layer.batch, layer.gates, layer.padded))
    reset, (_, last, *_) = Scratch((layer.batch, layer.size)), layer.node.outputs
    made: list[Dispatch] = []
    for i in range(layer.steps):
        seen = last
        if layer.a.symmetric is not None:
            rows = apply(ROUND_ROWS, [last], RoundRowsAttrs(1, layer.a.symmetric))
            seen, before = rows.output, round_rows(rows, layer.target)
            made += before
        made.append(_product(layer, seen, shares, range(2 if layer.gated else layer.gates)))
        if layer.gated:
            outputs = (read("last", last), write("y", reset, single=True))
            made.append(_step(layer, i, shares, Stage.RESET, outputs))
            made.append(_product(layer, reset, shares, range(2, 3)))
        made.append(_step(layer, i, shares, Stage.NEXT, layer.outputs()))
    return made


def _recurrent(node: Node, target: Target) -> list[Dispatch]:
    """recurrent_sequence.wgsl where a workgroup holds the state, else recurrent_product and recurrent_step.wgsl."""
    layer = _Layer(node, target)
    if layer.batch > target.limits["maxComputeWorkgroupsPerDimension"]:
        raise UnsupportedOpError([f"{layer.batch} sequences at a time"])
    shared = 4 * layer.padded * (layer.gates + layer.states)
    return [*layer.start(), *(_sequence if shared <= MOST_SHARED else _steps)(layer)]


recurrent = in_words(_recurrent)
