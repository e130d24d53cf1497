"""Inputs that are bound to values when a model is loaded: they are constants of it from then on.

Where such values alone decide what runs (a sampling rate, a flag), the model is one graph, which can be compiled.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from webinfer.errors import InputError
from webinfer.graph.ir import Constant, Graph, Value
from webinfer.session.options import check_names
from webinfer.session.stages import NO_PATH, StagedGraph, computed

Values = Mapping[str, tuple[float, ...]]


def checked_values(values: Any) -> Values:
    """What `values` binds, by input; nothing for None.

    Raises:  InputError naming the input, what was found and what is allowed
    """
    found: dict[str, tuple[float, ...]] = {}
    for name, given in check_names("values", values, "numbers").items():
        listed = given.tolist() if hasattr(given, "tolist") else given
        flat = listed if isinstance(listed, Sequence) and not isinstance(listed, (str, bytes)) else [listed]
        if not all(isinstance(number, (int, float)) and math.isfinite(number) for number in flat):
            raise InputError(f"values has {name!r}: {given!r}, needs a number or a flat sequence of numbers")
        found[name] = tuple(flat)
    return found


def decided(graph: StagedGraph, values: Values) -> Graph:
    """The whole graph that these values lead to.

    Raises:  InputError if something else decides, too
    """
    path, known = NO_PATH, constants(graph.inputs, values)
    while True:
        part = graph.part(path)
        if part.key is None:
            return part.read
        own = {name: known[name].data for name in part.inputs.values() if name in known}
        shown = computed(part, own) if len(own) == len(part.inputs) and not part.needs else None
        if shown is None and not part.nodes and len(own) == 1 and part.turns is None:
            shown = bytes(next(iter(own.values())))  # an input decides by itself
        if shown is None:
            others = ", ".join(repr(name) for name in part.inputs.values() if name not in known)
            raise InputError(
                f"{graph.name!r}: the values of {', '.join(map(repr, values))} do not determine the control flow alone"
                + (f"; {others} also determine(s) it" if others else "")
            )
        path = (*path, (part.key, shown))


def with_constants(graph: Graph, values: Values) -> Graph:
    """The graph with these inputs as constants; it no longer takes them.

    Raises:  InputError if it has no such input, or one takes another number of elements
    """
    found = constants(graph.inputs, values)
    if unknown := [name for name in values if name not in found]:
        listed = ", ".join(repr(value.name) for value in graph.inputs)
        raise InputError(f"{graph.name!r} has no input {unknown[0]!r}; it has {listed}")
    for value in [value for value in graph.inputs if value.name in found]:
        graph.replace(value, Value(value.name, value.type, found[value.name]))
        graph.inputs.remove(value)
        graph.outer = {name: dtype for name, dtype in graph.outer.items() if name != value.name}
    return graph


def constants(inputs: Sequence[Value], values: Values) -> dict[str, Constant]:
    """The values as constants of their inputs' types."""
    found: dict[str, Constant] = {}
    for value in inputs:
        if value.name in values:
            given, dtype = values[value.name], value.type.dtype
            if len(given) != value.type.size:
                raise InputError(f"values has {len(given)} numbers for {value.name!r}, which takes {value.type.size}")
            numbers = given if dtype.is_float else map(int, given)
            try:
                data = struct.pack(f"<{len(given)}{dtype.letter}", *numbers)
            except struct.error as error:
                raise InputError(f"values of {value.name!r} do not fit {dtype}: {error}") from error
            found[value.name] = Constant(memoryview(data), dtype)
    return found
