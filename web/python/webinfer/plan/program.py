"""The binary form of a plan: little-endian 32-bit words that the kernel module walks.

Header: magic, version, records, words. Record: kernel id, words of this record, units, arguments.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from webinfer.errors import KernelError
from webinfer.plan.blocks import Argument, Ref, Step
from webinfer.plan.kernel_constants import (
    PROGRAM_HEADER_WORDS,
    PROGRAM_MAGIC,
    PROGRAM_RECORD_WORDS,
    PROGRAM_VERSION,
)

_TYPES: dict[str, tuple[type, ...]] = {"ptr": (Ref, type(None)), "i32": (int,), "f32": (float, int)}
_LETTERS = {"ptr": "I", "i32": "i", "f32": "f"}


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel's signature: argument → "ptr", "i32" or "f32", in order.

    `split` tells whether threads can share a step of it.
    """

    name: str
    id: int
    args: Mapping[str, str]
    split: bool
    _fitting: set[tuple[type, ...]] = field(default_factory=set, repr=False, compare=False)

    def arranged(self, given: Mapping[str, Argument], units: int) -> tuple[Argument, ...]:
        """The named arguments in the kernel's order.

        Raises:  KernelError naming kernel and argument if one is missing, unknown or of the wrong kind, or if the
                 units do not fit
        """
        try:
            values = tuple([given[name] for name in self.args])
        except KeyError as error:
            raise KernelError(f"kernel {self.name}: argument {error.args[0]!r} is missing") from None
        if len(given) != len(values):
            unknown = next(name for name in given if name not in self.args)
            raise KernelError(f"kernel {self.name} has no argument {unknown!r}; it has {', '.join(self.args)}")
        types = tuple(map(type, values))
        if types not in self._fitting:  # few combinations occur, and a step is checked at the price of a look-up
            self._check_kinds(values)
            self._fitting.add(types)
        if (units > 0) is not self.split:
            needs = "is split: give its units, at least 1" if self.split else "cannot be split: give no units"
            raise KernelError(f"kernel {self.name} {needs}; {units} were given")
        return values

    def _check_kinds(self, values: Sequence[Argument]) -> None:
        for (name, kind), value in zip(self.args.items(), values, strict=True):
            if type(value) not in _TYPES[kind]:
                found = f"{value!r} ({type(value).__name__})"
                raise KernelError(f"kernel {self.name}: argument {name!r} is {found}, must be of kind {kind}")


def nbytes(steps: Sequence[Step]) -> int:
    """Bytes of the steps' program."""
    return 4 * (PROGRAM_HEADER_WORDS + sum(PROGRAM_RECORD_WORDS + len(step.args) for step in steps))


def encode(steps: Sequence[Step], kernels: Mapping[str, Kernel]) -> bytes:
    """The program's bytes; every block must have its address."""
    header = struct.pack("<4I", PROGRAM_MAGIC, PROGRAM_VERSION, len(steps), nbytes(steps) // 4)
    return header + b"".join(_record(step, kernels[step.kernel]) for step in steps)


def _record(step: Step, kernel: Kernel) -> bytes:
    words = [value.address if isinstance(value, Ref) else value or 0 for value in step.args]
    layout = "<3I" + "".join(map(_LETTERS.__getitem__, kernel.args.values()))
    return struct.pack(layout, kernel.id, PROGRAM_RECORD_WORDS + len(words), step.units, *words)
