"""How each operator becomes steps of the program: one table row an operator.

A lowering picks kernels and their arguments; it computes nothing and looks at no bytes. What has no
row stands in `UNSUPPORTED` with the reason.
"""

from webinfer.backends.wasm.builder import Lower
from webinfer.backends.wasm.lowerings import cast, conv, elementwise, gather, movement, pool, reduce, resize
from webinfer.graph.ir import Op
from webinfer.ops import OPS

_ALL: dict[Op, Lower] = {
    **cast.LOWERINGS,
    **conv.LOWERINGS,
    **elementwise.LOWERINGS,
    **gather.LOWERINGS,
    **movement.LOWERINGS,
    **pool.LOWERINGS,
    **reduce.LOWERINGS,
    **resize.LOWERINGS,
}
LOWERINGS: dict[Op, Lower] = dict(sorted(_ALL.items(), key=lambda row: row[0].name))
UNSUPPORTED: dict[Op, str] = {op: "no kernel yet" for _, op in sorted(OPS.items()) if op not in LOWERINGS}

__all__ = ["LOWERINGS", "UNSUPPORTED"]
