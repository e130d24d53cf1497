"""Column panels of dense weights, from every layout that files have."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ops.targets import BUILDS, Target
from tests.wasm.memory import Array, Memory

from webinfer.backends.wasm.lowerings.conv import TILES, panel_columns, tile_work, tiles_of, tiles_of_one_layout

# the order of axes: group, output, tap, channel
LAYOUTS = {"outputs first": "gotc", "channels first": "goct", "outputs side by side": "gtco"}
# groups, outputs, taps, channels
SIZES = [(1, 8, 1, 12), (1, 16, 9, 4), (2, 13, 6, 7), (1, 5, 4, 8), (3, 4, 1, 5), (1, 33, 1, 64)]


def _expected(w: Array, bias: Array, columns: int) -> Array:
    """The panels of weights [group, output, tap, channel]."""
    groups, co, taps, ci = w.shape
    count = -(-co // columns)
    wide = np.zeros((groups, count * columns, 1 + taps * ci), np.float32)
    wide[:, :co, 0], wide[:, :co, 1:] = bias.reshape(groups, co), w.reshape(groups, co, -1)
    panels = wide.reshape(groups * count, columns, -1)
    if columns > 3:
        return panels.transpose(0, 2, 1).ravel()
    deep = panels[:, :, 1:].reshape(len(panels), columns, -1, 4).transpose(0, 2, 1, 3)
    return np.concatenate([panels[:, :, 0], deep.reshape(len(panels), -1)], 1).ravel()


@pytest.mark.parametrize("target", BUILDS, ids=str)
@pytest.mark.parametrize("columns", [8, 4, 3, 1])
@pytest.mark.parametrize("stored", [np.float32, np.float16])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_panels_hold_the_weights_of_any_layout(layout: str, stored: type, columns: int, target: Target) -> None:
    target.demand()
    rng, order = np.random.default_rng(5), LAYOUTS[layout]
    for shape in SIZES:
        groups, co, taps, ci = shape
        if columns < 4 and taps * ci % 4:
            continue
        w, bias = rng.normal(size=shape).astype(stored), rng.normal(size=groups * co).astype(np.float32)
        file = np.ascontiguousarray(w.transpose(["gotc".index(axis) for axis in order]))
        step = {axis: n // file.itemsize for axis, n in zip(order, file.strides, strict=True)}
        memory, want = Memory(str(dict(target.options)["isa"])), _expected(w.astype(np.float32), bias, columns)
        places, to = (memory.put(file), memory.put(bias)), memory.room(want.nbytes)
        args = (co, taps, ci, columns, step["g"], step["o"], 1, 0, step["t"], step["c"], groups * co)
        units = groups * -(-co // columns)
        for part in ((units // 2, units), (0, units // 2)):
            memory.kernels.call("f32_pack_conv_weights", *places, to, *args, int(stored is np.float16), *part)
        np.testing.assert_array_equal(memory.get(to, np.empty_like(want)), want, err_msg=str(shape))


def test_the_layout_of_weights_is_of_their_outputs_alone() -> None:
    for isa in ("relaxed", "simd128", "scalar"):
        for co in range(1, 80):
            tiles = tiles_of_one_layout(tiles_of(isa), co)
            assert tiles
            assert len({panel_columns(tile) for tile in tiles}) == 1


def test_few_rows_take_wide_tiles_that_read_several_panels() -> None:
    tiles = tiles_of_one_layout(TILES, 384)
    chosen = {rows: min(tiles, key=lambda t: tile_work(t, tiles[t], rows, 384)) for rows in (1, 2, 6, 1000)}
    assert chosen == {1: "1x32", 2: "2x16", 6: "6x8", 1000: "6x8"}
