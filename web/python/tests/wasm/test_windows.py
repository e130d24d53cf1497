"""Pools, resizes, transposed and sparse convolutions at sizes that reach every path of their kernels."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ops.case_graphs import Problem, difference, outcomes, problem, run
from tests.ops.targets import BUILDS, Target
from tests.wasm.memory import Memory

from webinfer.backends import wasm
from webinfer.dtypes import COMPUTED, DType
from webinfer.graph.ir import Case, Constant, Op, Quantization, Sparsity, TensorType, Value
from webinfer.host.native import NativeHost
from webinfer.ops import conv, pool, resize
from webinfer.ops.activation import Activation

Q = Quantization((0.05,), (7,))
SIGMOID, PRELU = Activation.SIGMOID, Activation.PRELU


def case(label: str, attrs: object, *shapes: tuple[int, ...] | None, dtype: DType = DType.FLOAT32) -> Case:
    """A case whose inputs after the first are weights."""
    quant = None if dtype.is_float else Q
    types = tuple(None if s is None else TensorType(s, dtype, quant) for s in shapes)
    return Case(label, types, attrs, constant=tuple(i for i, t in enumerate(types) if i and t is not None))


def check(op: Op, cases: list[Case], target: Target) -> None:
    """Every case is right, to the operator's tolerance."""
    target.demand()
    judge(run_all([problem(op, c) for c in cases], target))


def run_all(problems: list[Problem], target: Target) -> list[tuple[Problem, object]]:
    results = run(outcomes(wasm, NativeHost(), problems, dict(target.options)))
    return list(zip(problems, results, strict=True))


def judge(results: list[tuple[Problem, object]]) -> None:
    wrong = []
    for p, outcome in results:
        assert isinstance(outcome, list), outcome
        texts = [difference(got, want, p) for got, want in zip(outcome, p.want, strict=True)]
        wrong += [f"{p.case.label}: {text}" for text in texts if text]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("target", BUILDS, ids=str)
@pytest.mark.parametrize("op", [resize.RESIZE_BILINEAR, resize.RESIZE_NEAREST], ids=lambda op: op.name)
def test_resizes_of_every_width(op: Op, target: Target) -> None:
    def at(*shape: int) -> tuple[int, ...]:
        return shape

    cases = [
        case("more columns than a chunk", resize.ResizeAttrs((2, 301), False, True), at(1, 2, 150, 3)),
        case("fewer, more than a chunk", resize.ResizeAttrs((2, 270), False, True), at(1, 3, 300, 2)),
        case("rows too long to mix first", resize.ResizeAttrs((3, 9), True), at(1, 2, 5, 1700)),
        case("one channel, batch", resize.ResizeAttrs((5, 6)), at(3, 2, 3, 1)),
        case("one pixel", resize.ResizeAttrs((4, 3), True), at(1, 1, 1, 5)),
        case("thinner and higher", resize.ResizeAttrs((9, 2), False, True), at(1, 3, 7, 6)),
        *(
            case(f"{dtype} {how}", resize.ResizeAttrs((5, 7), *how), at(2, 3, 4, 5), dtype=dtype)
            for dtype in (DType.INT8, DType.UINT8)
            for how in ((False, False), (True, False), (False, True))
        ),
    ]
    check(op, cases, target)


@pytest.mark.parametrize("target", BUILDS, ids=str)
@pytest.mark.parametrize("op", [pool.AVERAGE_POOL2D, pool.L2_POOL2D, pool.MAX_POOL2D], ids=lambda op: op.name)
def test_pools_of_every_width(op: Op, target: Target) -> None:
    cases = [
        case("more channels than a unit", pool.Pool2dAttrs((2, 2), (2, 2)), (1, 4, 6, 150)),
        case("whole vectors and a rest", pool.Pool2dAttrs((3, 3), (2, 1), (1, 1, 1, 1)), (2, 5, 4, 23)),
        case("two channels", pool.Pool2dAttrs((1, 3)), (1, 2, 5, 2)),
        case("dilated, padded", pool.Pool2dAttrs((2, 3), (1, 2), (2, 1, 3, 2), (3, 2)), (1, 6, 7, 5)),
        case("squares, some of them cut", pool.Pool2dAttrs((2, 2), (2, 2), (1, 0, 1, 1)), (2, 5, 7, 70)),
        case("squares that overlap", pool.Pool2dAttrs((2, 2), (1, 1), (0, 1, 0, 1)), (2, 3, 4, 6)),
        case("clamped", pool.Pool2dAttrs((2, 2), activation=Activation.RELU_N1_TO_1), (1, 3, 3, 17)),
    ]
    check(op, cases, target)


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_maxima_of_every_integer(target: Target) -> None:
    attrs = pool.Pool2dAttrs((2, 3), (1, 2), (1, 0, 0, 1))
    types = [d for d in COMPUTED if not d.is_float and d not in (DType.BOOL, DType.UINT16)]  # uint16 is refused
    plain = [Case(f"{d}", (TensorType((1, 4, 5, 3), d),), attrs, low=-100, high=100) for d in types]
    check(pool.MAX_POOL2D, plain, target)


