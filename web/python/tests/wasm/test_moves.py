"""Copies, casts and sparse constants of every shape and type, against NumPy."""

from __future__ import annotations

import itertools
import struct

import numpy as np
import pytest
from tests.ops.case_graphs import Array, difference, outcomes, problem, run
from tests.ops.targets import BUILDS, Target

from webinfer.backends import wasm
from webinfer.backends.wasm.executor import lower_graph
from webinfer.dtypes import DType
from webinfer.graph.ir import Case, Constant, Graph, Node, Op, Sparsity, TensorType, Value, apply
from webinfer.host.native import NativeHost
from webinfer.ops import elementwise, movement

EDGES = {
    "float": (0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 127.6, -128.6, 255.4, 300.0, -300.0, 65504.0, 65520.0, 1e6, -1e6,
              2147483648.0, -2147483904.0, 4294967296.0, 1e19, -1e19, float("inf"), -float("inf"), float("nan"), 6e-8),
    "int": (0, 1, -1, 2, 127, 128, -128, -129, 255, 256, 32767, -32768, 65535, 70000, 16777217, 2**31 - 1, -(2**31)),
}  # fmt: skip


def check(op: Op, cases: list[Case], target: Target) -> None:
    """Every case is right, to the operator's tolerance."""
    target.demand()
    problems = [problem(op, case) for case in cases]
    results = run(outcomes(wasm, NativeHost(), problems, dict(target.options)))
    wrong = []
    for p, outcome in zip(problems, results, strict=True):
        assert isinstance(outcome, list), outcome
        wrong += [
            f"{p.case.label}: {text}" for g, w in zip(outcome, p.want, strict=True) if (text := difference(g, w, p))
        ]
    assert not wrong, "\n".join(wrong)


def _edge_values(dtype: DType) -> tuple[float, ...]:
    if dtype.is_float:
        return tuple(v for v in EDGES["float"] if dtype is DType.FLOAT32 or abs(v) < 65505 or abs(v) == float("inf"))
    low, high = dtype.range
    return tuple(v for v in EDGES["int"] if low <= v <= high)


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_every_type_converts_to_every_type(target: Target) -> None:
    cases = []
    for source, goal in itertools.product((d for d in DType if d.inner is d), repeat=2):
        values = _edge_values(source)
        attrs = elementwise.CastAttrs(goal)
        cases.append(Case(f"{source} to {goal}", (TensorType((len(values),), source),), attrs, values={0: values}))
    check(elementwise.CAST, cases, target)


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_every_permutation_of_four_axes_is_right(target: Target) -> None:
    types = (TensorType((2, 3, 4, 5)), TensorType((2, 3, 4, 5), DType.INT8), TensorType((2, 1, 6, 3), DType.INT64))
    types = (*types, TensorType((1, 3, 9, 11), DType.INT8))  # planes of an image
    cases = [
        Case(f"{perm} {type}", (type,), movement.TransposeAttrs(perm), low=-100, high=100)
        for perm in itertools.permutations(range(4))
        for type in types
    ]
    check(movement.TRANSPOSE, cases, target)


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_planes_turn_in_blocks_and_their_edges(target: Target) -> None:
    shapes = (((17, 9), (1, 0)), ((3, 8, 12), (0, 2, 1)), ((2, 5, 6, 7), (0, 3, 1, 2)), ((5, 4, 3, 6), (3, 1, 2, 0)))
    cases = [
        Case(f"{shape} {perm} {dtype}", (TensorType(shape, dtype),), movement.TransposeAttrs(perm), low=-99, high=99)
        for shape, perm in shapes
        for dtype in (DType.FLOAT32, DType.INT32, DType.INT64)
    ]
    check(movement.TRANSPOSE, cases, target)


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_deep_loop_nests_are_walked_in_order(target: Target) -> None:
    eight = TensorType((2, 3, 2, 2, 3, 2, 2, 2))
    check(movement.TRANSPOSE, [Case("rank 8", (eight,), movement.TransposeAttrs((7, 0, 5, 2, 6, 1, 4, 3)))], target)
    tiles = movement.TileAttrs((2, 1, 3, 2, 1, 2))
    check(
        movement.TILE, [Case("rank 6", (TensorType((2, 1, 2, 1, 3, 2), DType.INT16),), tiles, low=-9, high=9)], target
    )
    pair = (TensorType((2, 1, 3, 1, 2, 1, 3, 1)), TensorType((1, 2, 1, 3, 1, 2, 1, 5)))
    check(elementwise.SUB, [Case("rank 8, both stretched", pair, elementwise.BinaryAttrs())], target)


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_rows_of_every_length_are_copied_whole(target: Target) -> None:
    for dtype in (DType.FLOAT32, DType.INT8, DType.INT64):
        joined = [
            Case(
                f"{count} and {rest} of {dtype}",
                (TensorType((2, 3, 5, count), dtype), TensorType((2, 3, 5, rest), dtype)),
                movement.ConcatAttrs(3), low=-99, high=99,
            )
            for count, rest in ((1, 2), (3, 6), (4, 9), (5, 17), (7, 31))
        ]  # fmt: skip
        check(movement.CONCAT, joined, target)
        cut = [
            Case(f"{size} of {dtype}", (TensorType((3, 20, 2, 3, 40), dtype),), attrs, low=-99, high=99)
            for size in (2, 4, 6, 15, 16, 33)
            for attrs in (movement.SliceAttrs((1, 2, 0, 1, 3), (2, 17, 2, 2, size), (1, 1, 1, 1, 1)),)
        ]
        check(movement.SLICE, cut, target)


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_slices_run_backwards_and_skip(target: Target) -> None:
    rng = np.random.default_rng(5)
    cases = []
    for i in range(40):
        starts, sizes, steps = [], [], []
        for dim in (7, 5, 9):
            step, start = int(rng.choice([-3, -2, -1, 1, 2, 3])), int(rng.integers(dim))
            room = (dim - 1 - start) // step if step > 0 else start // -step
            starts.append(start), steps.append(step), sizes.append(int(rng.integers(1, room + 2)))
        attrs = movement.SliceAttrs(tuple(starts), tuple(sizes), tuple(steps))
        dtype = (DType.FLOAT32, DType.UINT8, DType.INT64)[i % 3]
        cases.append(Case(f"{i} {attrs}", (TensorType((7, 5, 9), dtype),), attrs, low=0, high=99))
    check(movement.SLICE, cases, target)


