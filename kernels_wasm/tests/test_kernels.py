"""Every kernel of the list on every build: right by the reference, and the same when threads share its units.

Plans are guarded: a kernel that writes beside its results, leaves some of them out, or computes others where three
threads share a step, fails by its name.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
import wasmtime
from tests.ops.case_graphs import Array, Problem, difference, run
from tests.ops.targets import BUILDS, Target
from tests.wasm.guards import GuardedExecutor

from kernels_wasm.tests.kernel_cases import PAIRS_ONLY, TASKS_ONLY, Variant, kernel_cases, picture_call
from webinfer.backends.wasm.kernel_table import KERNELS
from webinfer.host.interface import Kernels
from webinfer.host.kernels_native import NativeKernels, checked_module
from webinfer.host.native import NativeHost
from webinfer.tasks.workspace import Workspace


@cache
def problem_of(variant: Variant) -> Problem:
    """The reference's answer; three builds ask for it."""
    return variant.problem()


def views_of(p: Problem) -> dict[str, memoryview]:
    """The inputs' bytes by name."""
    pairs = zip(p.node.inputs, p.arrays, strict=True)
    return {v.name: memoryview(a.tobytes()) for v, a in pairs if v and a is not None and not v.is_constant}


@dataclass(frozen=True)
class Outcome:
    """What a build makes of one case: the kernels that ran, and the outputs."""

    kernels: frozenset[str]
    outputs: list[Array]


def computed(variant: Variant, kernels: Kernels) -> Outcome:
    """One case on an instance of kernels, with the plan that reaches its own; closes the instance."""
    p = problem_of(variant)
    executor, builder = variant.executor(p.node, kernels, GuardedExecutor)
    try:
        outputs = {name: tensor.numpy().copy() for name, tensor in run(executor.run(views_of(p))).items()}
    finally:
        executor.close()
    steps = (*builder.prepare_part.steps, *builder.run_part.steps)
    return Outcome(frozenset(s.kernel for s in steps), [outputs[v.name] for v in p.node.outputs])


@cache
def outcome(variant: Variant, isa: str) -> Outcome:
    """One case on one build."""
    return computed(variant, run(NativeHost().kernels(isa)))


def assert_right(p: Problem, got: Outcome, what: str = "") -> None:
    """The outputs of a case are what the reference says."""
    for output, want in zip(got.outputs, p.want, strict=True):
        wrong = difference(output, want, p)
        assert not wrong, f"{what}{p.node.label}: {wrong}"


@pytest.mark.parametrize("target", BUILDS, ids=str)
@pytest.mark.parametrize("kernel", [name for name in KERNELS if name not in TASKS_ONLY | PAIRS_ONLY])
def test_the_kernel_is_right_and_keeps_to_its_results(kernel: str, target: Target) -> None:
    target.demand()
    variants = kernel_cases().get(kernel, [])
    assert variants, f"no operator's case reaches {kernel}; declare one in kernel_cases.py or remove the kernel"
    for variant in variants:
        p, got = problem_of(variant), outcome(variant, str(dict(target.options)["isa"]))
        assert kernel in got.kernels
        assert_right(p, got, f"{kernel}, ")


@pytest.fixture(scope="module")
def browsers_module() -> wasmtime.Module:
    """The build for browsers, compiled once: an instance from its bytes reads the machine code back."""
    kernels = NativeKernels("relaxed", checked_module("relaxed"))
    kernels.close()
    return kernels._module


@pytest.mark.parametrize("kernel", [name for name in KERNELS if name not in TASKS_ONLY | PAIRS_ONLY])
def test_the_order_for_wasmtime_gives_the_bits_of_the_one_for_browsers(
    kernel: str, browsers_module: wasmtime.Module
) -> None:
    for variant in kernel_cases()[kernel]:
        here = outcome(variant, "relaxed").outputs
        there = computed(variant, NativeKernels("relaxed", module=browsers_module)).outputs
        for one, other in zip(here, there, strict=True):
            assert one.tobytes() == other.tobytes(), f"{kernel}: {variant}"


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_a_picture_is_laid_into_a_tensor_in_parts(target: Target) -> None:
    target.demand()
    image = np.random.default_rng(3).integers(0, 256, (7, 5, 4), np.uint8)
    kernels = run(NativeHost().kernels(str(dict(target.options)["isa"])))
    address, args = picture_call(Workspace(kernels), image)
    for begin, end in ((4, 7), (2, 4), (0, 2)):
        kernels.call("u8_picture_to_f32", *args, begin, end)
    got = np.frombuffer(kernels.read(address, 12 * 7 * 5), np.float32).reshape(7, 5, 3)
    np.testing.assert_array_equal(got, image[..., :3] * np.float32(0.5) - 1)
    kernels.close()


def test_kernels_that_only_tasks_call_are_in_the_list() -> None:
    assert KERNELS.keys() >= TASKS_ONLY | PAIRS_ONLY