@pytest.mark.parametrize("target", BUILDS, ids=str)
@pytest.mark.parametrize("activation", [Activation.NONE, Activation.RELU6, Activation.RELU_N1_TO_1])
def test_quantised_pools_clamp_around_their_zero_point(activation: Activation, target: Target) -> None:
    attrs = pool.Pool2dAttrs((2, 2), (1, 2), (1, 1, 0, 1), activation=activation)
    for op in (pool.MAX_POOL2D, pool.AVERAGE_POOL2D):
        check(op, [case(f"{d}", attrs, (2, 4, 5, 3), dtype=d) for d in (DType.INT8, DType.UINT8)], target)


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_transposed_convolutions_of_every_kind(target: Target) -> None:
    a = conv.ConvTranspose2dAttrs
    cases = [
        case("apart, one output", a((2, 2)), (1, 3, 5, 7), (1, 2, 2, 7), (1,)),
        case("apart, many outputs", a((2, 3)), (2, 3, 5, 12), (11, 2, 3, 12), (11,)),
        case("apart, sigmoid", a((2, 2), activation=SIGMOID), (1, 4, 9, 8), (1, 2, 2, 8), (1,)),
        case("apart, hard_swish", a((3, 2), activation=Activation.HARD_SWISH), (1, 2, 3, 5), (4, 3, 2, 5)),
        case("apart but for a slope", a((2, 2), activation=PRELU), (1, 3, 3, 4), (6, 2, 2, 4), (6,), None, (6,)),
        case("sigmoid", a((2, 1), activation=SIGMOID), (1, 4, 5, 8), (3, 3, 3, 8), (3,)),
        case("gaps between windows", a((3, 4)), (1, 3, 3, 4), (5, 2, 2, 4), (5,)),
        case("wide channels", a((2, 2), (1, 1, 1, 1)), (1, 3, 4, 270), (9, 3, 3, 270), (9,)),
        case("groups", a((2, 2), (0, 1, 1, 0), groups=3), (1, 4, 3, 9), (5, 3, 3, 9), (15,)),
    ]
    check(conv.CONV_TRANSPOSE2D, cases, target)


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_windows_over_images_of_one_column(target: Target) -> None:
    def column(label: str, x: tuple[int, ...], w: tuple[int, ...], **extra: object) -> tuple[Case, Case]:
        attrs, co = conv.Conv2dAttrs(**extra), w[0]  # type: ignore[arg-type]
        quantized = conv.quantized_conv_case(f"{label}, int8", x, w, DType.INT8, 0, co, **extra)
        return case(label, attrs, x, w, (co,)), quantized

    cases = [
        *column("one channel, stride", (2, 41, 1, 1), (9, 12, 1, 1), stride=(3, 1)),
        *column("padded, dilated", (1, 11, 1, 4), (13, 3, 1, 4), pads=(3, 2, 0, 0), dilation=(2, 1), stride=(2, 1)),
        *column("padded columns", (2, 5, 1, 8), (8, 3, 1, 8), pads=(1, 1, 1, 0)),
        *column("groups", (1, 9, 1, 8), (6, 5, 1, 4), groups=2, pads=(2, 2, 0, 0)),
        *column("several columns of windows", (1, 7, 1, 4), (5, 2, 1, 4), pads=(0, 0, 0, 2), stride=(1, 2)),
    ]
    check(conv.CONV2D, cases, target)
    attrs = conv.Conv2dAttrs((2, 1), (3, 2, 0, 0), (2, 1), activation=Activation.SILU)
    channels = [case(f"depthwise, {n}", attrs, (n, 23, 1, 12), (1, 5, 1, 12), (12,), (n, 10, 1, 12)) for n in (2, 9)]
    check(conv.DEPTHWISE_CONV2D, channels, target)


