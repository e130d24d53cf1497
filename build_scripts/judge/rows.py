"""A row of the verb `judge tasks`."""

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
