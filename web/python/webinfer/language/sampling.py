"""Sampling of tokens, and stop strings."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import field

from webinfer.errors import InputError
from webinfer.lazy_dataclass import dataclass
from webinfer.session.options import real_number, whole_number

MAX_VOCABULARY = 1 << 20
MAX_STOPS = 16


@dataclass(frozen=True, slots=True)
class Sampling:
    """Greedy decoding at temperature 0; otherwise tokens are sampled with weights exp(logit / temperature).

    Candidates are the `top_k` most likely tokens (0: all), cut to the smallest set with probability `top_p`. The same
    seed gives the same text.

    Raises:  InputError if an option is out of range
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int | None = None
    _random: random.Random = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        real_number("temperature", self.temperature, 100)
        real_number("top_p", self.top_p, 1)
        whole_number("top_k", self.top_k, 0, MAX_VOCABULARY)
        if self.seed is not None and not isinstance(self.seed, int):
            raise InputError(f"seed={self.seed!r}: needs a whole number")
        object.__setattr__(self, "_random", random.Random(self.seed))

    def options(self) -> bytes:
        """The plan's sampling options for the next token, with a new random number."""
        return struct.pack("<4f", self.temperature, self.top_k, self.top_p, self._random.random())


class Stop:
    """Passes text on until a stop string appears; text that may be the start of one is held back.

    Raises:  InputError if a stop string is empty or not a string
    """

    def __init__(self, stops: str | Sequence[str] = ()) -> None:
        self._stops = (stops,) if isinstance(stops, str) else tuple(stops)
        if len(self._stops) > MAX_STOPS or not all(isinstance(s, str) and s for s in self._stops):
            raise InputError(f"stop={stops!r}: needs a text, or up to {MAX_STOPS} of them, none empty")
        self._waiting, self.reached = "", False

    def take(self, text: str, last: bool = False) -> str:
        """The part of the text so far that can be passed on; with `last` nothing is held back."""
        self._waiting += text
        found = [at for stop in self._stops if (at := self._waiting.find(stop)) >= 0]
        if found:
            self.reached = True
            free = min(found)
        else:
            free = len(self._waiting) - (0 if last else self._beginnings())
        passed, self._waiting = self._waiting[:free], self._waiting[free:]
        return passed

    def _beginnings(self) -> int:
        """Length of the longest end of the text that is the start of a stop string."""
        text = self._waiting
        return max((n for stop in self._stops for n in range(1, len(stop)) if text.endswith(stop[:n])), default=0)
