"""webinfer's optimised graph as JSON and float32 weights, for the TF.js runner in the benchmark's page."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

# Layouts of TF.js, from ours: dense [CO, KH, KW, CI] and transposed [CO, KH, KW, CI], depthwise [1, KH, KW, C].
HWIO = (1, 2, 3, 0)
TURNED = {"conv2d": HWIO, "conv_transpose2d": (1, 2, 0, 3)}


def export_graph(graph: Any, folder: Path, name: str) -> dict[str, str]:
    """Writes NAME.tfjs.json and NAME.tfjs.bin; the result holds their paths below the site.

    Raises:  ValueError naming what TF.js has no place for
    """
    fold_constants(graph)
    numbers: dict[Any, int] = {}
    constants = _Constants(numbers)
    nodes = [_node(node, numbers, constants) for node in graph.nodes]
    _mark_last_reads(nodes, [numbers[value] for value in graph.outputs], set(constants.numbers_of))
    table = {
        "inputs": [_number(value, numbers) for value in graph.inputs],
        "outputs": [numbers[value] for value in graph.outputs],
        "constants": constants.rows,
        "nodes": nodes,
    }
    (folder / f"{name}.tfjs.json").write_text(json.dumps(table))
    (folder / f"{name}.tfjs.bin").write_bytes(b"".join(constants.parts))
    return {"graph": f"models/{name}.tfjs.json", "weights": f"models/{name}.tfjs.bin"}


def fold_constants(graph: Any) -> None:
    """Makes constants of what no input reaches, as webinfer's backends do when they load a graph."""
    from webinfer.backends.reference.arrays import constant_array
    from webinfer.backends.reference.executor import compute
    from webinfer.graph.ir import Constant

    kept = []
    for node in graph.nodes:
        given = [value for value in node.inputs if value is not None]
        if not all(value.is_constant for value in given) or set(node.outputs) & set(graph.outputs):
            kept.append(node)
            continue
        arrays = [None if value is None else constant_array(value) for value in node.inputs]
        for value, array in zip(node.outputs, compute(node, arrays), strict=True):
            value.constant = Constant(memoryview(array.tobytes()), value.type.dtype)
    graph.nodes = kept


class _Constants:
    """The weights file while it grows. A constant that two operators read in two layouts stands twice."""

    def __init__(self, numbers: dict[Any, int]) -> None:
        self._numbers = numbers
        self._known: dict[Any, int] = {}
        self._offset = 0
        self.rows: list[dict[str, Any]] = []
        self.parts: list[bytes] = []
        self.numbers_of: list[int] = []

    def add(self, value: Any, op: str, position: int) -> int:
        """The number of the constant in the layout that this operator needs at this position."""
        key = (value, op if position == 1 else "")
        if key not in self._known:
            array = _laid_out(value, op, position)
            number = _number(key, self._numbers)
            self.rows.append({"id": number, "shape": list(array.shape), "offset": self._offset, "size": array.size})
            self.parts.append(array.tobytes())
            self.numbers_of.append(number)
            self._offset += array.nbytes
            self._known[key] = number
        return self._known[key]


def _number(key: Any, numbers: dict[Any, int]) -> int:
    return numbers.setdefault(key, len(numbers))


def _laid_out(value: Any, op: str, position: int) -> np.ndarray[Any, np.dtype[Any]]:
    from webinfer.backends.reference.arrays import constant_array

    array = constant_array(value)
    if array.dtype.kind != "f":
        raise ValueError(f"constant {value.name!r} is {array.dtype}")
    if position == 1 and op in TURNED:
        array = array.transpose(TURNED[op])
    return np.ascontiguousarray(array, dtype="<f4")


def _node(node: Any, numbers: dict[Any, int], constants: _Constants) -> dict[str, Any]:
    if len(node.outputs) != 1:
        raise ValueError(f"{node.op.name} has {len(node.outputs)} outputs")
    attrs = {key: value for key, value in dataclasses.asdict(node.attrs).items() if key != "out_type"}
    inputs: list[int | None] = []
    for position, value in enumerate(node.inputs):
        if value is None:
            inputs.append(None)
        elif value.is_constant:
            inputs.append(constants.add(value, node.op.name, position))
        else:
            inputs.append(_number(value, numbers))
    if node.op.name == "depthwise_conv2d":
        _split_depthwise(node, inputs, constants)
    return {"op": node.op.name, "inputs": inputs, "output": _number(node.output, numbers), "attrs": attrs}


def _split_depthwise(node: Any, inputs: list[int | None], constants: _Constants) -> None:
    """[1, KH, KW, C * M] becomes [KH, KW, C, M]: the same bytes, since the multiplier runs innermost."""
    _, height, width, channels = node.inputs[1].type.shape
    source = node.inputs[0].type.shape[3]
    row = next((row for row in constants.rows if row["id"] == inputs[1]), None)
    if row is None:
        raise ValueError("depthwise_conv2d has weights that are computed")
    row["shape"] = [height, width, source, channels // source]


def _mark_last_reads(nodes: list[dict[str, Any]], outputs: list[int], constants: set[int]) -> None:
    """Gives every node the values that nobody reads after it."""
    seen = set(outputs) | constants
    for node in reversed(nodes):
        fresh = {number for number in (*node["inputs"], node["output"]) if number is not None} - seen
        node["last"] = sorted(fresh)
        seen |= fresh
