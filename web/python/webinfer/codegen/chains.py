"""Chains of elementwise formulas as WGSL: what one shader computes of each element, from loads to the result.

A chain is data: where each operand is read and which formula follows which. Its text is made here, of the formulas of
ops/elementwise.py; sizes, strides and numbers are parameters, so that equal chains are one shader.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

from webinfer.codegen.formulas import FORMULAS, FormulaName, chain_function, needs_math
from webinfer.codegen.kernels import index_text
from webinfer.expr.formula import Formula
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.elementwise import ROWS, BinaryAttrs
from webinfer.ops.movement import padded
from webinfer.ops.resize import nearest

WHERE = "where"  # the one step that is not a formula: c != 0 ? a : b


class Reading(enum.StrEnum):
    """How a chain reads an operand: as y lies, from strided places (whole quads or one by one), or a parameter."""

    FLAT = "flat"
    ROWS = "rows"  # quads that lie together
    SPREAD = "spread"  # quads of one element
    EACH = "each"
    NUMBER = "number"


@dataclass(frozen=True, slots=True)
class Leaf:
    """An operand that is read: from binding `x<binding>`, or the parameter `number<own place>`."""

    reading: Reading
    binding: int = -1
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """A formula, or WHERE, of leaves and of results of earlier steps, which are counted behind the leaves."""

    name: FormulaName | None
    operands: tuple[int, ...]


class Move(enum.StrEnum):
    """How pixels of an image are taken from another one, by quads of channels: a pad's, or the nearest ones."""

    EDGE = "edge"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"
    NEAREST = "nearest"


@dataclass(frozen=True, slots=True)
class Chain:
    """What a shader computes of each element of y: the last step's result, or the last leaf, where it moves from.

    `moves` stand in the order in which they follow the chain.
    """

    leaves: tuple[Leaf, ...]
    steps: tuple[Step, ...]
    moves: tuple[Move, ...] = ()

    @property
    def needs_math(self) -> bool:
        """Whether a formula uses a primitive that WGSL has no precise function for."""
        return any(step.name is not None and needs_math(step.name) for step in self.steps)

    def text(self) -> str:
        """`chain(quad)`, four elements, and `moved(quad)`, where those of y lie, after the functions they call."""
        functions = {step.name: chain_function(step.name, _function(step.name)) for step in self.steps if step.name}
        places = [_places(i, leaf.rank) for i, leaf in enumerate(self.leaves) if leaf.rank]
        loads = [line for i, leaf in enumerate(self.leaves) for line in _load(i, leaf)]
        steps = [f"let v{len(self.leaves) + i} = {_call(i, step)};" for i, step in enumerate(self.steps)]
        last = f"return v{len(self.leaves) + len(self.steps) - 1};"
        body = "\n".join(f"    {line}" for line in (*loads, *steps, last))
        head = "fn chain(quad: u32) -> x_v {\n"
        moves = [_MOVED.replace("INSIDE", _INSIDE[move]).replace("$", str(i)) for i, move in enumerate(self.moves)]
        moved = "quad"
        for i in reversed(range(len(self.moves))):
            moved = f"move{i}({moved})"
        where = f"fn moved(quad: u32) -> u32 {{ return {moved}; }}"
        return "\n".join([*functions.values(), *places, head + body + "\n}", *moves, where])


_MOVED = """fn inside$(i: i32, size: i32, scale: f32) -> i32 {
INSIDE
}
fn move$(quad: u32) -> u32 {
    let ox = quad / params.channels % params.ow$;
    let oy = quad / (params.channels * params.ow$) % params.oh$;
    let n = quad / (params.channels * params.ow$ * params.oh$);
    let iy = u32(inside$(i32(oy) - params.top$, i32(params.ih$), params.scale_h$));
    let ix = u32(inside$(i32(ox) - params.left$, i32(params.iw$), params.scale_w$));
    return ((n * params.ih$ + iy) * params.iw$ + ix) * params.channels + quad % params.channels;
}"""
_I, _SIZE, _SCALE, _BEFORE, _AFTER = map(Formula, ("i", "size", "scale", "params.before$", "params.after$"))
_INSIDE = {
    move: f"    return {index_text(inside)};"
    for move, inside in (
        *((move, padded(_I, _SIZE, move)) for move in (Move.EDGE, Move.REFLECT, Move.SYMMETRIC)),
        (Move.NEAREST, nearest(_I, _SCALE, _BEFORE, _AFTER, _SIZE)),
    )
}


def is_binary(name: str) -> bool:
    """Whether the formula takes two operands, rather than one and its attributes."""
    return name in ROWS and ROWS[name].attrs is BinaryAttrs


def _function(name: str) -> str:
    return f"step_{name}"


def attributes(name: str) -> Sequence[str]:
    """Which of the attributes "a" and "b" the formula of a unary operator reads."""
    return () if is_binary(name) else tuple(letter for letter in "ab" if FORMULAS[name].uses(letter))


def _call(i: int, step: Step) -> str:
    operands = [f"v{k}" for k in step.operands]
    if step.name is None:
        c, a, b = operands
        return f"select({b}, {a}, {c} != x_v(0.0))"
    given = [*operands, *(f"params.{letter}{i}" for letter in attributes(step.name))]
    return f"{_function(step.name)}({', '.join(given)})"


def _load(i: int, leaf: Leaf) -> list[str]:
    x = f"x{leaf.binding}"
    match leaf.reading:
        case Reading.NUMBER:
            return [f"let v{i} = x_v(params.number{i});"]
        case Reading.FLAT:
            return [f"let v{i} = x_v(load4_{x}(quad));"]
        case Reading.ROWS:
            return [f"let v{i} = x_v(load4_{x}(place{i}(4u * quad) / 4u));"]
        case Reading.SPREAD:
            return [f"let v{i} = x_v(f32(load_{x}(place{i}(4u * quad))));"]
    lanes = ", ".join(f"f32(load_{x}(place{i}(min(4u * quad + {n}u, params.count - 1u))))" for n in range(4))
    return [f"let v{i} = x_v({lanes});"]


def _places(i: int, rank: int) -> str:
    """Where the element of this leaf lies that element `at` of y takes."""
    lines = [f"fn place{i}(at: u32) -> u32 {{", "    var rest = at;", "    var place = 0u;"]
    for d in reversed(range(rank)):
        lines.append(f"    place += rest % size{i}_at({d}u) * stride{i}_at({d}u);" if d else
                     f"    place += rest * stride{i}_at(0u);")  # fmt: skip
        lines += [f"    rest /= size{i}_at({d}u);"] if d else []
    return "\n".join([*lines, "    return place;", "}"])
