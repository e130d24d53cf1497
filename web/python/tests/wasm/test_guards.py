"""Guarded plans: what a kernel does beside its results is found and named."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from tests.ops.case_graphs import Array, dense, outcomes, problem, run
from tests.ops.targets import BUILDS, Target
from tests.wasm import guards

from webinfer.dtypes import DType
from webinfer.errors import ModelFormatError
from webinfer.graph.ir import Graph, TensorType, Value, apply
from webinfer.host.native import NativeHost
from webinfer.ops import OPS
from webinfer.plan import program
from webinfer.plan.blocks import Ref, Step
from webinfer.session.loading import load

TYPE = TensorType((10,), DType.FLOAT32)
X, C = np.linspace(-4, 4, 10).astype(np.float32), np.arange(10, dtype=np.float32)


def absolute_plus_c(isa: str = "simd128", threads: int = 1) -> Array:
    """What the guarded plan of abs(x) + c computes."""
    x, c = Value("x", TYPE), Value("c", TYPE, dense(C, TYPE))
    size = apply(OPS["abs"], [x], OPS["abs"].cases[0].attrs, label="the size")
    total = apply(OPS["add"], [size.output, c], OPS["add"].cases[0].attrs, label="the sum")
    plan = run(guards.build(Graph("g", [x], total.outputs, [size, total]), guards.BuildHost(isa, threads)))
    try:
        (result,) = run(plan.run({"x": memoryview(X.tobytes())})).values()
        return np.asarray(result.numpy())
    finally:
        plan.close()


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_a_plan_between_gaps_computes_what_it_should(target: Target) -> None:
    target.demand()
    np.testing.assert_array_equal(absolute_plus_c(str(dict(target.options)["isa"])), np.abs(X) + C)


@pytest.mark.parametrize("isa", [build for build in guards.BUILDS if "threads" in build])
def test_threads_share_a_guarded_plan(isa: str) -> None:
    BUILDS[-1].demand()
    kernels = run(guards.BuildHost(isa, threads=3).kernels())
    assert kernels.threads == 3
    kernels.close()
    np.testing.assert_array_equal(absolute_plus_c(isa, threads=3), np.abs(X) + C)


def one_more(step: Step) -> Step:
    return dataclasses.replace(step, units=step.units + 1)


def one_less(step: Step) -> Step:
    return dataclasses.replace(step, units=step.units - 1)


def further(step: Step) -> Step:
    """The step on an operand that begins an element later, and so ends behind its tensor."""
    assert isinstance(step.args[0], Ref)
    return dataclasses.replace(step, args=(step.args[0] + 4, *step.args[1:]))


def into(number: int) -> Callable[[Step], Step]:
    """The step with its result where its operand of that number lies."""
    return lambda step: dataclasses.replace(step, args=(*step.args[:2], step.args[number], *step.args[3:]))


@pytest.mark.parametrize(
    ("broken", "spoilt", "message"),
    [
        ("f32_abs", one_more, "kernel f32_abs of 'the size' changed .* the first [0-3] bytes behind"),
        ("f32_add", one_more, "kernel f32_add of 'the sum' changed .* the first [0-3] bytes behind"),
        ("f32_add", into(0), "kernel f32_add of 'the sum' changed .* at byte . of 'the size'"),
        ("f32_add", into(1), "kernel f32_add of 'the sum' changed .* at byte . of 'c'"),
        ("f32_abs", further, "kernel f32_abs of 'the size': 4 bytes of the result differ, the first at byte 36 "),
        ("f32_abs", one_less, "kernel f32_abs of 'the size': 4 bytes of the result differ, the first at byte 36 "),
        ("f32_add", one_less, "kernel f32_add of 'the sum': 4 bytes of the result differ, the first at byte 36 "),
    ],
)  # fmt: skip
def test_a_kernel_that_leaves_its_results_is_named(
    monkeypatch: pytest.MonkeyPatch, broken: str, spoilt: Callable[[Step], Step], message: str
) -> None:
    BUILDS[1].demand()
    encode = program.encode

    def encode_spoilt(steps: Sequence[Step], kernels: dict[str, program.Kernel]) -> bytes:
        return encode([spoilt(s) if s.kernel == broken else s for s in steps], kernels)

    monkeypatch.setattr(program, "encode", encode_spoilt)
    with pytest.raises(guards.GuardError, match=message):
        absolute_plus_c()


def moved(step: Step) -> Step:
    """The copy an element further, from there to there."""
    x, y, *rest = step.args
    assert isinstance(x, Ref)
    assert isinstance(y, Ref)
    return dataclasses.replace(step, args=(x + 4, y + 4, *rest))


def test_a_gap_that_is_copied_into_a_gap_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    BUILDS[1].demand()
    concat, encode = OPS["concat"], program.encode
    p = problem(concat, next(case for case in concat.cases if case.label == "first axis"))

    def last_one_further(steps: Sequence[Step], kernels: dict[str, program.Kernel]) -> bytes:
        return encode([*steps[:-1], moved(steps[-1])] if steps else [], kernels)

    assert run(outcomes(guards, guards.BuildHost("simd128"), [p], {}))
    monkeypatch.setattr(program, "encode", last_one_further)
    with pytest.raises(guards.GuardError, match="kernel b32_copy of 'concat: first axis' changed "):
        run(outcomes(guards, guards.BuildHost("simd128"), [p], {}))


@pytest.mark.parametrize("name", ["face_detection_short_range", "face_landmark", "selfie_segmentation_landscape"])
def test_a_published_model_touches_nothing_beside_its_tensors(name: str) -> None:
    BUILDS[-1].demand()
    try:
        model = NativeHost().asset(f"models/{name}.tflite")
    except ModelFormatError as error:
        pytest.skip(str(error))
    with guards.guarded():
        guarded = run(load(model, backend=["wasm"]))
    plain = run(load(model, backend=["wasm"]))
    rng = np.random.default_rng(4)
    inputs = {i.name: rng.uniform(-1, 1, i.shape).astype(i.dtype.value) for i in plain.inputs}
    with guarded, plain:
        assert isinstance(guarded.executor, guards.GuardedExecutor)
        assert not isinstance(plain.executor, guards.GuardedExecutor)
        one, other = run(guarded.run(inputs)), run(plain.run(inputs))
        assert one
        assert all(one[output].tobytes() == other[output].tobytes() for output in one)
