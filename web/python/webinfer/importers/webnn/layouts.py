"""Image layouts of WebNN: whatever a description says becomes NHWC at the door."""

from __future__ import annotations

from webinfer.graph.ir import Value
from webinfer.importers.webnn.operation import Operation

TO_NHWC, TO_NCHW = (0, 2, 3, 1), (0, 3, 1, 2)


def enter(op: Operation, x: Value, layout: str) -> Value:
    """An image tensor as NHWC."""
    if layout not in ("nchw", "nhwc"):
        op.fail(f"layout {layout!r} is neither nchw nor nhwc")
    return op.transpose(x, TO_NHWC) if layout == "nchw" else x


def leave(op: Operation, y: Value, layout: str) -> Value:
    """A result in NHWC brought back to the layout of the description."""
    return op.transpose(y, TO_NCHW) if layout == "nchw" else y
