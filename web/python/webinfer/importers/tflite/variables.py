"""TFLite's resource variables: tensors that the subgraphs of a model share, and that live from run to run.

A handle stands for a variable until READ_VARIABLE and ASSIGN_VARIABLE name it. What CALL_ONCE assigns is what a
variable holds before the first run; what nothing else assigns is a constant.
"""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.graph.ir import TensorType, Value
from webinfer.importers.tflite.model import OperatorInfo, SubgraphInfo
from webinfer.importers.tflite.operation import Handle, Operation, Row

CALL_ONCE, VAR_HANDLE = "CallOnceOptions", "VarHandleOptions"  # a damaged file may give an operator another's


def variable_name(container: str, shared_name: str) -> str:
    """The name of a resource variable."""
    return f"{container}/{shared_name}" if container else shared_name


def assigned_variables(subgraphs: Sequence[SubgraphInfo]) -> frozenset[str]:
    """The resource variables that runs may change: those that a subgraph assigns which is not run once only.

    A handle that comes into a subgraph as an input may be of any variable.
    """
    calls = [op.options for subgraph in subgraphs for op in subgraph.operators if op.name == "CALL_ONCE"]
    once = {table.number("init_subgraph_index") for table in calls if table is not None and table.kind == CALL_ONCE}
    every, found = set[str](), set[str | None]()
    for number, subgraph in enumerate(subgraphs):
        handles = {op.outputs[0]: _named(op) for op in subgraph.operators if op.name == "VAR_HANDLE" and op.outputs}
        every |= {*handles.values()}
        if number not in once:
            writers = [op for op in subgraph.operators if op.name == "ASSIGN_VARIABLE" and op.inputs]
            found |= {handles.get(op.inputs[0]) for op in writers}
    return frozenset(every) if None in found else frozenset(name for name in found if name is not None)


def _named(op: OperatorInfo) -> str:
    table = op.options
    return (
        ""
        if table is None or table.kind != VAR_HANDLE
        else variable_name(table.text("container"), table.text("shared_name"))
    )


def _handle(op: Operation) -> Value:
    return Handle(_named(op.info))


def _variable(op: Operation) -> Handle:
    handle = op.value(0)
    if not isinstance(handle, Handle):
        op.fail("its first input is not a variable")
    return handle


def _read(op: Operation) -> Value:
    name, declared = _variable(op).name, op.declared()
    first = op.model.initial.get(name)
    if name not in op.model.assigned:
        if first is None:
            op.refuse(f"variable {name!r}, to which nothing is ever assigned")
        return first
    kind = op.writer.variables.type(name)
    if kind is None:
        shape = declared.shape if first is None else first.type.shape
        kind = TensorType(shape, declared.dtype, declared.quant)
    data = None if first is None or first.constant is None else first.constant.data
    if first is not None and (first.type.shape, first.type.dtype) != (kind.shape, kind.dtype):
        op.fail(f"variable {name!r} is {first.type} at first, is read as {kind}")
    return op.writer.variables.read(name, kind, data)


def _assign(op: Operation) -> list[Value]:
    name, value = _variable(op).name, op.value(1)
    if op.model.initializing:
        if value.constant is None or value.constant.sparsity is not None:
            op.refuse("a variable whose first value is computed")
        op.model.initial[name] = value
        return []
    first, variables = op.model.initial.get(name), op.writer.variables
    known = variables.type(name) or (None if first is None else first.type)
    if known is not None and (known.shape, known.dtype) != (value.type.shape, value.type.dtype):
        op.refuse(f"variable {name!r}, which changes from {known} to {value.type}")
    variables.write(name, value, None if first is None or first.constant is None else first.constant.data)
    return []


def _call_once(op: Operation) -> list[Value]:
    before, op.model.initializing = op.model.initializing, True
    try:
        op.run("init_subgraph_index", [])
    finally:
        op.model.initializing = before
    return []


CONVERTERS: dict[str, Row] = {
    "ASSIGN_VARIABLE": (_assign, "AssignVariableOptions"),
    "CALL_ONCE": (_call_once, "CallOnceOptions"),
    "READ_VARIABLE": (_read, "ReadVariableOptions"),
    "VAR_HANDLE": (_handle, "VarHandleOptions"),
}
