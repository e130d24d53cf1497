"""The binary form of a plan: little-endian 32-bit words that the kernel module walks.

Header: magic, version, records, words. Record: kernel id, words of this record, units, arguments.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Protocol

from webinfer.errors import KernelError
from webinfer.plan.blocks import Ref, Step

MAGIC = 0x57495031
VERSION = 1


class Signature(Protocol):
    """What the program needs to know of a kernel."""

    @property
    def id(self) -> int: ...
    @property
    def args(self) -> tuple[str, ...]: ...
    @property
    def split(self) -> bool: ...


def encode(steps: Sequence[Step], kernels: Mapping[str, Signature]) -> bytes:
    """The program's bytes; every block must have its address.

    Raises:  KernelError if a step does not fit its kernel's signature.
    """
    records = [_record(step, kernels) for step in steps]
    words = 4 + sum(len(record) // 4 for record in records)
    return struct.pack("<4I", MAGIC, VERSION, len(records), words) + b"".join(records)


def _record(step: Step, kernels: Mapping[str, Signature]) -> bytes:
    kernel = kernels.get(step.kernel)
    if kernel is None:
        raise KernelError(f"kernel {step.kernel!r} is not in this build of the kernel module; rebuild the kernels")
    if len(step.args) != len(kernel.args):
        raise KernelError(f"kernel {step.kernel}: {len(step.args)} arguments given, {len(kernel.args)} needed")
    if step.units and not kernel.split:
        raise KernelError(f"kernel {step.kernel} cannot be split, {step.units} units were given")
    if kernel.split and step.units < 1:
        raise KernelError(f"kernel {step.kernel} is split: give its units, at least 1")
    out = bytearray(struct.pack("<3I", kernel.id, 3 + len(step.args), step.units))
    for kind, value in zip(kernel.args, step.args, strict=True):
        if kind == "ptr":
            out += struct.pack("<I", value.address if isinstance(value, Ref) else _null(step, value))
        elif kind == "i32":
            out += struct.pack("<i", value)
        else:
            out += struct.pack("<f", value)
    return bytes(out)


def _null(step: Step, value: object) -> int:
    if value != 0:
        raise KernelError(f"kernel {step.kernel}: {value!r} stands where an address belongs")
    return 0
