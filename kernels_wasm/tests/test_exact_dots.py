"""Products of bytes in SIMD, on processors that have no exact ones: wasmtime can be asked to compute relaxed
instructions exactly, the second operand signed, as Arm's processors do.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import wasmtime

from kernels_wasm.tests.kernel_cases import Variant, kernel_cases
from kernels_wasm.tests.test_kernels import assert_right, computed, problem_of
from kernels_wasm.tests.test_quantized_products import CASES as PRODUCTS
from kernels_wasm.tests.test_quantized_windows import CASES as WINDOWS
from kernels_wasm.tests.test_quantized_windows import check_panels
from webinfer.host import kernels_native
from webinfer.host.interface import Kernels
from webinfer.ops.conv import CONV2D, DEPTHWISE_CONV2D

SIGNED = 2  # what dots_of_bytes says of such an engine
VARIANTS = (*(Variant(CONV2D, case) for case in PRODUCTS), *(Variant(DEPTHWISE_CONV2D, case) for case in WINDOWS))


@pytest.fixture(scope="module", params=["relaxed", "relaxed-native"])
def compiled(request: pytest.FixtureRequest) -> tuple[wasmtime.Engine, wasmtime.Module]:
    """That engine, and a relaxed build in it."""
    config = wasmtime.Config()
    config.wasm_relaxed_simd = True
    config.wasm_relaxed_simd_deterministic = True
    engine = wasmtime.Engine(config)
    return engine, wasmtime.Module(engine, kernels_native.checked_module(request.param))


@pytest.fixture
def exact(compiled: tuple[wasmtime.Engine, wasmtime.Module], monkeypatch: pytest.MonkeyPatch) -> Callable[[], Kernels]:
    """Makes instances of it."""
    engine, module = compiled
    monkeypatch.setattr(kernels_native, "kernel_engine", lambda: engine)
    monkeypatch.setattr(kernels_native, "_foreign", lambda _: module)
    return lambda: kernels_native.NativeKernels("relaxed", b"the build that is compiled already")


def test_this_engine_has_exact_products_of_signed_bytes(exact: Callable[[], Kernels]) -> None:
    kernels = exact()
    try:
        assert kernels.call("dots_of_bytes") == SIGNED
        check_panels(kernels)
    finally:
        kernels.close()


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.case.label)
def test_products_of_bytes_are_right(variant: Variant, exact: Callable[[], Kernels]) -> None:
    assert_right(problem_of(variant), computed(variant, exact()))


@pytest.mark.parametrize("kernel", ["q8_conv2d_nhwc", "q8_depthwise_nhwc", "q8_depthwise_nhwc_3x3_s1", "q8_matmul_f32"])
def test_each_case_of_a_kernel_of_such_products_is_right(kernel: str, exact: Callable[[], Kernels]) -> None:
    for variant in kernel_cases()[kernel]:
        assert_right(problem_of(variant), computed(variant, exact()))
