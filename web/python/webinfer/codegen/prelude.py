"""The head of every shader, generated from its signature: bindings, accessors, Params and their bytes.

Each binding `x` gives `x_t` (one value), `x_v` (four of them), `load_x(i)` for element i, `load4_x(q)` for
the quad 4q..4q+3; a written one also `store4_y(q, v)`, and `store_y(i, v)` if it is bound word by word.
Parameters are a uniform: the shader reads `params.name`.
Float16 elements are computed in float32.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from webinfer.codegen.elements import Element, layout_of, scalar_layout
from webinfer.graph.dims import Size

DIMS = 8  # entries of an array parameter
_LETTERS = {"u": "I", "i": "i", "f": "f"}  # of struct, by the first letter of a type


class Access(enum.StrEnum):
    """What a shader does with a binding. UPDATE reads and writes."""

    __hash__ = str.__hash__

    READ = "read"
    WRITE = "write"
    UPDATE = "update"


class ParamType(enum.StrEnum):
    """Types of parameters; the `X8` ones are arrays of `DIMS` values, read by `name_at(d)`."""

    __hash__ = str.__hash__

    U32 = "u32"
    I32 = "i32"
    F32 = "f32"
    U32X8 = "u32x8"
    I32X8 = "i32x8"


_ARRAYS = frozenset((ParamType.U32X8, ParamType.I32X8))


class Slot(NamedTuple):
    """One storage binding.

    `single` binds 32-bit elements word by word, so that each can be stored alone. `staged` is for floats that
    a shader fetches long before it needs them: `fetch4_x(q)` gives an `x_raw` that `widen_x` makes an `x_v`.
    """

    name: str
    element: Element
    access: Access
    single: bool = False
    staged: bool = False


class Param(NamedTuple):
    """One parameter and its value."""

    name: str
    type: ParamType
    value: int | float | tuple[int, ...]

    @property
    def is_array(self) -> bool:
        """Whether the parameter is one of `DIMS` values."""
        return self.type in _ARRAYS


def u32(**values: int) -> tuple[Param, ...]:
    """Counts."""
    return tuple([Param(name, ParamType.U32, value) for name, value in values.items()])


def i32(**values: int) -> tuple[Param, ...]:
    """Numbers that may be negative."""
    return tuple([Param(name, ParamType.I32, value) for name, value in values.items()])


def f32(**values: float) -> tuple[Param, ...]:
    """Real numbers."""
    return tuple(
        [
            Param(name, ParamType.F32, value if isinstance(value, Size) else float(value))
            for name, value in values.items()
        ]
    )


def u32x8(**values: Sequence[int]) -> tuple[Param, ...]:
    """Up to eight counts a name, filled up with zeros."""
    return tuple([Param(name, ParamType.U32X8, _filled(name, value)) for name, value in values.items()])


def i32x8(**values: Sequence[int]) -> tuple[Param, ...]:
    """Up to eight numbers a name, filled up with zeros."""
    return tuple([Param(name, ParamType.I32X8, _filled(name, value)) for name, value in values.items()])


def _filled(name: str, values: Sequence[int]) -> tuple[int, ...]:
    if len(values) > DIMS:
        raise ValueError(f"parameter {name} has {len(values)} entries, at most {DIMS} fit")
    return tuple(values) + (0,) * (DIMS - len(values))


def _ordered(params: Sequence[Param]) -> list[Param]:
    """Arrays first: they need 16-byte alignment, words pack behind them without holes."""
    return sorted(params, key=lambda p: not p.is_array)


def pack(params: Sequence[Param]) -> bytes:
    """The bytes of the uniform struct that `prelude` declares for the same parameters."""
    order, form = _struct(tuple([param.type for param in params]))
    words: list[int | float] = []
    for i in order:
        value = params[i].value
        words += value if isinstance(value, tuple) else (value,)
    return struct.pack(form, *words)


def words_of(params: Sequence[Param]) -> list[tuple[str, int | float]]:
    """The words of `pack` in order, each with its format for `struct`; sizes among them stay what they are."""
    order, _ = _struct(tuple([param.type for param in params]))
    found: list[tuple[str, int | float]] = []
    for i in order:
        value, letter = params[i].value, _LETTERS[params[i].type[0]]
        found += [(letter, word) for word in (value if isinstance(value, tuple) else (value,))]
    return found


@cache
def _struct(types: tuple[ParamType, ...]) -> tuple[tuple[int, ...], str]:
    """Parameters of these types in the order in which they lie, and their format for `struct`: whole 16 bytes.

    `struct.pack` and no more of that module: pages would wait for the functions of the runtime that come late.
    """
    order = sorted(range(len(types)), key=lambda i: types[i] not in _ARRAYS)
    counts = [DIMS if types[i] in _ARRAYS else 1 for i in order]
    words = "".join(f"{count}{_LETTERS[types[i][0]]}" for i, count in zip(order, counts, strict=True))
    return tuple(order), f"<{words}{-4 * sum(counts) % 16}x"


def _type(param: Param) -> str:
    return f"array<vec4<{param.type[:3]}>, {DIMS // 4}>" if param.is_array else str(param.type)


def _params_text(params: Sequence[Param], binding: int) -> list[str]:
    if not params:
        return []
    ordered = _ordered(params)
    lines = ["struct Params {", *(f"    {p.name}: {_type(p)}," for p in ordered), "}"]
    lines.append(f"@group(0) @binding({binding}) var<uniform> params: Params;")
    for param in ordered:
        if param.is_array:
            kind = param.type[:3]
            lines.append(f"fn {param.name}_at(d: u32) -> {kind} {{ return params.{param.name}[d >> 2u][d & 3u]; }}")
    return lines


def _slot_text(slot: Slot, binding: int) -> list[str]:
    layout = scalar_layout(slot.element) if slot.single else layout_of(slot.element)
    mode = "read" if slot.access is Access.READ else "read_write"
    x = f"{slot.name}_words"
    lines = [
        f"@group(0) @binding({binding}) var<storage, {mode}> {x}: array<{layout.word}>;",
        f"alias {slot.name}_t = {layout.scalar};",
        f"alias {slot.name}_v = {layout.quad};",
    ]
    if slot.access is not Access.WRITE:
        lines.append(f"fn load_{slot.name}(i: u32) -> {layout.scalar} {{ {layout.load} }}")
        lines.append(f"fn load4_{slot.name}(q: u32) -> {layout.quad} {{ {layout.load4} }}")
    if slot.staged:
        lines.append(f"alias {slot.name}_raw = {layout.word};")
        lines.append(f"fn fetch4_{slot.name}(q: u32) -> {layout.word} {{ return $x[q]; }}")
        lines.append(f"fn widen_{slot.name}(w: {layout.word}) -> {layout.quad} {{ {layout.widen} }}")
    if slot.access is not Access.READ:
        lines.append(f"fn store4_{slot.name}(q: u32, v: {layout.quad}) {{ {layout.store4} }}")
        if slot.single:
            lines.append(f"fn store_{slot.name}(i: u32, v: {layout.scalar}) {{ $x[i] = v; }}")
    return [line.replace("$x", x) for line in lines]


def prelude(slots: Sequence[Slot], params: Sequence[Param]) -> str:
    """The WGSL head: storage bindings in order, then the parameters, which are the uniform at the last binding."""
    lines = ["// Generated from the lowering's signature."]
    for binding, slot in enumerate(slots):
        lines += _slot_text(slot, binding)
    lines += _params_text(params, len(slots))
    return "\n".join(lines)
