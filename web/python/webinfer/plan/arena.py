"""Static memory planning: blocks with lifetimes share one arena."""

from __future__ import annotations

import bisect
from collections.abc import Sequence

from webinfer.plan.blocks import Block

GREEDY_LIMIT = 2000  # blocks; above it the quadratic planner gives way to the linear one


def assign(blocks: Sequence[Block]) -> int:
    """Gives every block an address inside an arena that starts at 0; the arena's bytes.

    Blocks that live at the same time never overlap. Large blocks are placed first, each in the
    smallest gap that holds it.
    """
    if len(blocks) > GREEDY_LIMIT:
        return _assign_in_time_order(blocks)
    placed: list[Block] = []  # sorted by address
    total = 0
    for block in sorted(blocks, key=lambda b: (-b.span, b.first)):
        block.address = _best_gap(placed, block)
        bisect.insort(placed, block, key=lambda b: b.address)
        total = max(total, block.address + block.span)
    return total


def _best_gap(placed: Sequence[Block], block: Block) -> int:
    best, best_size, end = -1, 1 << 62, 0
    for other in placed:
        if other.last < block.first or block.last < other.first:
            continue
        gap = other.address - end
        if block.span <= gap < best_size:
            best, best_size = end, gap
        end = max(end, other.address + other.span)
    return end if best < 0 else best


def _assign_in_time_order(blocks: Sequence[Block]) -> int:
    """First fit over a free list, in the order of first use: near-linear, a little less tight."""
    free: list[tuple[int, int]] = []  # (address, bytes), sorted and merged
    live: list[tuple[int, int, Block]] = []  # (last, sequence, block), sorted
    total = 0
    for sequence, block in enumerate(sorted(blocks, key=lambda b: b.first)):
        while live and live[0][0] < block.first:
            _release(free, live.pop(0)[2])
        for i, (address, nbytes) in enumerate(free):
            if nbytes >= block.span:
                block.address = address
                free[i : i + 1] = [(address + block.span, nbytes - block.span)] if nbytes > block.span else []
                break
        else:
            block.address = total
            total += block.span
        bisect.insort(live, (block.last, sequence, block), key=lambda item: item[:2])
    return total


def _release(free: list[tuple[int, int]], block: Block) -> None:
    at = bisect.bisect_left(free, (block.address, 0))
    start, end = block.address, block.address + block.span
    if at < len(free) and free[at][0] == end:
        end += free.pop(at)[1]
    if at > 0 and sum(free[at - 1]) == start:
        start = free.pop(at - 1)[0]
        at -= 1
    free.insert(at, (start, end - start))


def lower_bound(blocks: Sequence[Block]) -> int:
    """Bytes that live at the busiest step: no arena can be smaller."""
    changes: dict[int, int] = {}
    for block in blocks:
        changes[block.first] = changes.get(block.first, 0) + block.span
        changes[block.last + 1] = changes.get(block.last + 1, 0) - block.span
    live = peak = 0
    for step in sorted(changes):
        live += changes[step]
        peak = max(peak, live)
    return peak
