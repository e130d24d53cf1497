"""Every register tile at odd sizes: right results, and nothing written outside them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from tests.ops.targets import BUILDS, Target
from tests.wasm.memory import Array, Memory

from webinfer import kernel_constants as numbers
from webinfer.backends.wasm.lowerings.conv import DEEP_TILES, IMAGES, TILES, WINDOWS, panel_columns, tile_work

ACTIVATIONS = {
    "clamp": numbers.ACTIVATION_CLAMP, "relu": numbers.ACTIVATION_CLAMP, "none": numbers.ACTIVATION_CLAMP,
    "prelu": numbers.ACTIVATION_PRELU, "hard_swish": numbers.ACTIVATION_HARD_SWISH,
    "sigmoid": numbers.ACTIVATION_SIGMOID, "silu": numbers.ACTIVATION_SILU, "tanh": numbers.ACTIVATION_TANH,
}  # fmt: skip
BOUNDS = {"relu": (0.0, np.inf), "none": (-np.inf, np.inf), "prelu": (-np.inf, 1.0)}
THREADS = 3


@dataclass(frozen=True)
class Conv:
    """One convolution; ci and co are those of one group."""

    n: int = 1
    size: tuple[int, int] = (5, 6)
    ci: int = 8
    co: int = 12
    window: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    activation: str = "clamp"
    residual: int = 0
    bias: bool = True
    stored: type = np.float32

    @property
    def out(self) -> tuple[int, int]:
        spans = [s + a + b for s, a, b in zip(self.size, self.pads[::2], self.pads[1::2], strict=True)]
        reach = [(k - 1) * d + 1 for k, d in zip(self.window, self.dilation, strict=True)]
        return tuple((s - r) // t + 1 for s, r, t in zip(spans, reach, self.stride, strict=True))  # type: ignore[return-value]


@dataclass(frozen=True)
class Arrays:
    x: Array
    w: Array
    bias: Array
    residual: Array
    slope: Array


@cache
def draw(case: Conv) -> Arrays:
    """The arrays of a case: the same for every tile and build."""
    rng = np.random.default_rng(7)
    channels = case.groups * case.co

    def normal(*shape: int) -> Array:
        return rng.normal(size=shape).astype(np.float32)

    w = normal(channels, *case.window, case.ci).astype(case.stored)
    x = normal(case.n, *case.size, case.groups * case.ci)
    return Arrays(x, w, normal(channels), normal(case.n, *case.out, case.residual), normal(channels))


@cache
def expected(case: Conv) -> Array:
    """The convolution in float64, tap by tap."""
    a = draw(case)
    (oh, ow), (sh, sw), (dh, dw) = case.out, case.stride, case.dilation
    x = np.pad(a.x.astype(np.float64), ((0, 0), case.pads[:2], case.pads[2:], (0, 0)))
    y = np.zeros((case.n, oh, ow, case.groups * case.co))
    for ky, kx in np.ndindex(case.window):
        pixels = x[:, ky * dh :: sh, kx * dw :: sw][:, :oh, :ow]
        for g in range(case.groups):
            inputs, outputs = slice(g * case.ci, (g + 1) * case.ci), slice(g * case.co, (g + 1) * case.co)
            y[..., outputs] += pixels[..., inputs] @ a.w[outputs, ky, kx].T.astype(np.float64)
    return activated(case, y + (a.bias if case.bias else 0), a)


def activated(case: Conv, y: Array, a: Arrays) -> Array:
    y[..., : case.residual] += a.residual
    return {
        "clamp": lambda: np.clip(y, -0.5, 1.0),
        "relu": lambda: np.maximum(y, 0),
        "none": lambda: y,
        "prelu": lambda: np.where(y < 0, y * a.slope, y),
        "hard_swish": lambda: y * np.clip(y + 3, 0, 6) / 6,
        "sigmoid": lambda: 1 / (1 + np.exp(-y)),
        "tanh": lambda: np.tanh(y),
        "silu": lambda: y / (1 + np.exp(-y)),
    }[case.activation]()


def tail(case: Conv, memory: Memory, a: Arrays) -> tuple[int | float, ...]:
    """The arguments that end every convolution."""
    residual = memory.put(a.residual) if case.residual else 0
    slope = memory.put(a.slope) if case.activation == "prelu" else 0
    return residual, case.residual, slope, ACTIVATIONS[case.activation], *BOUNDS.get(case.activation, (-0.5, 1.0))


def shares(units: int) -> list[tuple[int, int]]:
    """Begin and end of each thread's part, the last one first."""
    return [(units * t // THREADS, units * (t + 1) // THREADS) for t in reversed(range(THREADS))]


def dense(isa: str, tile: str, case: Conv, a: Arrays) -> Array:
    """What pack and tile make of the arrays, in three parts."""
    memory, image = Memory(isa), tile.startswith("image")
    rows, width = (1, numbers.IMAGE_TILE_COLUMNS) if image else map(int, tile.split("x"))
    columns = numbers.IMAGE_TILE_COLUMNS if image else panel_columns(tile)
    panels, depth = -(-case.co // columns), a.w[0].size
    packed = memory.room(4 * case.groups * panels * columns * (1 + depth))
    w, bias = memory.put(a.w), memory.put(a.bias) if case.bias else 0
    sizes = (case.co, depth // case.ci, case.ci, columns, case.co * depth, depth, 1, 0, case.ci, 1)
    pack = (*sizes, case.groups * case.co)
    for part in shares(case.groups * panels):
        memory.kernels.call("f32_pack_conv_weights", w, bias, packed, *pack, int(case.stored is np.float16), *part)
    memory.get(packed, np.empty(case.groups * panels * columns * (1 + depth), np.float32))
    y = np.empty((case.n, *case.out, case.groups * case.co), np.float32)
    x, target, total = memory.put(a.x), memory.room(y.nbytes), case.groups * case.co
    sizes = (case.n, *case.size, case.ci, case.groups * case.ci, *case.out, case.co, total)
    args = (*sizes, *case.window, *case.stride, *case.dilation, case.pads[0], case.pads[2], *tail(case, memory, a))
    pixels = case.n * case.out[0] * case.out[1]
    for part in shares(case.n * case.out[0] if image else case.groups * -(-case.co // width) * -(-pixels // rows)):
        memory.kernels.call(f"f32_conv2d_nhwc_{tile}", x, packed, target, *args, *part)
    return memory.get(target, y)


def depthwise(isa: str, kernel: str, case: Conv, a: Arrays) -> Array:
    """What pack and depthwise kernel make of the arrays, in three parts; one group is one channel."""
    memory, c = Memory(isa), case.groups
    taps, blocks = case.window[0] * case.window[1], -(-c // 4)
    packed = memory.room(16 * blocks * (1 + taps))
    w, bias = memory.put(a.w), memory.put(a.bias) if case.bias else 0
    for part in shares(blocks):
        stored_f16 = int(case.stored is np.float16)
        memory.kernels.call("f32_pack_depthwise_weights", w, bias, packed, c, taps, 1, taps, stored_f16, *part)
    memory.get(packed, np.empty(4 * blocks * (1 + taps), np.float32))
    y = np.empty((case.n, *case.out, c), np.float32)
    x, target = memory.put(a.x), memory.room(y.nbytes)
    sizes = (case.n, *case.size, c, c, *case.out, c)
    args = (*sizes, *case.window, *case.stride, *case.dilation, case.pads[0], case.pads[2], *tail(case, memory, a))
    after = (0, 1.0) if kernel != "f32_depthwise_nhwc" else ()  # no sum follows
    for part in shares(case.n * case.out[0]):
        memory.kernels.call(kernel, x, packed, target, *args, *after, *part)
    return memory.get(target, y)


def variations(control: Conv) -> list[Conv]:
    """The control and one deviation each in what an epilogue or the weights can be."""
    channels = control.groups * control.co
    activations = [replace(control, activation=name, residual=r) for name in ACTIVATIONS for r in (0, channels // 2)]
    return [
        control, replace(control, bias=False), replace(control, stored=np.float16), *activations,
        replace(control, residual=channels), replace(control, residual=1), replace(control, n=2),
    ]  # fmt: skip


WINDOWED = Conv(size=(7, 9), window=(3, 3), pads=(1, 1, 1, 1))
DENSE = [
    *variations(Conv()), *variations(Conv(ci=7, co=13)), *variations(replace(WINDOWED, co=5)),
    Conv(ci=1, co=1), Conv(size=(1, 1), ci=300, co=37), Conv(n=2, size=(3, 3), ci=5, co=3), Conv(stride=(2, 2)),
    Conv(pads=(1, 0, 0, 2)), replace(WINDOWED, ci=3, co=9), replace(WINDOWED, ci=260, co=4),
    replace(WINDOWED, window=(5, 5), stride=(2, 2), pads=(1, 2, 1, 2), n=2), replace(WINDOWED, groups=3, ci=4, co=5),
    replace(WINDOWED, dilation=(2, 3), pads=(2, 2, 3, 3)), replace(WINDOWED, dilation=(2, 3), groups=2),
    replace(WINDOWED, window=(2, 3), stride=(2, 1), pads=(0, 0, 0, 0)), replace(WINDOWED, size=(2, 2), window=(3, 3)),
]  # fmt: skip
# Tiles of rows that are neighbours in memory: last panels of every width, residuals that end in every place.
DENSE += [Conv(size=(5, 7), co=co, residual=min(r, co)) for co in (*range(1, 10), 20, 27) for r in (0, 4, 6, 8, 24)]
DENSE += [Conv(size=(5, 7), ci=4, co=c, activation=a) for c in (11, 12) for a in ("prelu", "relu", "none")]
DENSE += [
    Conv(n=2, groups=2, co=co, residual=r, activation=a) for co in (4, 8) for r in (0, 8) for a in ("prelu", "relu")
]
DENSE += [Conv(size=(4, 9), ci=128, co=44, residual=32)]
# A curve, which is computed of what was stored: once, wherever panels of another form lie between.
DENSE += [Conv(size=(5, 7), co=co, residual=r, activation="silu") for co in (8, 20, 27) for r in (0, 5, 13) if r < co]


def compare(got: Array, case: Conv) -> str:
    """Empty, or how far the result is off. Bound: a few roundings of each product of the sum."""
    a, want = draw(case), expected(case)
    error = float(np.max(np.abs(got - want) / (1 + np.abs(want))))
    bound = 2e-6 * max(a.w[0].size, 16) ** 0.5
    return "" if error < bound else f"{case} is off by {error:.2g}, allowed are {bound:.2g}"


@pytest.mark.parametrize("target", BUILDS, ids=str)
@pytest.mark.parametrize("tile", [*TILES, *DEEP_TILES])
def test_dense_tiles_are_right_at_every_size(tile: str, target: Target) -> None:
    target.demand()
    isa = str(dict(target.options)["isa"])
    problems = [(case, draw(case)) for case in DENSE if tile in TILES or case.ci % 4 == 0]
    assert not [text for case, a in problems if (text := compare(dense(isa, tile, case, a), case))]


@pytest.mark.parametrize("target", BUILDS, ids=str)
@pytest.mark.parametrize(("shape", "tile"), IMAGES.items(), ids=str)
def test_image_tiles_are_right_at_every_size(shape: tuple[int, int], tile: str, target: Target) -> None:
    target.demand()
    isa, (k, s) = str(dict(target.options)["isa"]), shape
    control = Conv(size=(9, 15), ci=3, co=13, window=(k, k), stride=(s, s), pads=(1, 1, 1, 1))
    cases = variations(control)
    for size in ((k, k), (16, 33), (31, 8)):
        cases += [
            replace(control, size=size, pads=pads, co=co)
            for pads in ((0, 0, 0, 0), (0, 1, 0, 1), (k - 1,) * 4)
            for co in (1, 16)
        ]
    problems = [(case, draw(case)) for case in cases]
    assert not [text for case, a in problems if (text := compare(dense(isa, tile, case, a), case))]


@pytest.mark.parametrize("target", BUILDS, ids=str)
@pytest.mark.parametrize(("shape", "variant"), [*WINDOWS.items(), ((3, 1), ""), ((4, 2), "")], ids=str)
def test_depthwise_windows_are_right_at_every_size(shape: tuple[int, int], variant: str, target: Target) -> None:
    target.demand()
    isa, (k, s) = str(dict(target.options)["isa"]), shape
    kernel = f"f32_depthwise_nhwc_{variant}" if variant else "f32_depthwise_nhwc"
    control = Conv(size=(7, 19), ci=1, co=1, groups=7, window=(k, k), stride=(s, s), pads=(1, 1, 1, 1))
    cases = variations(control)
    for size in ((k, k), (max(6, k), 8), (16, 33)):
        cases += [
            replace(control, size=size, pads=pads, groups=c)
            for pads in ((0, 0, 0, 0), (0, 1, 0, 1), (k - 1,) * 4)
            for c in (1, 4, 12)
        ]
    cases.append(replace(control, size=(2, 1), pads=(k - 1,) * 4))
    least = max(3, k - 2)
    cases += [
        replace(control, size=(n, m), n=2, groups=8) for n in range(least, least + 5) for m in range(least, least + 11)
    ]
    if not variant:
        cases += [replace(control, dilation=(2, 3), pads=(3, 2, 4, 1)), replace(control, window=(2, 4), stride=(1, 3))]
        wide = replace(control, size=(5, 160), dilation=(1, 4), pads=(1, 1, 5, 5), groups=44)  # channels part by part
        cases += [replace(wide, activation=a) for a in ("clamp", "silu", "prelu")]
    problems = [(case, draw(case)) for case in cases]
    assert not [text for case, a in problems if (text := compare(depthwise(isa, kernel, case, a), case))]


@pytest.mark.parametrize(("co", "panels"), [(4, 1), (8, 1), (12, 2), (13, 2), (16, 2), (20, 3)])
def test_the_work_of_a_tile_counts_whole_panels_and_whole_tiles(co: int, panels: int) -> None:
    assert tile_work("6x8", 0.5, 12, co) == tile_work("6x8", 0.5, 11, co) == 12 * 8 * panels / 0.5
    assert tile_work("8x4", 1.0, 8, co) == 8 * 4 * -(-co // 4)