def _sparse(
    dense: Array, order: tuple[int, ...], blocks: tuple[int, ...], sparse: tuple[bool, ...]
) -> tuple[Array, Sparsity]:
    """An array in TFLite's sparse storage. `blocks` are the block sizes of the last len(blocks) axes."""
    rank, mapped = dense.ndim, tuple(range(dense.ndim - len(blocks), dense.ndim))
    shape = [n // blocks[mapped.index(i)] if i in mapped else n for i, n in enumerate(dense.shape)]
    split = dense.reshape(
        [m for i, n in enumerate(shape) for m in ((n, blocks[mapped.index(i)]) if i in mapped else (n,))]
    )
    outer = [i + sum(1 for m in mapped if m < i) for i in range(rank)]
    inner = [outer[m] + 1 for m in mapped]
    turned = split.transpose([([*outer, *inner])[t] for t in order])
    formats, prefixes = [], [()]
    for level, is_sparse in enumerate(sparse):
        size = turned.shape[level]
        if not is_sparse:
            formats.append(("dense", size))
            prefixes = [(*p, i) for p in prefixes for i in range(size)]
            continue
        segments, indices, kept = [0], [], []
        for p in prefixes:
            hits = [i for i in range(size) if np.any(turned[(*p, i)])]
            indices += hits
            kept += [(*p, i) for i in hits]
            segments.append(len(indices))
        formats.append(("csr", tuple(segments), tuple(indices)))
        prefixes = kept
    return np.array([turned[p] for p in prefixes], dense.dtype), Sparsity(order, mapped, tuple(formats))


@pytest.mark.parametrize("target", BUILDS, ids=str)
@pytest.mark.parametrize(
    ("dtype", "shape", "order", "blocks", "sparse"),
    [
        ("float32", (6, 5), (0, 1), (), (False, True)),
        ("float16", (8, 3, 3, 8), (0, 1, 2, 3, 4), (4,), (False, True, False, True, False)),
        ("int8", (5, 12), (0, 1, 2), (4,), (False, True, False)),
        ("float32", (8, 12), (0, 1, 2, 3), (2, 3), (False, True, False, False)),
        ("float32", (4, 7), (1, 0), (), (False, True)),
    ],
)
def test_sparse_constants_are_spread(
    target: Target,
    dtype: str,
    shape: tuple[int, ...],
    order: tuple[int, ...],
    blocks: tuple[int, ...],
    sparse: tuple[bool, ...],
) -> None:
    target.demand()
    rng = np.random.default_rng(6)
    dense = (rng.integers(-8, 8, shape) * (rng.random(shape) < 0.3)).astype(dtype)
    stored, sparsity = _sparse(dense, order, blocks, sparse)
    held = DType.FLOAT32 if dtype == "float16" else DType(dtype)
    constant = Constant(memoryview(stored.tobytes()), DType(dtype), sparsity)
    x = Value("weights", TensorType(shape, held), constant)
    zero = Value("zero", TensorType((1,), held))
    node: Node = apply(elementwise.ADD, [x, zero], elementwise.BinaryAttrs())
    executor = run(wasm.build(Graph("sparse", [zero], [node.output], [node]), NativeHost(), **dict(target.options)))
    got = run(executor.run({"zero": memoryview(bytes(held.itemsize))}))[node.output.name].numpy()
    np.testing.assert_array_equal(got, dense.astype(held.value))


def test_short_rows_are_copied_along_the_longest_axis() -> None:
    x = Value("x", TensorType((1, 3, 9, 11), DType.INT8))
    node = apply(movement.TRANSPOSE, [x], movement.TransposeAttrs((0, 2, 3, 1)))
    builder = lower_graph(Graph("g", [x], node.outputs, [node]), "simd128", {})
    (step,) = builder.run_part.steps
    (nest,) = (data for data in builder.constants.values() if data is not None)
    assert step.kernel == "b8_copy"
    assert struct.unpack("<7i", nest) == (2, 3, 99, 99, 1, 1, 3)
