"""The rules that every graph keeps, before and after each pass."""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.errors import ShapeError
from webinfer.graph.ir import Graph, Node, SizeConstant, Value
from webinfer.graph.printer import safe_name


def verify(graph: Graph) -> None:
    """Nothing, if the graph is sound: `verify_writes`, types as inferred, constants of their type's size.

    Raises:  ShapeError naming the node and the rule.
    """
    verify_writes(graph)
    for node in graph.nodes:
        _check_types(node)
        for value in node.inputs:
            if value is not None:
                _check_constant(value)
    for value in graph.outputs:
        _check_constant(value)


def verify_writes(graph: Graph) -> None:
    """Nothing, if each value has one writer and is written before it is read, and inputs and outputs have own names.

    Raises:  ShapeError naming the node and the rule.
    """
    known: set[Value] = set(graph.resident)
    for value in graph.inputs:
        if value in known or value.is_constant:
            raise ShapeError(f"graph input {_show(value)} is {'a constant' if value.is_constant else 'listed twice'}")
        known.add(value)
    for node in graph.nodes:
        _check_order(node, known)
        known.update(node.outputs)
    for value in graph.outputs:
        if value not in known and not value.is_constant:
            raise ShapeError(f"graph output {_show(value)} is not written by any node")
    _check_names("input", graph.inputs)
    _check_names("output", graph.outputs)


def _check_order(node: Node, known: set[Value]) -> None:
    for value in node.inputs:
        if value is not None and not value.is_constant and value not in known:
            raise ShapeError(f"{_where(node)} reads {_show(value)}, which is written later or never")
    for value in node.outputs:
        if value in known or value.is_constant:
            raise ShapeError(f"{_where(node)} writes {_show(value)}, which is constant or written before")


def _check_names(what: str, values: Sequence[Value]) -> None:
    names = {value.name: value for value in values}
    if twice := [value for value in values if names[value.name] is not value]:
        raise ShapeError(f"two graph {what}s have the name {safe_name(twice[0].name)}")
    if len(names) < len(values):
        raise ShapeError(f"a graph {what} is listed twice")


def _check_types(node: Node) -> None:
    if not isinstance(node.attrs, node.op.attrs):
        raise ShapeError(f"{_where(node)} has {type(node.attrs).__name__}, needs {node.op.attrs.__name__}")
    given, found = [None if v is None else v.type for v in node.inputs], tuple(v.type for v in node.outputs)
    if node.inferred == (node.attrs, given, [*found]):
        return
    try:
        inferred = node.op.result_types(given, node.attrs)
    except ShapeError as error:
        raise ShapeError(f"{_where(node)}: {error}") from None
    if found != inferred:
        raise ShapeError(
            f"{_where(node)} is typed {', '.join(map(str, found))}; its inputs make {', '.join(map(str, inferred))}"
        )


def _check_constant(value: Value) -> None:
    constant = value.constant
    if constant is None or constant.sparsity is not None:
        return  # sparse storage is checked against its own levels by the importer
    if isinstance(constant, SizeConstant):
        if len(constant.elements) != value.type.size:
            raise ShapeError(f"constant {_show(value)} has {len(constant.elements)} elements, needs {value.type.size}")
        return
    needed = value.type.size * constant.stored.itemsize
    if constant.data.nbytes != needed:
        raise ShapeError(f"constant {_show(value)} has {constant.data.nbytes} bytes, needs {needed}")


def _where(node: Node) -> str:
    return f"{node.op.name} {safe_name(node.label)}"


def _show(value: Value) -> str:
    return f"{safe_name(value.name)} ({value.type})"
