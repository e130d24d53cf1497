"""Calls of wasmtime's functions with the types of their arguments read once.

`wasmtime.Func` reads them and converts one argument after the other in each call: 75 us for 4 numbers, 250 us for 20
(wasmtime 50, Xeon 2.5 GHz), which is a tenth of a face detection. Here the numbers are packed at once and go the way
of wasmtime's C API that checks no types. The Python package calls that way private: where it has another shape than
expected, functions are called as usual.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Any

import wasmtime

Call = Callable[..., Any]
LETTERS = {"i32": "i", "i64": "q", "f32": "f", "f64": "d"}


def fast_call(store: wasmtime.Store, function: wasmtime.Func) -> Call:
    """What calls the function with numbers and returns its result, for as long as the store is open.

    It raises what `wasmtime.Func` raises.
    """

    def plain(*numbers: int | float) -> Any:
        return function(store, *numbers)

    try:
        return _packed(store, function, plain)
    except (AttributeError, ImportError, KeyError, TypeError, ValueError, struct.error):
        return plain


def _packed(store: wasmtime.Store, function: wasmtime.Func, plain: Call) -> Call:
    from wasmtime import _ffi as ffi

    types = function.type(store)
    size = ctypes.sizeof(ffi.wasmtime_val_raw_t)
    given, results = ([_format(kind, size) for kind in kinds] for kinds in (types.params, types.results))
    if len(results) > 1:
        return plain
    pack, unpack = struct.Struct(f"={''.join(given)}"), struct.Struct(f"={''.join(results)}")
    count = max(len(given), len(results))
    cells = (ffi.wasmtime_val_raw_t * max(count, 1))()
    context, pointer, call = store._context(), ctypes.byref(function._func), ffi.wasmtime_func_call_unchecked
    trap_pointer, trapped, failed = (
        ctypes.POINTER(ffi.wasm_trap_t),
        wasmtime.Trap._from_ptr,
        wasmtime.WasmtimeError._from_ptr,
    )

    def packed(*numbers: int | float) -> Any:
        try:
            pack.pack_into(cells, 0, *numbers)
        except struct.error:  # an address in the upper half of the memory, or a number that does not belong here
            try:
                pack.pack_into(cells, 0, *map(_wrapped, numbers))
            except struct.error:
                return plain(*numbers)
        trap = trap_pointer()
        error = call(context, pointer, cells, count, ctypes.byref(trap))
        if error:
            raise failed(error)
        if trap:
            raise trapped(trap)
        return unpack.unpack_from(cells)[0] if results else None

    return packed


def _wrapped(number: int | float) -> int | float:
    """An address as the signed number of the same 32 bits."""
    upper = isinstance(number, int) and 1 << 31 <= number < 1 << 32
    return number - (1 << 32) if upper else number


def _format(kind: Any, size: int) -> str:
    """How `struct` packs one value in a cell of so many bytes."""
    letter = LETTERS[str(kind)]
    return f"{letter}{size - struct.calcsize('=' + letter)}x"
