"""Constants that are the same bytes of the file with the same type become one value, and so does what is made of them
in the same way: a weight that several nodes use is transposed and packed once.
"""

from __future__ import annotations

from typing import Any

from webinfer.graph.ir import Graph, SizeConstant, Value
from webinfer.graph.queries import remove, resolve, substitute
from webinfer.ops import elementwise as ew


def share_constants(graph: Graph) -> int:
    """Number of constants and of nodes of constants that were replaced by an equal one."""
    first: dict[Any, Value] = {}
    made: dict[Any, Value] = {}
    replacements: dict[Value, Value] = {}
    fixed, outputs, needless = set[Value](), set(graph.outputs), set[Any]()
    for node in graph.nodes:
        for value in node.inputs:
            if value is None or value.constant is None or value in replacements:
                continue
            constant = value.constant
            # Tensors that share a buffer share the view object; comparing bytes would read every weight.
            source: Any = constant.elements if isinstance(constant, SizeConstant) else id(constant.data)
            key = (source, constant.stored, id(constant.sparsity), value.type)
            same = first.setdefault(key, value)
            if same is not value:
                replacements[value] = same
        inputs = [None if value is None else resolve(value, replacements) for value in node.inputs]
        if not inputs or not all(value is None or value.is_constant or value in fixed for value in inputs):
            continue
        fixed.update(node.outputs)
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
