"""Batches of products: a step for each of a few, one step for all of many."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from operator import mul
from typing import Any

from webinfer.backends.wasm.builder import Builder
from webinfer.backends.wasm.kernel_table import KERNELS
from webinfer.backends.wasm.lowerings.nest import broadcast_strides, nest
from webinfer.kernel_constants import PROGRAM_RECORD_WORDS
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.strides import row_major
from webinfer.plan.blocks import Argument, Arguments, Ref

# Products that threads share one by one; more are shared as wholes, in one step: 32 and 128 took as long on one thread
# (EPYC, 2026-11-28).
FEW = 64
POINTERS = "abcdey"


@dataclass(frozen=True, slots=True)
class Batch:
    """The products of a node: `shape` counts them; an axis steps over so many matrices of the operands `a` and `b`."""

    shape: tuple[int, ...]
    a: tuple[int, ...]
    b: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many products there are."""
        return math.prod(self.shape)


def batch_of(a: Sequence[int], b: Sequence[int], y: Sequence[int]) -> Batch:
    """The products of operands and a result with these shapes; none where b is the same for all rows of a."""
    lead = tuple(y[:-2])
    if math.prod(b[:-2]) == 1 and math.prod(a[:-2]) == math.prod(lead):
        return Batch((), (), ())
    return Batch(lead, broadcast_strides(a[:-2], lead), broadcast_strides(b[:-2], lead))


def matrices_of(b: Sequence[int]) -> Batch:
    """Every matrix of the right operand once."""
    lead = tuple(b[:-2])
    return Batch(lead, (0,) * len(lead), row_major(lead))


Moved = Mapping[str, tuple[Ref, int]]  # pointer "a", "b", "y" → where it begins, bytes from one matrix to the next


def each_product(
    builder: Builder, batch: Batch, kernel: str, names: Mapping[str, str], moved: Moved, *groups: Arguments,
    units: int, put: Callable[..., None] | None = None, **args: Argument,
) -> None:  # fmt: skip
    """Steps that run a kernel once for each product of a batch.

    `names` says which of the kernel's arguments are a, b and y, which move, and c, d and e, which do not; `put` is the
    builder's `prepare` where that is meant. The kernel writes through y alone.
    """
    if not units or not batch.count:
        return  # nothing to do
    put = put or builder.step
    strides = {"a": batch.a, "b": batch.b, "y": row_major(batch.shape)}
    if batch.count <= FEW:
        for index in product(*map(range, batch.shape)):
            places: Arguments = {
                names[at]: start + nbytes * sum(map(mul, index, strides[at])) for at, (start, nbytes) in moved.items()
            }
            put(kernel, *groups, places, units=units, **args)
        return
    given = {name: value for group in (*groups, args) for name, value in group.items()}
    pointers: Arguments = {at: given.pop(names[at]) for at in "cde" if at in names}
    pointers |= {at: start for at, (start, _) in moved.items()}
    row = KERNELS[kernel]
    values = row.arranged(given | dict.fromkeys(names.values()), units)
    assert all(value is None for value, kind in zip(values, row.args.values(), strict=True) if kind == "ptr")
    record = [row.id, PROGRAM_RECORD_WORDS + len(values), units, 1]
    record += [_word(0 if v is None else v, kind) for v, kind in zip(values, row.args.values(), strict=True)]
    order = list(row.args)
    call = [order.index(names[at]) if at in names else len(order) for at in POINTERS]
    walk = [
        tuple(step * moved[at][1] for step in strides[at]) if at in moved else (0,) * len(batch.shape) for at in "aby"
    ]
    put(
        "each_product", dict.fromkeys(POINTERS, None) | pointers, nest=nest(builder, batch.shape, *walk),
        call=builder.words("call", [*call, *record]),
        y_bytes=batch.count * moved["y"][1], units=batch.count,
    )  # fmt: skip


def _word(value: Any, kind: str) -> Any:
    """An argument as a signed 32-bit word of a record."""
    if kind != "f32":
        return value
    (word,) = struct.unpack("<i", struct.pack("<f", value))
    return word
