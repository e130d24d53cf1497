import random

import pytest

from webinfer.plan import arena
from webinfer.plan.blocks import Block, Kind


def blocks_of(spec: list[tuple[int, int, int]]) -> list[Block]:
    """Blocks from (bytes, first step, last step)."""
    return [Block(f"b{i}", nbytes, Kind.ARENA, first, last) for i, (nbytes, first, last) in enumerate(spec)]


def overlaps(blocks: list[Block]) -> list[tuple[str, str]]:
    """Pairs that live at the same time and share bytes."""
    return [
        (a.name, b.name)
        for i, a in enumerate(blocks)
        for b in blocks[i + 1 :]
        if a.first <= b.last and b.first <= a.last and a.address < b.address + b.span and b.address < a.address + a.span
    ]


def test_blocks_that_never_meet_share_bytes() -> None:
    blocks = blocks_of([(1000, 0, 1), (1000, 2, 3)])
    assert arena.assign(blocks) == blocks[0].span
    assert blocks[0].address == blocks[1].address == 0


def test_blocks_that_meet_in_one_step_do_not_share() -> None:
    blocks = blocks_of([(1000, 0, 2), (1000, 2, 3)])
    arena.assign(blocks)
    assert overlaps(blocks) == []


def test_a_small_block_goes_into_the_smallest_gap() -> None:
    blocks = blocks_of([(4000, 0, 9), (2000, 0, 4), (1000, 5, 9), (900, 5, 9)])
    assert arena.assign(blocks) == arena.lower_bound(blocks)


@pytest.mark.parametrize("count", [50, 400, 2600])
def test_random_lifetimes_never_overlap_and_stay_near_the_bound(count: int) -> None:
    draw = random.Random(count)
    spec = [(draw.randrange(1, 5000), step, step + draw.choice([1, 1, 1, 2, 9])) for step in range(count)]
    blocks = blocks_of(spec)
    total = arena.assign(blocks)
    assert overlaps(blocks) == []
    assert all(b.address % 16 == 0 and b.address + b.span <= total for b in blocks)
    assert arena.lower_bound(blocks) <= total <= 1.6 * arena.lower_bound(blocks)


def test_no_blocks_need_no_bytes() -> None:
    assert arena.assign([]) == arena.lower_bound([]) == 0


def test_few_blocks_are_packed_as_tight_as_any_order_allows() -> None:
    spec = [(64, 0, 1), (128, 1, 2), (192, 2, 3), (64, 0, 3)]
    blocks = blocks_of(spec)
    assert arena.assign(blocks) == arena.lower_bound(blocks)
    assert overlaps(blocks) == []


def test_what_many_blocks_leave_free_is_joined() -> None:
    """More blocks than the quadratic planner takes: two neighbours that end make room for one of their size."""
    later = [(16, 10 + i, 10 + i) for i in range(arena.GREEDY_LIMIT)]
    blocks = blocks_of([(48, 0, 0), (48, 0, 1), (48, 0, 9), (112, 2, 9), *later])
    assert arena.assign(blocks) == 192
    assert blocks[3].address == 0


def test_blocks_of_the_busiest_step_are_placed_first_where_that_is_tightest() -> None:
    blocks = blocks_of([(176, 1, 4), (176, 4, 5), (240, 0, 2), (176, 4, 5)])
    assert arena.assign(blocks) == arena.lower_bound(blocks)
    assert overlaps(blocks) == []
