"""Calls of wasmtime's functions past its conversion of arguments: the same results and the same errors."""

from __future__ import annotations

import struct
from typing import Any

import pytest
import wasmtime

from webinfer.host import native_calls
from webinfer.host.native_calls import fast_call

MODULE = """(module
  (func (export "none") (param i32))
  (func (export "mixed") (param i32 f32 i64 f64) (result f64)
    (f64.add (f64.add (f64.convert_i32_s (local.get 0)) (f64.promote_f32 (local.get 1)))
             (f64.add (f64.convert_i64_s (local.get 2)) (local.get 3))))
  (func (export "same") (param i32) (result i32) (local.get 0))
  (func (export "two") (result i32 i32) (i32.const 1) (i32.const 2))
  (func (export "trap") (param i32) (result i32) (i32.div_s (i32.const 1) (local.get 0))))"""


@pytest.fixture(name="module")
def opened() -> tuple[wasmtime.Store, Any]:
    """A store and a module's functions."""
    store = wasmtime.Store()
    return store, wasmtime.Instance(store, wasmtime.Module(store.engine, MODULE), []).exports(store)


@pytest.mark.parametrize(
    ("name", "numbers"),
    [("none", (3,)), ("mixed", (-7, 0.5, 2**40, 1e-3)), ("mixed", (1, 2.0, 3, 4.0)), ("same", (-1,)), ("two", ())],
)
def test_results_are_those_of_wasmtime(module: tuple[wasmtime.Store, Any], name: str, numbers: tuple[Any, ...]) -> None:
    store, functions = module
    call = fast_call(store, functions[name])
    assert call(*numbers) == functions[name](store, *numbers)
    assert call(*numbers) == functions[name](store, *numbers)


def test_numbers_are_packed_and_not_converted_by_wasmtime(module: tuple[wasmtime.Store, Any]) -> None:
    store, functions = module
    call = fast_call(store, functions["same"])
    assert call.__name__ == "packed"
    assert call(5) == 5


def test_addresses_in_the_upper_half_of_the_memory_are_numbers_too(module: tuple[wasmtime.Store, Any]) -> None:
    store, functions = module
    assert fast_call(store, functions["same"])(2**31 + 4) == functions["same"](store, 2**31 + 4)


def test_a_trap_is_raised_and_the_next_call_runs(module: tuple[wasmtime.Store, Any]) -> None:
    store, functions = module
    call = fast_call(store, functions["trap"])
    with pytest.raises(wasmtime.Trap, match="divide by zero"):
        call(0)
    assert call(1) == 1


@pytest.mark.parametrize("numbers", [(), (1, 2), ("one",)])
def test_wrong_arguments_are_refused_as_wasmtime_does(
    module: tuple[wasmtime.Store, Any], numbers: tuple[Any, ...]
) -> None:
    store, functions = module
    with pytest.raises((wasmtime.WasmtimeError, TypeError)):
        fast_call(store, functions["same"])(*numbers)


def test_another_shape_of_the_package_is_called_as_usual(
    module: tuple[wasmtime.Store, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, functions = module

    def refuse(*_: object) -> str:
        raise struct.error

    monkeypatch.setattr(native_calls, "_format", refuse)
    call = fast_call(store, functions["mixed"])
    assert call.__name__ == "plain"
    assert call(1, 2.0, 3, 4.0) == 10.0
