"""The binary form of a plan: little-endian 32-bit words that the kernel module walks.

Header: magic, version, records, words. Record: kernel id, words of this record, units, shares, arguments.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter

from webinfer.errors import KernelError
from webinfer.graph.dims import Size
from webinfer.kernel_constants import (
    PROGRAM_HEADER_WORDS,
    PROGRAM_MAGIC,
    PROGRAM_RECORD_WORDS,
    PROGRAM_VERSION,
)
from webinfer.lazy_dataclass import dataclass
from webinfer.plan.blocks import Argument, Ref, Step

_TYPES: dict[str, tuple[type, ...]] = {"ptr": (Ref, type(None)), "i32": (int, Size), "f32": (float, int, Size)}
_LETTERS = {"ptr": "I", "i32": "i", "f32": "f"}


Writes = Callable[
    [Sequence[Argument], int, Callable[[Ref, int], int]], Sequence[tuple[Argument, int]]
]  # arguments, units, reach of a nest → pointer and bytes


class Arrangement:
    """The arguments of one or several kernels: name → "ptr", "i32" or "f32", in order."""

    __slots__ = ("_fitting", "_pick", "kinds", "layout", "pointers")

    def __init__(self, **kinds: str) -> None:
        self.kinds = kinds
        self.pointers = tuple(i for i, kind in enumerate(kinds.values()) if kind == "ptr")
        self.layout = "<2I2i" + "".join(map(_LETTERS.__getitem__, kinds.values()))  # of a record
        self._pick = itemgetter(*kinds, *list(kinds)[:1])  # the first comes twice: a tuple even where it is alone
        self._fitting: set[tuple[type, ...]] = set()

    def arranged(self, given: Mapping[str, Argument]) -> tuple[Argument, ...]:
        """The named arguments in order.

        Raises:  ValueError naming an argument that is missing, unknown or of the wrong kind
        """
        try:
            values: tuple[Argument, ...] = self._pick(given)[:-1]
        except KeyError as error:
            raise ValueError(f"argument {error.args[0]!r} is missing") from None
        if len(given) != len(values):
            unknown = next(name for name in given if name not in self.kinds)
            raise ValueError(f"there is no argument {unknown!r}; there are {', '.join(self.kinds)}")
        types = tuple(map(type, values))
        if types not in self._fitting:  # few combinations occur, so that a check costs a look-up
            for (name, kind), value in zip(self.kinds.items(), values, strict=True):
                if type(value) not in _TYPES[kind]:
                    found = f"{value!r} ({type(value).__name__})"
                    raise ValueError(f"argument {name!r} is {found}, must be of kind {kind}")
            self._fitting.add(types)
        return values


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel's signature; `split` tells whether threads can share a step of it.

    `writes` makes, of arguments and units, the pointers that are written through and how many bytes from there; None
    where kernels.toml does not say it. Its third argument tells how many elements of an operand a loop nest reaches.
    """

    name: str
    id: int
    arrangement: Arrangement
    split: bool
    writes: Writes | None = None

    @property
    def args(self) -> Mapping[str, str]:
        """Argument → "ptr", "i32" or "f32", in order."""
        return self.arrangement.kinds

    def arranged(self, given: Mapping[str, Argument], units: int) -> tuple[Argument, ...]:
        """The named arguments in the kernel's order.

        Raises:  KernelError naming kernel and argument if one is missing, unknown or of the wrong kind, or if the
                 units do not fit
        """
        if (units > 0) is not self.split:
            needs = "is split: give its units, at least 1" if self.split else "cannot be split: give no units"
            raise KernelError(f"kernel {self.name} {needs}; {units} were given")
        try:
            return self.arrangement.arranged(given)
        except ValueError as error:
            raise KernelError(f"kernel {self.name}: {error}") from None


def nbytes(steps: Sequence[Step]) -> int:
    """Bytes of the steps' program."""
    return 4 * (PROGRAM_HEADER_WORDS + sum(PROGRAM_RECORD_WORDS + len(step.args) for step in steps))


def encode(steps: Sequence[Step], kernels: Mapping[str, Kernel]) -> bytes:
    """The program's bytes; every block must have its address."""
    return assemble([_record(step, kernels[step.kernel]) for step in steps])


def assemble(records: Sequence[bytes]) -> bytes:
    """The program of these records."""
    words = PROGRAM_HEADER_WORDS + sum(map(len, records)) // 4
    return struct.pack("<4I", PROGRAM_MAGIC, PROGRAM_VERSION, len(records), words) + b"".join(records)


def records(program: bytes) -> list[bytes]:
    """The records of a program, in order."""
    found, at = [], 4 * PROGRAM_HEADER_WORDS
    for _ in range(struct.unpack_from("<I", program, 8)[0]):
        end = at + 4 * int(struct.unpack_from("<I", program, at + 4)[0])
        found.append(program[at:end])
        at = end
    return found


def moved(text: bytes, by: int, kernels: Mapping[str, Kernel]) -> bytes:
    """A program whose operands all lie so many bytes further on; addresses that are left out stay so."""
    words, pointers = array("I", text), {kernel.id: kernel.arrangement.pointers for kernel in kernels.values()}
    at = PROGRAM_HEADER_WORDS
    for _ in range(words[2]):
        for number in pointers[words[at]]:
            place = at + PROGRAM_RECORD_WORDS + number
            if words[place]:
                words[place] += by
        at += words[at + 1]
    return words.tobytes()


def _record(step: Step, kernel: Kernel) -> bytes:
    words = [value.address if isinstance(value, Ref) else value or 0 for value in step.args]
    head = kernel.id, PROGRAM_RECORD_WORDS + len(words), step.units, step.shares
    return struct.pack(kernel.arrangement.layout, *head, *words)