def _sparse_problem(label: str, share: float, shape: tuple[int, ...], co: int, activation: Activation) -> Problem:
    """A 1x1 convolution of which only `share` of the weights is stored, row by row."""
    ci, rng = shape[3], np.random.default_rng(9)
    residual = (*shape[:3], co) if activation is Activation.NONE else None
    slope = (co,) if activation is PRELU else None
    attrs = conv.Conv2dAttrs(activation=activation)
    p = problem(conv.CONV2D, case(label, attrs, shape, (co, 1, 1, ci), (co,), residual, slope))
    dense = np.asarray(p.arrays[1]).reshape(co, ci).copy()
    dense[rng.random(dense.shape) >= share] = 0
    columns = [np.flatnonzero(row) for row in dense]
    segments = tuple(np.cumsum([0, *map(len, columns)]).tolist())
    indices = tuple(np.concatenate(columns).tolist()) if segments[-1] else ()
    formats = (("dense", co), ("dense", 1), ("dense", 1), ("csr", segments, indices))
    stored = np.concatenate([row[c] for row, c in zip(dense, columns, strict=True)]).astype(np.float32)
    w = p.node.inputs[1]
    assert w is not None
    sparse = Constant(memoryview(stored).cast("B"), DType.FLOAT32, Sparsity((0, 1, 2, 3), (), formats))
    return _with_weights(p, Value(w.name, w.type, sparse), dense)


def _with_weights(p: Problem, w: Value, dense: np.ndarray) -> Problem:
    """The same problem with other weights and what comes out then."""
    from webinfer.backends.reference.executor import compute

    p.node.inputs[1] = w
    arrays = [*p.arrays]
    arrays[1] = dense.reshape(w.type.shape)
    return Problem(p.case, p.node, arrays, compute(p.node, arrays))


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_sparse_weights_skip_only_zeros(target: Target) -> None:
    target.demand()
    problems = [
        _sparse_problem("one block", 0.2, (1, 4, 7, 64), 12, Activation.NONE),
        _sparse_problem("a block and a bit", 0.3, (1, 7, 7, 50), 9, Activation.RELU6),
        _sparse_problem("less than a block", 0.3, (1, 2, 3, 40), 6, PRELU),
        _sparse_problem("batch, odd channels", 0.1, (3, 5, 5, 101), 7, SIGMOID),
        _sparse_problem("blocks of 48", 0.3, (1, 12, 12, 40), 10, Activation.NONE),
        _sparse_problem("blocks of 32", 0.3, (1, 8, 8, 34), 8, Activation.HARD_SWISH),
        _sparse_problem("nothing stored", 0.0, (1, 6, 6, 33), 5, Activation.TANH),
    ]
    judge(run_all(problems, target))


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_nothing_is_written_outside_a_resize_or_pool(target: Target) -> None:
    target.demand()
    memory, x = Memory(str(dict(target.options)["isa"])), np.ones((1, 3, 5, 7), np.float32)
    source, y = memory.put(x), np.empty((1, 6, 9, 7), np.float32)
    for name, channels in (("f32_resize_bilinear_nhwc", 7), ("b8_resize_nearest_nhwc", 28)):
        room = memory.room(y.nbytes)
        memory.kernels.call(name, source, room, 1, 3, 5, channels, 6, 9, 2, 0, 6)
        assert np.all(memory.get(room, y) == 1)
    for name in ("average", "max", "l2"):
        small, room = np.empty((1, 2, 3, 7), np.float32), memory.room(4 * 42)
        window = (1, 3, 5, 7, 2, 3, 1, 1, 2, 2, 1, 1, 0, 0)
        memory.kernels.call(f"f32_{name}_pool2d_nhwc", source, room, *window, 0, -np.inf, np.inf, 0, 6)
        assert np.all(memory.get(room, small) == 1)
