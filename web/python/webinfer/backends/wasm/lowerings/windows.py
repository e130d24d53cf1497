"""Arguments that kernels with sliding windows share, by the kernels' names for them."""

from __future__ import annotations

from webinfer.graph.ir import Node, TensorType
from webinfer.plan.blocks import Arguments

Pair = tuple[int, int]


def image_sizes(x: TensorType, y: TensorType) -> Arguments:
    """Count and sizes of images x [n, ih, iw, _] that become y [n, oh, ow, _]."""
    (n, ih, iw, _), (_, oh, ow, _) = x.shape, y.shape
    return {"n": n, "ih": ih, "iw": iw, "oh": oh, "ow": ow}


def window(size: Pair, stride: Pair, pads: Pair, dilation: Pair | None = (1, 1)) -> Arguments:
    """A window's size, steps and the padding above and left; kernels without dilation are given None.

    Units: pixels.
    """
    given: Arguments = {"kh": size[0], "kw": size[1], "sh": stride[0], "sw": stride[1]}
    if dilation is not None:
        given |= {"dh": dilation[0], "dw": dilation[1]}
    return given | {"pad_top": pads[0], "pad_left": pads[1]}


def window_of(node: Node, size: Pair) -> Arguments:
    """The window that the node's attributes describe."""
    a = node.attrs
    return window(size, a.stride, (a.pads[0], a.pads[2]), a.dilation)


LAID = {"ih": "iw", "oh": "ow", "kh": "kw", "sh": "sw", "dh": "dw", "pad_top": "pad_left"}


def geometry_of(node: Node, size: Pair) -> Arguments:
    """Images and window of a convolution. Images of one column become one row: windows are runs of memory."""
    x, y = node.required_input(0).type, node.output.type
    given = image_sizes(x, y) | window_of(node, size)
    if size[1] == 1 and size[0] > 1 and given["pad_left"] == 0 and x.shape[2] == y.shape[2] == 1:
        return given | {name: given[LAID[name]] for name in LAID} | {LAID[name]: given[name] for name in LAID}
    return given
