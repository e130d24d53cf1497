"""Kernels that a tuner may choose: declared within limits, honoured, and right at sizes that no tile divides."""

from __future__ import annotations

import pytest
from tests.ops.case_graphs import Problem, difference, outcomes, problem, run
from tests.ops.targets import Target as RingTarget
from tests.webgpu.devices import HARDWARE, LIMITS, SOFTWARE
from tests.webgpu.disguised import Disguised, HostWith
from tests.webgpu.extra_cases import EXTRA

from webinfer.backends import webgpu
from webinfer.backends.webgpu.dispatch import Target
from webinfer.backends.webgpu.lowerings.variants import GEMVS, TILES, Tile, candidates, choose, tuning_key
from webinfer.graph.ir import Case, Node, TensorType
from webinfer.host.native import NativeHost
from webinfer.ops import OPS
from webinfer.ops.activation import Activation
from webinfer.ops.conv import Conv2dAttrs
from webinfer.ops.matmul import MatmulAttrs


def _conv(label: str, x: tuple[int, ...], w: tuple[int, ...], residual: int = 0, **attrs: object) -> Problem:
    pads = w[1] // 2
    a = Conv2dAttrs(pads=(pads,) * 4, **attrs)  # type: ignore[arg-type]
    inputs = [TensorType(x), TensorType(w), TensorType((w[0],))]
    oh, ow = ((size - 1) // stride + 1 for size, stride in zip(x[1:3], a.stride, strict=True))
    if residual:
        inputs.append(TensorType((x[0], oh, ow, residual)))
    return problem(OPS["conv2d"], Case(label, tuple(inputs), a, constant=(1, 2), low=-1, high=1))


def _matmul(label: str, rows: int, inner: int, columns: int, **attrs: object) -> Problem:
    b = (columns, inner) if attrs.get("transpose_b") else (inner, columns)
    case = Case(label, (TensorType((rows, inner)), TensorType(b)), MatmulAttrs(**attrs), low=-1, high=1)  # type: ignore[arg-type]
    return problem(OPS["matmul"], case)


PROBLEMS = (
    _matmul("odd everywhere, transposed", 131, 37, 45, transpose_b=True),
    _conv("3x3, residual, relu", (2, 9, 11, 12), (72, 3, 3, 12), residual=68, activation=Activation.RELU),
    _matmul("tails everywhere", 131, 100, 140),
    _conv("3x3, odd channels, stride 2", (1, 13, 11, 7), (37, 3, 3, 7), stride=(2, 2)),
)
SMALLEST = "tiled_32x32x16_4x4_1_16"  # solves them all; the others, which take seconds to compile here, two
UNTILED = ("vec4_1", "vec4_2", "vec4_4", "4x8", "split_k", "4x1", *GEMVS)


def node_of(name: str, label: str) -> Node:
    case = next(c for op, c in EXTRA if op.name == name and c.label == label)
    return problem(OPS[name], case).node


def is_tried(tile: Tile) -> bool:
    """Whether it is no other one with larger numbers, which would take seconds to compile here."""
    return tile.nbytes <= (22000 if tile.parts > 1 else 17000) and tile.split in (1, 3)


@pytest.mark.parametrize("name", [name for name, tile in TILES.items() if is_tried(tile)])
def test_every_tile_is_right_at_sizes_that_it_does_not_divide(name: str) -> None:
    RingTarget("webgpu").demand()
    problems = PROBLEMS if name == SMALLEST else PROBLEMS[:2]
    choices = {tuning_key(p.node): name for p in problems}
    found = run(outcomes(webgpu, NativeHost(), problems, {"tuned": choices}))
    for p, (got,) in zip(problems, found, strict=True):
        assert not difference(got, p.want[0], p), p.case.label


@pytest.mark.parametrize("features", [{"subgroups"}, set()], ids=["subgroups", "tree"])
@pytest.mark.parametrize("name", UNTILED)
def test_every_kernel_without_tiles_is_right(name: str, features: set[str]) -> None:
    RingTarget("webgpu").demand()
    nodes = [problem(op, case) for op, case in EXTRA if op.name in ("conv2d", "matmul", "depthwise_conv2d")]
    offered = [p for p in nodes if name in candidates(p.node, HARDWARE)]
    assert offered
    host = HostWith(Disguised(run(NativeHost().gpu()), software=False, features=frozenset(features)))
    found = run(outcomes(webgpu, host, offered, {"tuned": {tuning_key(p.node): name for p in offered}}))
    for p, (got,) in zip(offered, found, strict=True):
        assert not difference(got, p.want[0], p), p.case.label


def test_few_long_sums_are_shared_by_workgroups_by_default() -> None:
    assert choose(node_of("matmul", "one row"), HARDWARE) == "gemv_1_128"
    assert choose(node_of("conv2d", "small map"), HARDWARE) == "gemv_4_64"
    assert "split_k" in candidates(node_of("conv2d", "small map"), HARDWARE)
    assert not set(candidates(node_of("matmul", "one row"), SOFTWARE)) & set(GEMVS)


def test_many_rows_are_tiled_on_hardware_only() -> None:
    node = node_of("matmul", "many rows")
    assert choose(node, HARDWARE) in TILES
    assert choose(node, SOFTWARE) not in TILES


def test_tiles_beyond_the_device_are_not_offered() -> None:
    node = node_of("matmul", "many rows")
    small = Target({**LIMITS, "maxComputeWorkgroupStorageSize": 8192, "maxComputeInvocationsPerWorkgroup": 64})
    offered = [TILES[name] for name in candidates(node, small) if name in TILES]
    assert offered
    assert all(tile.nbytes <= 8192 and tile.workgroup <= 64 for tile in offered)


def test_a_choice_is_honoured_and_a_wrong_one_is_not() -> None:
    node = node_of("conv2d", "many pixels")
    key = tuning_key(node)
    assert choose(node, Target(LIMITS, tuned={key: "vec4_1"})) == "vec4_1"
    assert choose(node, Target(LIMITS, tuned={key: "no such kernel"})) == candidates(node, HARDWARE)[0]
    large = next(name for name, tile in TILES.items() if tile.nbytes > 16384)
    assert choose(node, Target(LIMITS, tuned={key: large})) == candidates(node, HARDWARE)[0]


def test_keys_tell_shapes_and_epilogues_apart() -> None:
    keys = {tuning_key(p.node) for p in PROBLEMS}
    assert len(keys) == len(PROBLEMS)


def test_parts_of_sums_are_not_larger_than_the_device_binds() -> None:
    node = _matmul("large", 2048, 4096, 2048).node
    shared = [name for name in candidates(node, HARDWARE) if name in TILES and TILES[name].split > 1]
    small = Target({**LIMITS, "maxStorageBufferBindingSize": 1 << 24})
    assert shared
    assert not any(TILES[name].split > 1 for name in candidates(node, small) if name in TILES)
    assert choose(node, Target(small.limits, tuned={tuning_key(node): shared[0]})) != shared[0]
