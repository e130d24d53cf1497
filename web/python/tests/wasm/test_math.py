"""The vector functions of kernels_wasm/include: how far they are from the exact value, and their edges."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from tests.ops.targets import BUILDS, Target
from tests.wasm.memory import Array, Memory

Exact = Callable[[Array], Array]
_erf, _erfc = np.vectorize(math.erf), np.vectorize(math.erfc)


def _sigmoid(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0 / (1.0 + small), small / (1.0 + small))


def _gelu(x: Array) -> Array:
    s = x / math.sqrt(2.0)
    return np.asarray(np.where(x < 0, 0.5 * x * _erfc(-s), 0.5 * x * (1.0 + _erf(s))))


def _softplus(x: Array) -> Array:
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


def _elu(x: Array) -> Array:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0.0)))


# kernel, exact function, uniform range, range of exponents or None, units in the last place allowed
FUNCTIONS: tuple[tuple[str, Exact, tuple[float, float], tuple[int, int] | None, float], ...] = (
    ("cos", np.cos, (-30.0, 30.0), (-20, 30), 2.0),
    ("elu", _elu, (-20.0, 2.0), (-30, 3), 3.0),
    ("erf", _erf, (-4.0, 4.0), (-30, 0), 3.0),
    ("exp", np.exp, (-104.0, 88.7), (-30, 6), 1.5),
    ("gelu", _gelu, (-12.9, 6.0), (-30, 0), 14.0),
    ("log", np.log, (0.5, 2.0), (-149, 127), 1.5),
    ("reciprocal", lambda x: 1.0 / x, (0.1, 9.0), (-100, 100), 1.0),
    ("rsqrt", lambda x: 1.0 / np.sqrt(x), (0.1, 9.0), (-100, 100), 1.5),
    ("sigmoid", _sigmoid, (-103.0, 40.0), (-30, 3), 3.0),
    ("sin", np.sin, (-30.0, 30.0), (-20, 30), 2.0),
    ("softplus", _softplus, (-103.0, 50.0), (-30, 3), 3.0),
    ("tan", np.tan, (-30.0, 30.0), (-20, 18), 4.0),
    ("tanh", np.tanh, (-10.0, 10.0), (-30, 3), 2.5),
)
POSITIVE = {"log", "reciprocal", "rsqrt"}
STRANGE = np.array(
    [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-45, -1e-45, 3.4e38, -3.4e38, 1.0, -1.0, 1e-39, 88.73, -87.4, -104.5],
    np.float32,
)


def ulps(got: Array, exact: Array) -> Array:
    """Distances in units in the last place of float32 at the exact value."""
    exponent = np.floor(np.log2(np.maximum(np.abs(exact), 2.0**-126)))
    return np.abs(got.astype(np.float64) - exact) / 2.0 ** (exponent - 23)


def arguments(name: str, uniform: tuple[float, float], exponents: tuple[int, int] | None) -> Array:
    """Arguments spread over a range and, evenly in their logarithm, over magnitudes."""
    rng = np.random.default_rng(sum(name.encode()))
    parts = [rng.uniform(*uniform, 8191)]
    if exponents is not None:
        sizes = np.exp2(rng.uniform(*exponents, 8190))
        parts.append(sizes if name in POSITIVE else sizes * rng.choice([-1.0, 1.0], sizes.shape))
    return np.concatenate(parts).astype(np.float32)


@pytest.mark.parametrize("target", BUILDS, ids=str)
@pytest.mark.parametrize("row", FUNCTIONS, ids=lambda row: row[0])
def test_functions_are_within_their_bound(row: tuple, target: Target) -> None:
    name, exact, uniform, exponents, bound = row
    target.demand()
    x = arguments(name, uniform, exponents)
    got, want = Memory(str(dict(target.options)["isa"])).unary(name, x, 1.0), exact(x.astype(np.float64))
    finite = np.abs(want) < 3.4028235e38
    distance = np.where(finite, ulps(got, np.where(finite, want, 1.0)), 0.0)
    worst = int(np.argmax(distance))
    assert distance[worst] <= bound, f"{name}({x[worst]!r}) = {got[worst]!r}, exact {want[worst]!r}"


@pytest.mark.parametrize("target", BUILDS, ids=str)
@pytest.mark.parametrize("row", FUNCTIONS, ids=lambda row: row[0])
def test_zeros_infinities_and_nan_are_right(row: tuple, target: Target) -> None:
    name, exact, *_ = row
    target.demand()
    with np.errstate(all="ignore"):
        want = exact(STRANGE.astype(np.float64)).astype(np.float32)
    if name == "gelu":
        want[STRANGE == -np.inf] = 0.0  # the limit, where the formula has 0 times infinity
    got = Memory(str(dict(target.options)["isa"])).unary(name, STRANGE, 1.0)
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-44, equal_nan=True)


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_powers_follow_c_for_every_pair_of_strange_numbers(target: Target) -> None:
    target.demand()
    numbers = np.array(
        [0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, 2.5, -2.5, 1e-45, 1e38, 16777215, -16777217], np.float32
    )
    numbers = np.concatenate([numbers, np.float32([math.inf, -math.inf, math.nan])])
    a, b = (v.reshape(-1).copy() for v in np.meshgrid(numbers, numbers))
    with np.errstate(all="ignore"):
        want = np.power(a, b)
    got = Memory(str(dict(target.options)["isa"])).binary("pow", a, b)
    np.testing.assert_allclose(got, want, rtol=3e-7, equal_nan=True)
    zeros = want == 0
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(want[zeros]))


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_powers_are_rounded_correctly_almost_always(target: Target) -> None:
    target.demand()
    rng = np.random.default_rng(3)
    a = np.exp2(rng.uniform(-20, 20, 20000)).astype(np.float32)
    b = rng.uniform(-6, 6, a.shape).astype(np.float32)
    want = np.power(a.astype(np.float64), b.astype(np.float64))
    got = Memory(str(dict(target.options)["isa"])).binary("pow", a, b)
    inside = (want < 3.4e38) & (want > 1e-44)
    assert ulps(got[inside], want[inside]).max() <= 0.51


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_modulo_is_exact_for_any_quotient(target: Target) -> None:
    target.demand()
    rng = np.random.default_rng(4)
    a = (np.exp2(rng.uniform(-10, 90, 4000)) * rng.choice([-1, 1], 4000)).astype(np.float32)
    b = (np.exp2(rng.uniform(-10, 10, 4000)) * rng.choice([-1, 1], 4000)).astype(np.float32)
    got = Memory(str(dict(target.options)["isa"])).binary("floor_mod", a, b)
    np.testing.assert_array_equal(got, np.mod(a, b))


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_no_length_writes_past_its_end(target: Target) -> None:
    target.demand()
    memory = Memory(str(dict(target.options)["isa"]))
    for size in range(1, 14):
        x = np.linspace(-3.0, 3.0, size).astype(np.float32)
        np.testing.assert_array_equal(memory.unary("neg", x), -x)
        np.testing.assert_array_equal(memory.binary("add", x, x), x + x)


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_a_row_that_repeats_is_the_same_in_every_row_and_part(target: Target) -> None:
    target.demand()
    rng = np.random.default_rng(3)
    for rows, columns in ((8, 1), (9, 3), (200, 3), (40, 16), (131, 24), (10, 127), (9, 128), (8, 129), (300, 2)):
        wide = rng.normal(size=(rows, columns)).astype(np.float32)
        row = rng.normal(size=columns).astype(np.float32)
        for first, second, steps in ((wide, row, (columns, 1, 0, 1)), (row, wide, (0, 1, columns, 1))):
            memory = Memory(str(dict(target.options)["isa"]))
            nest = memory.put(np.array([2, rows, columns, *steps], np.int32))
            refs, y = (memory.put(first), memory.put(second)), memory.room(wide.nbytes)
            ends = (0, wide.size // 3, wide.size // 3 + 1, wide.size)
            for begin, end in itertools.pairwise(ends):
                memory.kernels.call("f32_sub", *refs, y, nest, -np.inf, np.inf, begin, end)
            np.testing.assert_array_equal(memory.get(y, wide), first - second)


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_no_gelu_is_a_subnormal_number(target: Target) -> None:
    """A processor takes a hundred cycles for one, and a layer may have many."""
    target.demand()
    got = Memory(str(dict(target.options)["isa"])).unary("gelu", np.linspace(-40, -12, 1001, dtype=np.float32), 1.0)
    assert not np.any((got != 0) & (np.abs(got) < np.finfo(np.float32).smallest_normal))
