"""Pools of several sizes over one image, as spatial pyramids have them, become a chain: the larger one is taken of the
smaller one's results, whose windows together are its own.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict

from webinfer.graph.ir import Graph, Value
from webinfer.ops import pool
from webinfer.ops.activation import Activation


def chain_pools(graph: Graph) -> int:
    """Number of pools that read a smaller one's result."""
    made = defaultdict[Value, list[tuple[tuple[int, int], Value]]](list)  # windows over each image, and their results
    count = 0
    for node in graph.nodes:
        if node.op is not pool.MAX_POOL2D or not _keeps_size(node.attrs):
            continue
        (kh, kw), results = node.attrs.window, made[node.required_input(0)]
        smaller = [(h * w, h, w, value) for (h, w), value in results if h <= kh and w <= kw]
        if node.attrs.activation is Activation.NONE:
            results.append(((kh, kw), node.output))
        if smaller:
            _, h, w, value = max(smaller, key=lambda found: found[0])
            window = (kh - h + 1, kw - w + 1)
            node.inputs[0], node.attrs = value, dataclasses.replace(node.attrs, window=window, pads=_around(window))
            count += 1
    return count


def _around(window: tuple[int, int]) -> tuple[int, int, int, int]:
    """The pads that keep an image's size."""
    return (window[0] // 2, window[0] // 2, window[1] // 2, window[1] // 2)


def _keeps_size(a: pool.Pool2dAttrs) -> bool:
    """Whether windows stand around every pixel."""
    odd = a.window[0] % 2 == a.window[1] % 2 == 1
    return odd and a.stride == a.dilation == (1, 1) and a.pads == _around(a.window)
