"""Constants of equal bytes and type become one value, and so does what is made of equal values in the same way:
a weight that several nodes use is transposed and packed once, a mask that each layer makes for itself is made once.
"""

from __future__ import annotations

from typing import Any

from webinfer.graph.ir import Constant, Graph, Node, SizeConstant, Value
from webinfer.graph.queries import remove, resolve, substitute
from webinfer.ops import elementwise as ew

# Bytes of constants that importers make, which are compared; larger ones are those of the file, and shared. With 512
# and 2,048 five of 146 graphs change, whose times do not (EPYC and H100, 2026-11-28).
SMALL = 1024


def share_constants(graph: Graph) -> int:
    """Number of constants and of nodes that were replaced by an equal one.

    A graph in parts shares nodes of constants alone, as a part may run without the one before it; so does one with a
    branch on data, of which a run leaves out what only the other side needs.
    """
    whole = not graph.parts and not any(map(_chooses, graph.nodes))
    first: dict[Any, Value] = {}
    made: dict[Any, Value] = {}
    replacements: dict[Value, Value] = {}
    fixed, outputs, needless = set[Value](), set(graph.outputs), set[Any]()
    for node in graph.nodes:
        for value in node.inputs:
            if value is None or value.constant is None or value in replacements:
                continue
            constant = value.constant
            source = _source(constant)
            key = (source, constant.stored, id(constant.sparsity), value.type)
            same = first.setdefault(key, value)
            if same is not value:
                replacements[value] = same
        inputs = [None if value is None else resolve(value, replacements) for value in node.inputs]
        if inputs and all(value is None or value.is_constant or value in fixed for value in inputs):
            fixed.update(node.outputs)
        elif not inputs or not whole:
            continue
        # Integers become real numbers where one node reads them: other passes put that into the node.
        if len(node.outputs) > 1 or node.output in outputs or node.op is ew.DEQUANTIZE:
            continue
        same = made.setdefault((node.op, node.attrs, *inputs), node.output)
        if same is not node.output:
            replacements[node.output] = same
            needless.add(node)
    remove(graph, needless)
    substitute(graph, replacements)
    return len(replacements)


def _chooses(node: Node) -> bool:
    """Whether one condition chooses between whole tensors. Sizes that are symbols are not asked: that binds them."""
    return node.op is ew.WHERE and all(
        isinstance(size, int) and size == 1 for size in node.required_input(0).type.shape
    )


def _source(constant: Constant) -> Any:
    """What equal constants have alike; tensors that share a buffer share the view. Large bytes are not compared."""
    if isinstance(constant, SizeConstant):
        return constant.elements
    return bytes(constant.data) if constant.data.nbytes <= SMALL else id(constant.data)
