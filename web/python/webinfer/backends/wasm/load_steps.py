"""What a load computes and then forgets: constants that only packing reads do not stay in memory, and come and go a few
megabytes at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from webinfer.backends.wasm.builder import Builder
from webinfer.backends.wasm.memory import pointers
from webinfer.lazy_dataclass import dataclass
from webinfer.plan.blocks import SPARE, Block, Kind, Ref, Step

# Bytes that one turn of the load brings in, its largest weight aside: small beside the weights of models for which
# memory matters, and still a few turns for most. A guess; other numbers were not measured.
TURN_BYTES = 8 << 20
# Bytes of a constant that is copied once more so that it is written together with its neighbours: a call of the page
# takes 50 us, as long as copying about so many (Pyodide 314 in Node 24, 2026-11-28).
JOINED_BYTES = 1 << 16


def drop_intermediates(builder: Builder, ends: Iterable[Ref]) -> None:
    """Has nothing stay in memory but what the run reads: packed weights, not what they were packed from.

    `ends` are where inputs and outputs lie. Other constants become staged: they are there while steps of the load read
    them. Steps whose results nobody reads are left out.
    """
    stay = {ref.block for step in builder.run_part.steps for ref in pointers(step)} | {ref.block for ref in ends}
    stay |= {builder.ref(value).block for value in builder.graph.resident}
    wanted, part, kept = set(stay), builder.prepare_part, list[int]()
    for at in range(len(part.steps) - 1, -1, -1):
        if any(target.block in wanted for target, _ in part.writes[at]):
            wanted.update(ref.block for ref in pointers(part.steps[at]))
            kept.append(at)
    kept.reverse()
    part.steps, part.writes = [part.steps[at] for at in kept], [part.writes[at] for at in kept]
    for block in [block for block in builder.constants if block not in stay]:
        data = builder.constants.pop(block)
        block.kind = Kind.STAGED
        if block in wanted:
            if data is None:
                part.blocks[block] = None
            else:
                builder.staged[block] = data
    for block in [block for block in builder.staged if block not in wanted]:
        del builder.staged[block]
    part.blocks = {block: None for block in part.blocks if block in wanted}


@dataclass(slots=True)
class Turn:
    """Steps of the load that run together, and what is brought in for them."""

    steps: list[Step] = field(default_factory=list)
    sources: list[Block] = field(default_factory=list)


def in_turns(steps: Sequence[Step], staged: Iterable[Block], *, at_once: bool) -> tuple[list[Turn], list[Block]]:
    """The steps in turns of about TURN_BYTES, or `at_once`, and all blocks that live during the load alone.

    Their lives are counted in turns.
    """
    given, seen, turns, used = set(staged), dict[Block, None](), list[Turn](), 0
    for step in steps:
        blocks = dict.fromkeys(ref.block for ref in pointers(step) if ref.block.kind is not Kind.CONSTANT)
        new = [block for block in blocks if block not in seen]
        nbytes = sum(block.nbytes for block in new)
        if not turns or (used and used + nbytes > TURN_BYTES and not at_once):
            turns.append(Turn())
            used = 0
        used += nbytes
        turn = turns[-1]
        turn.steps.append(step)
        turn.sources += [block for block in new if block in given]
        for block in blocks:
            if block not in seen:
                seen[block] = None
                block.first, block.last = 1 << 60, -1
            block.touch(len(turns) - 1)
    return turns, sorted(seen, key=lambda block: block not in given)  # what is written lies side by side


def in_runs(
    sources: Mapping[Block, memoryview | None], most: int
) -> Iterator[tuple[int, memoryview | list[memoryview | bytes], int]]:
    """What to write where, and how many bytes are done then: blocks that lie side by side together, unless one has more
    bytes than `most`.
    """
    run, start, end, done = list[memoryview | bytes](), 0, 0, 0
    for block, data in sources.items():
        small = type(data) is memoryview and data.nbytes == len(data) <= most
        gap = block.address - end
        if run and not (small and 0 <= gap < 2 * SPARE):
            yield start, run, done
            run, done = [], 0
        done += block.nbytes
        if data is None or not len(data):
            continue
        if not small:
            yield block.address, data, done
            done = 0
            continue
        if run:
            run.append(bytes(gap))
        else:
            start = block.address
        run.append(data)
        end = block.address + len(data)
    if run:
        yield start, run, done
