"""Graphs as text, for people, tests and DEBUG=5.

Names come from model files and are not trusted: `safe_name` is what may be shown.
"""

from __future__ import annotations

import dataclasses
import enum
import re
from typing import Any

from webinfer.dtypes import DType
from webinfer.graph.ir import Graph, Node, Quantization, Value

_MAX_NAME = 40
_MAX_NUMBERS = 4
_MAX_LIST = 16
_STRANGE = re.compile(r"[^A-Za-z0-9_./:-]")
_BY_X = frozenset({"stride", "dilation", "window", "size", "shape", "repeats"})


def safe_name(name: str, max_length: int = _MAX_NAME) -> str:
    """The name with everything but letters, digits and `_ . / : -` of ASCII written as `{hex}`, cut to length."""
    head = name[: max_length + 1]
    safe = _STRANGE.sub(lambda found: f"{{{ord(found[0]):x}}}", head)
    return safe if len(safe) <= max_length else safe[: max_length - 1] + "~"


def print_graph(graph: Graph) -> str:
    """The graph, one node a line, with inferred types; attributes at their defaults are left out."""
    names = _Names()
    inputs = ", ".join(f"%{names.of(v)}: {v.type}" for v in graph.inputs)
    lines = [f"graph {safe_name(graph.name)}({inputs}) {{"]
    lines += [f"  {_node_line(node, names)}" for node in graph.nodes]
    lines.append("  return " + ", ".join(_operand(v, names) for v in graph.outputs))
    lines.append("}")
    return "\n".join(lines) + "\n"


class _Names:
    """One printable name for each value, told apart by a number where two would be the same."""

    def __init__(self) -> None:
        self._names: dict[Value, str] = {}
        self._counts: dict[str, int] = {}

    def of(self, value: Value) -> str:
        if value not in self._names:
            stem = name = safe_name(value.name) or "v"
            while name in self._counts:
                self._counts[stem] += 1
                name = f"{stem}.{self._counts[stem]}"
            self._counts[name] = 1
            self._names[value] = name
        return self._names[value]


def _node_line(node: Node, names: _Names) -> str:
    inputs = list(node.inputs)
    while inputs and inputs[-1] is None:
        inputs.pop()
    operands = ", ".join(_operand(v, names) for v in inputs)
    attrs = "".join(f" {word}" for word in attr_words(node.attrs))
    results = ", ".join(f"%{names.of(v)}" for v in node.outputs)
    types = ", ".join(str(v.type) for v in node.outputs)
    return f"{results} = {node.op.name}({operands}){attrs} -> {types}"


def _operand(value: Value | None, names: _Names) -> str:
    if value is None:
        return "none"
    constant = value.constant
    if constant is None:
        return f"%{names.of(value)}"
    dims = "[" + "x".join(map(str, value.type.shape)) + "]" if value.type.shape else ""
    sparse = "sparse " if constant.sparsity is not None else ""
    stored = "" if constant.stored is DType.FLOAT32 else f"{constant.stored} "
    quant = "" if value.type.quant is None else str(value.type).partition("]")[2]
    numbers = ""
    if not sparse and not quant and value.type.size <= _MAX_NUMBERS:
        numbers = "{" + ", ".join(_number(n) for n in value.numbers()) + "}"
    return f"const {sparse}{stored}{dims}{quant}{numbers}"


def attr_words(attrs: Any) -> list[str]:
    """The attributes that differ from their defaults, as words; enum members and true flags stand bare."""
    words = []
    for field in dataclasses.fields(attrs):
        value = getattr(attrs, field.name)
        if field.name == "out_type" or (field.default is not dataclasses.MISSING and value == field.default):
            continue  # the result's type says what out_type says
        if value is True:
            words.append(field.name)
        elif isinstance(value, enum.StrEnum) and not isinstance(value, DType):
            words.append(str(value))
        else:
            words.append(f"{field.name}={_attr(field.name, value)}")
    return words


def _attr(name: str, value: Any) -> str:
    if isinstance(value, tuple):
        parts = [_attr("", v) for v in value[:_MAX_LIST]]
        if len(value) > _MAX_LIST:
            parts.append(f"and {len(value) - _MAX_LIST} more")
        text = ("x" if name in _BY_X else ",").join(parts)
        return text or "()"
    if isinstance(value, Quantization):
        return f"{len(value.scales)} scales" if len(value.scales) > 1 else f"{value.scales[0]:.6g}"
    return safe_name(value) if type(value) is str else _number(value)


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
