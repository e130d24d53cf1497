"""Products of many rows with weights in blocks: every tile is right, and a GPU with many cores gets the larger ones."""

from __future__ import annotations

import numpy as np
import pytest
from tests.language.decoder_reference import ReferenceDecoder
from tests.language.test_language import MODEL
from tests.ops.case_graphs import difference, outcomes, problem, run
from tests.ops.targets import Target as RingTarget
from tests.webgpu.devices import HARDWARE, LIMITS

from webinfer.backends import webgpu
from webinfer.backends.webgpu.dispatch import Target
from webinfer.backends.webgpu.language import products
from webinfer.backends.webgpu.language.products import LARGE, MIDDLE, SHARED, SMALL, SMALL_GATED, TILES, Tile, tile_of
from webinfer.host.native import NativeHost
from webinfer.language.generator import TextGenerator
from webinfer.ops import OPS

OP = OPS["block_matmul"]
CASE = next(
    case for case in OP.cases if case.label == "Q4_1, 9 by 9 by 1824, bias and residual"
)  # its parts are unequal


def _give(tile: Tile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "tile_of", lambda rows, columns, gated, target: tile.within(target))


@pytest.mark.parametrize("tile", TILES, ids=str)
def test_every_tile_is_right_where_it_is_not_full(tile: Tile, monkeypatch: pytest.MonkeyPatch) -> None:
    RingTarget("webgpu").demand()
    _give(tile, monkeypatch)
    p = problem(OP, CASE)
    ((got,),) = run(outcomes(webgpu, NativeHost(), [p], {}))
    assert not difference(got, p.want[0], p)


def test_a_prompt_of_several_tiles_is_read_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several rows of tiles, three products side by side, and the two of a SwiGLU in one tile."""
    RingTarget("webgpu").demand()
    _give(SHARED, monkeypatch)
    generator = run(TextGenerator.create(MODEL, backend="webgpu"))
    tokens = generator.tokenize("hello ab " * 20)[:75]
    got = np.array(run(generator.conversation().logits(tokens)).numpy())[0]
    want = ReferenceDecoder(MODEL).logits(tokens)[-1]
    assert np.abs(got - want).max() < 1e-3 * np.ptp(want)
    generator.close()


@pytest.mark.parametrize(
    ("rows", "columns", "gated", "want"),
    [
        (512, 3072, True, LARGE), (512, 960, False, SHARED), (238, 960, False, MIDDLE), (64, 960, False, SMALL),
        (238, 3072, True, LARGE), (64, 3072, True, SMALL_GATED),
    ],
)  # fmt: skip
def test_the_largest_tile_is_taken_that_keeps_the_device_busy(rows: int, columns: int, gated: bool, want: Tile) -> None:
    roomy = {**LIMITS, "maxComputeWorkgroupStorageSize": 49152, "maxComputeInvocationsPerWorkgroup": 1024}
    assert tile_of(rows, columns, gated, Target(roomy)) == want


def test_a_device_with_little_memory_gets_fewer_parts() -> None:
    assert HARDWARE.limit("maxComputeWorkgroupStorageSize") >= 16384
    least = Target({**LIMITS, "maxComputeWorkgroupStorageSize": 16384, "maxComputeInvocationsPerWorkgroup": 256})
    assert tile_of(512, 960, False, least).parts == 2
    assert tile_of(64, 960, False, least).parts == 2
