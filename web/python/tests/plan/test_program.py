import struct
from dataclasses import dataclass

import pytest

from webinfer.errors import KernelError
from webinfer.plan import program
from webinfer.plan.blocks import Block, Kind, Ref, Step


@dataclass(frozen=True)
class FakeKernel:
    id: int
    args: tuple[str, ...]
    split: bool = False


KERNELS = {"move": FakeKernel(3, ("ptr", "i32", "f32")), "rows": FakeKernel(5, ("ptr",), True)}


def placed(address: int) -> Ref:
    block = Block("b", 64, Kind.ARENA)
    block.address = address
    return Ref(block, 16)


def test_a_program_is_a_header_and_records() -> None:
    data = program.encode([Step("move", (placed(4096), -7, 0.5), 0, 0), Step("rows", (0,), 12, 1)], KERNELS)
    assert struct.unpack("<4I", data[:16]) == (program.MAGIC, program.VERSION, 2, len(data) // 4)
    assert struct.unpack("<3IIif", data[16:40]) == (3, 6, 0, 4112, -7, 0.5)
    assert struct.unpack("<4I", data[40:]) == (5, 4, 12, 0)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (Step("unknown", (), 0, 0), "not in this build"),
        (Step("move", (0, 1), 0, 0), "2 arguments given, 3 needed"),
        (Step("move", (0, 1, 0.5), 4, 0), "cannot be split"),
        (Step("rows", (0,), 0, 0), "is split"),
        (Step("rows", (77,), 1, 0), "where an address belongs"),
    ],
)
def test_a_step_that_does_not_fit_its_kernel_is_refused(step: Step, message: str) -> None:
    with pytest.raises(KernelError, match=message):
        program.encode([step], KERNELS)


def test_a_block_without_an_address_is_refused() -> None:
    with pytest.raises(ValueError, match="has no address"):
        program.encode([Step("rows", (Ref(Block("b", 4, Kind.ARENA)),), 1, 0)], KERNELS)
