"""What a model needs and webinfer lacks: everything is collected, then raised as one error."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from webinfer.errors import UnsupportedOpError


class Refusal(Exception):
    """A converter cannot say this operator in the graph; `reasons` says why."""

    def __init__(self, *reasons: str) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = reasons


class Problems:
    """What is not supported, each thing once, with the numbers of the operators that need it.

    The results of an operator that could not be converted are guesses. Whatever reads them may fail for that
    reason alone, so it is not judged. Graphs that see each other's values share what is `guessed`.
    """

    def __init__(self, guessed: set[int | str] | None = None) -> None:
        self._found: dict[str, list[int]] = {}
        self._guessed: set[int | str] = set() if guessed is None else guessed  # keys of values

    def add(self, what: str, operator: int | None = None) -> None:
        """Notes one thing that is not supported, and the operator that needs it."""
        self._found.setdefault(what, []).extend(() if operator is None else (operator,))

    def guess(self, keys: Iterable[int | str]) -> None:
        """Marks the values under these keys as guesses."""
        self._guessed.update(keys)

    def guessed(self, keys: Collection[int | str]) -> bool:
        """Whether one of these values is a guess."""
        return not self._guessed.isdisjoint(keys)

    def lines(self) -> list[str]:
        """A line for each thing."""
        return [what + _places(operators) for what, operators in self._found.items()]

    def check(self) -> None:
        """Nothing, if all is supported.

        Raises:  UnsupportedOpError listing everything that is not
        """
        if self._found:
            raise UnsupportedOpError(self.lines(), operators={n for found in self._found.values() for n in found})


def _places(operators: list[int]) -> str:
    if not operators:
        return ""
    more = f" and {len(operators) - 5} more" if len(operators) > 5 else ""
    return f" (operator{'s' if len(operators) > 1 else ''} {', '.join(map(str, operators[:5]))}{more})"
