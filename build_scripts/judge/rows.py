"""A row of the verb `judge tasks`, and how far two texts are apart."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One task on one sample: how many things each of us found, and how far apart they are."""

    task: str
    sample: str
    ours: int
    judge: int
    distance: str  # with its unit
    right: bool


def edits(one: str, other: str) -> int:
    """Letters to put in, take out or change to make one text of the other."""
    before = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        row = [i]
        for j, b in enumerate(other, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (a != b)))
        before = row
    return before[-1]
