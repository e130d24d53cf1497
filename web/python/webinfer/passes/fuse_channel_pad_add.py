"""A residual that was widened with zero channels is taken as it was: the missing channels count as zero."""

from __future__ import annotations

from webinfer.graph.ir import Graph, Node
from webinfer.ops import conv, movement


def fuse_channel_pad_add(graph: Graph) -> int:
    """Number of residuals that lost their PAD (which is left as dead code)."""
    producers = graph.producers()
    count = 0
    for node in graph.nodes:
        if node.op not in (conv.CONV2D, conv.DEPTHWISE_CONV2D) or len(node.inputs) < 4 or node.inputs[3] is None:
            continue
        pad = producers.get(node.inputs[3])
        if pad is not None and _widens(pad):
            node.inputs[3] = pad.inputs[0]
            count += 1
    return count


def _widens(node: Node) -> bool:
    """Whether this only puts zero channels behind the others."""
    if node.op is not movement.PAD:
        return False
    a = node.attrs
    return a.mode == "constant" and a.value == 0 and not any(a.before) and not any(a.after[:-1])
