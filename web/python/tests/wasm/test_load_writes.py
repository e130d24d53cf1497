"""Constants that lie side by side are written by one call: a page pays for each."""

import pytest

from webinfer.backends.wasm.load_steps import in_runs
from webinfer.plan.blocks import Block, Kind

SIZES = (5, 16, 0, 400, 3, 64, 7)
LEFT_OUT = 3  # steps of the load write this one


def _sources(apart: int) -> dict[Block, memoryview | None]:
    """Blocks one behind the other, each with bytes of its own; a page apart from the one of number `apart` on."""
    sources, address = dict[Block, memoryview | None](), 1024
    for number, nbytes in enumerate(SIZES):
        address += 4096 if number == apart else 0
        data = memoryview(bytes([number + 1]) * nbytes)
        block = Block(str(number), nbytes, Kind.CONSTANT, address=address)
        sources[block] = None if number == LEFT_OUT else data
        address += block.span
    return sources


@pytest.mark.parametrize(("most", "apart", "calls"), [(64, 99, 2), (64, 5, 3), (15, 99, 5), (0, 99, 5)])
def test_every_block_gets_its_bytes_in_few_calls(most: int, apart: int, calls: int) -> None:
    sources, memory, made, done = _sources(apart), bytearray(b"\xa5" * 16384), 0, 0
    for address, data, nbytes in in_runs(sources, most):
        whole = b"".join(data) if isinstance(data, list) else bytes(data)
        memory[address : address + len(whole)] = whole
        made, done = made + 1, done + nbytes
    assert made == calls
    assert done == sum(SIZES)
    for block, data in sources.items():
        want = b"\xa5" * block.nbytes if data is None else data
        assert memory[block.address : block.address + block.nbytes] == want, block.name
