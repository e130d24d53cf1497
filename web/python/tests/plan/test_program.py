import struct

import pytest

from webinfer.errors import KernelError
from webinfer.kernel_constants import PROGRAM_MAGIC, PROGRAM_VERSION
from webinfer.plan import program
from webinfer.plan.blocks import Argument, Block, Kind, Ref, Step
from webinfer.plan.program import Arrangement, Kernel

MOVE = Kernel("move", 3, Arrangement(y="ptr", n="i32", lo="f32"), split=False)
ROWS = Kernel("rows", 5, Arrangement(y="ptr"), split=True)
KERNELS = {kernel.name: kernel for kernel in (MOVE, ROWS)}


def placed(address: int) -> Ref:
    block = Block("b", 64, Kind.ARENA)
    block.address = address
    return Ref(block, 16)


def test_a_program_is_a_header_and_records() -> None:
    steps = [Step("move", (placed(4096), -7, 0.5), 0, 0), Step("rows", (None,), 12, 1, 4)]
    data = program.encode(steps, KERNELS)
    assert struct.unpack("<4I", data[:16]) == (PROGRAM_MAGIC, PROGRAM_VERSION, 2, len(data) // 4)
    assert len(data) == program.nbytes(steps)
    assert struct.unpack("<5Iif", data[16:44]) == (3, 7, 0, 1, 4112, -7, 0.5)
    assert struct.unpack("<5I", data[44:]) == (5, 5, 12, 4, 0)


def test_arguments_come_in_the_order_of_the_list() -> None:
    ref = placed(4096)
    assert MOVE.arranged({"lo": 0.5, "y": ref, "n": -7}, 0) == (ref, -7, 0.5)
    assert MOVE.arranged({"y": None, "n": 1, "lo": 2}, 0) == (None, 1, 2)


@pytest.mark.parametrize(
    ("kernel", "given", "units", "message"),
    [
        (MOVE, {"y": None, "lo": 0.5}, 0, "kernel move: argument 'n' is missing"),
        (MOVE, {"y": None, "n": 1, "lo": 0.5, "hi": 1.0}, 0, "kernel move: there is no argument 'hi'"),
        (MOVE, {"y": None, "n": 1.0, "lo": 0.5}, 0, "argument 'n' is 1.0 .float., must be of kind i32"),
        (MOVE, {"y": None, "n": 1, "lo": placed(64)}, 0, "argument 'lo'"),
        (MOVE, {"y": 77, "n": 1, "lo": 0.5}, 0, "argument 'y' is 77 .int., must be of kind ptr"),
        (MOVE, {"y": None, "n": True, "lo": 0.5}, 0, "argument 'n'"),
        (MOVE, {"y": None, "n": 1, "lo": 0.5}, 4, "cannot be split"),
        (ROWS, {"y": None}, 0, "is split"),
    ],
)
def test_a_step_that_does_not_fit_its_kernel_is_refused(
    kernel: Kernel, given: dict[str, Argument], units: int, message: str
) -> None:
    with pytest.raises(KernelError, match=message):
        kernel.arranged(given, units)


def test_a_block_without_an_address_is_refused() -> None:
    with pytest.raises(ValueError, match="has no address"):
        program.encode([Step("rows", (Ref(Block("b", 4, Kind.ARENA)),), 1, 0)], KERNELS)
