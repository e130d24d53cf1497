"""Non-maximum suppression of one list of boxes."""

from __future__ import annotations

from webinfer.backends.webgpu.dispatch import Dispatch, Scratch, Target, check_turns, read, update, write
from webinfer.backends.webgpu.lowerings.conversion import in_words
from webinfer.codegen.prelude import f32, u32
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node
from webinfer.ops.registry import LARGEST

INVOCATIONS = 256


def _non_max_suppression(node: Node, target: Target) -> list[Dispatch]:
    """nms.wgsl: one workgroup finds the best box again and again.

    Raises:  UnsupportedOpError if no box is wanted, or there is none
    """
    (boxes, scores), a, n = map(node.required_input, range(2)), node.attrs, node.required_input(1).type.size
    if min(n, a.limit) < 1:
        raise UnsupportedOpError([f"a suppression of {n} boxes that keeps {a.limit}"])
    check_turns((a.limit + 1) * (2 * -(-n // INVOCATIONS) + 9), target, "a suppression with turns")
    results = (
        write(name, v, single=True) for name, v in zip(("positions", "kept", "count"), node.outputs, strict=True)
    )
    bindings = (read("boxes", boxes), read("scores", scores), update("work", Scratch((n,)), single=True), *results)
    params = (*u32(n=n, limit=a.limit), *f32(overlap=a.overlap, least=max(a.least, -LARGEST), sigma=a.sigma))
    why = f"{INVOCATIONS} look for each of the best {a.limit}"
    return [Dispatch("nms", {"workgroup": INVOCATIONS}, bindings, params, (1, 1, 1), why)]


non_max_suppression = in_words(_non_max_suppression)
