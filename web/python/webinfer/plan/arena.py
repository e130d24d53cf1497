"""Static memory planning: blocks with lifetimes share one arena."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence

from webinfer.errors import REPORT, CompilerError
from webinfer.plan.blocks import Block

# Blocks; above it the quadratic planner gives way to the linear one: half and double changed one of 146 graphs.
GREEDY_LIMIT = 800


def assign(blocks: Sequence[Block]) -> int:
    """Gives every block an address inside an arena that starts at 0; the arena's bytes.

    Blocks that live at the same time never overlap. No order of placing is best for every graph: a few
    are tried and the tightest is kept.
    """
    if len(blocks) > GREEDY_LIMIT:
        return assign_in_time_order(blocks)
    bound = lower_bound(blocks)
    best, addresses = -1, [0] * len(blocks)
    for order in (_by_size, _by_breadth, _by_time):
        total = _place(order(blocks))
        if best < 0 or total < best:
            best, addresses = total, [b.address for b in blocks]
        if best <= bound:
            break
    for block, address in zip(blocks, addresses, strict=True):
        block.address = address
    return max(best, 0)


def _by_size(blocks: Sequence[Block]) -> list[Block]:
    return sorted(blocks, key=lambda b: (-b.span, b.first))


def _by_time(blocks: Sequence[Block]) -> list[Block]:
    return sorted(blocks, key=lambda b: (b.first, -b.span))


def _by_breadth(blocks: Sequence[Block]) -> list[Block]:
    """Blocks of the busiest step first, then those of the next busiest."""
    live: dict[int, list[Block]] = {}
    for block in blocks:
        for step in {block.first, block.last}:
            live.setdefault(step, [])
    for block in blocks:
        for step, there in live.items():
            if block.first <= step <= block.last:
                there.append(block)
    busiest = sorted(live.values(), key=lambda there: -sum(b.span for b in there))
    ordered = dict.fromkeys(b for there in busiest for b in sorted(there, key=lambda b: -b.span))
    return list(ordered)


def _place(ordered: Sequence[Block]) -> int:
    placed: list[Block] = []  # sorted by address
    total = 0
    for block in ordered:
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


def assign_in_time_order(blocks: Sequence[Block]) -> int:
    """As `assign`: first fit over a free list, in the order of first use: near-linear, a little less tight."""
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


def lower_bound(blocks: Iterable[Block]) -> int:
    """Bytes that live at the busiest step: no arena can be smaller."""
    return most_live((block.first, block.last, block.span) for block in blocks)


def most_live(lives: Iterable[tuple[int, int, int]]) -> int:
    """Bytes at the busiest step; each row has a first step, a last one, and the bytes that live in between."""
    changes: dict[int, int] = {}
    for first, last, nbytes in lives:
        changes[first] = changes.get(first, 0) + nbytes
        changes[last + 1] = changes.get(last + 1, 0) - nbytes
    live = peak = 0
    for step in sorted(changes):
        live += changes[step]
        peak = max(peak, live)
    return peak


def check(blocks: Sequence[Block]) -> None:
    """Nothing, if no two blocks that live at the same time have a byte in common.

    Raises:  CompilerError naming both
    """
    live: list[tuple[int, int, Block]] = []  # (address, number, block), upwards
    ends: list[tuple[int, int, Block]] = []  # (last, number, block), upwards
    for number, block in enumerate(sorted(blocks, key=lambda block: block.first)):
        while ends and ends[0][0] < block.first:
            _, own, gone = ends.pop(0)
            del live[bisect.bisect_left(live, (gone.address, own))]
        place = bisect.bisect_left(live, (block.address, number))
        for _, _, other in live[max(place - 1, 0) : place + 1]:
            if other.address < block.address + block.span and block.address < other.address + other.span:
                raise CompilerError(f"blocks {block.name!r} and {other.name!r} lie on each other; {REPORT}")
        bisect.insort(live, (block.address, number, block))
        bisect.insort(ends, (block.last, number, block))
