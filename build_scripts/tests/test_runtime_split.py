"""Python's runtime in two modules: they compute what the whole computes; the rest is asked for when it is called."""

import itertools
import json
import struct
from typing import Any

import pytest

wasmtime = pytest.importorskip("wasmtime")

from build_scripts.paths import NODE_MODULES  # noqa: E402
from build_scripts.site import runtime_split  # noqa: E402
from build_scripts.site.late_linking import ALL, named_exports  # noqa: E402
from build_scripts.site.wasm_sections import Module, joined  # noqa: E402

WHOLE = """(module
  (import "env" "double" (func $double (param i32) (result i32)))
  (table (export "__indirect_function_table") 2 2 funcref)
  (memory (export "memory") 1 4)
  (global $stack (mut i32) (i32.const 1000))
  (global $step i32 (i32.const 7))
  (elem (i32.const 0) $used $rare)
  (data (i32.const 16) "\\2a")
  (data (i32.const 20) "\\07")
  (data (i32.const 900) "\\08")
  (func $used (export "used") (param $x i32) (result i32) (i32.add (local.get $x) (i32.load8_u (i32.const 16))))
  (func $rare (export "rare") (param $x i32) (result i32)
    (global.set $stack (i32.sub (global.get $stack) (global.get $step)))
    (i32.store8 (i32.const 16) (local.get $x))
    (call $used (call $double (local.get $x)))
    (i32.add (call_indirect (param i32) (result i32) (i32.const 1) (i32.const 0))))
  (func (export "never") (param i64 f64) (result f64) (f64.add (local.get 1) (f64.convert_i64_s (local.get 0))))
  (func (export "stack") (result i32) (global.get $stack)))"""
USED = frozenset({1, 4})  # by number: `used` and `stack`; the import is 0


def pieces_of(file: bytes) -> list[tuple[int, bytes]]:
    """Addresses and bytes, as web/static/startup/python_snapshot.js reads them."""
    (count,) = struct.unpack_from("<I", file)
    places = list(struct.iter_unpack("<2I", file[4 : 4 + 8 * count]))
    at = list(itertools.accumulate((length for _, length in places), initial=4 + 8 * count))
    assert at[-1] == len(file)
    return [(begin, file[offset : offset + length]) for (begin, length), offset in zip(places, at, strict=False)]


class Page:
    """Both modules in wasmtime, as web/static/startup/python_rest.js puts them together."""

    def __init__(self, whole: bytes, named: frozenset[str] | None = None) -> None:
        self.store, self.fetched = wasmtime.Store(), 0
        i32 = wasmtime.ValType.i32()
        double = wasmtime.Func(self.store, wasmtime.FuncType([i32], [i32]), lambda x: 2 * x)
        *parts, data = runtime_split.split(whole, USED, named)
        self.listed = parts[1].partition(ALL.encode())[2]
        first, rest = (wasmtime.Module(self.store.engine, part) for part in parts)
        self.exports = wasmtime.Instance(self.store, first, [double]).exports(self.store)
        for begin, piece in pieces_of(data):
            self.exports["memory"].write(self.store, piece, begin)

        def fetch() -> None:
            self.fetched += 1
            given = [self.exports[row.name] if row.name == "memory" else self.exports[f"webinfer.{row.name}"]
                     for row in rest.imports[1:]]  # fmt: skip
            wasmtime.Instance(self.store, rest, [double, *given])

        self.exports["webinfer.table"].set(self.store, 0, wasmtime.Func(self.store, wasmtime.FuncType([], []), fetch))

    def call(self, name: str, *args: Any) -> Any:
        """What an exported function returns."""
        return self.exports[name](self.store, *args)


def test_the_rest_is_asked_for_once_by_the_first_call_of_one_of_its_functions() -> None:
    page = Page(bytes(wasmtime.wat2wasm(WHOLE)))
    assert (page.call("used", 1), page.call("stack"), page.fetched) == (43, 1000, 0)
    assert page.call("rare", 5) == (5 + 10) + (5 + 1)
    assert (page.call("stack"), page.fetched) == (993, 1)
    assert page.call("never", -3, 0.5) == -2.5
    assert page.call("used", 1) == 6
    assert page.fetched == 1


def test_what_nobody_names_is_exported_by_a_list_in_the_rest() -> None:
    whole = WHOLE.replace("(global $step i32", '(global $step (export "step") i32')
    page = Page(bytes(wasmtime.wat2wasm(whole)), frozenset({"memory", "rare"}))
    assert {"memory", "rare", "__indirect_function_table"} <= set(page.exports)
    assert not {"used", "never", "stack", "step"} & set(page.exports)
    listed = json.loads(page.listed)
    assert listed["constants"] == {"step": 7}
    assert page.call("rare", 5) == 21  # brings the rest
    functions = {name: page.exports["webinfer.table"].get(page.store, i) for name, i in listed["functions"].items()}
    assert sorted(functions) == ["never", "stack", "used"]
    assert (functions["stack"](page.store), functions["never"](page.store, -3, 0.5)) == (993, -2.5)


def test_the_glue_code_names_what_it_needs() -> None:
    assert named_exports('wasmExports["malloc"](8);wasmExports.free(x)') is None
    assert named_exports(f'wasmExports["malloc"](8);wasmExports.free(x);a["{ALL}"]') == {"malloc", "free"}


def test_functions_note_that_they_ran() -> None:
    store = wasmtime.Store()
    i32 = wasmtime.ValType.i32()
    double = wasmtime.Func(store, wasmtime.FuncType([i32], [i32]), lambda x: 2 * x)
    module = wasmtime.Module(store.engine, runtime_split.counting(bytes(wasmtime.wat2wasm(WHOLE))))
    exports = wasmtime.Instance(store, module, [double]).exports(store)
    exports["rare"](store, 1)
    assert [i for i in range(1, 5) if exports[f"webinfer.ran{i}"].value(store)] == [1, 2]


def test_data_that_lie_close_together_come_as_one_piece() -> None:
    assert joined([(16, b"a"), (20, b"bc"), (23, b"d")], 3) == [(16, b"a\0\0\0bc\0d")]
    assert joined([(-5, b"a"), (20, b"b")], 3) == [(-5, b"a"), (20, b"b")]
    with pytest.raises(ValueError, match="behind"):
        joined([(16, b"ab"), (17, b"c")], 3)
    first, _, data = runtime_split.split(bytes(wasmtime.wat2wasm(WHOLE)), USED)
    assert pieces_of(data) == [(16, b"*\0\0\0\x07"), (900, b"\x08")]
    assert Module(first).joined_data(3) == []


def test_the_profile_is_of_the_runtime_that_is_installed() -> None:
    path = NODE_MODULES / "pyodide" / "pyodide.asm.wasm"
    if not path.is_file():
        pytest.skip("Pyodide is not installed")
    whole = path.read_bytes()
    used = runtime_split.recorded(whole)
    assert used, "run `python3 -m build_scripts build runtime-profile`: without it the runtime is one file"
    assert Module(whole).written({}) == whole
    ran = {name for name, i in Module(whole).exported_functions.items() if i in used}
    assert {"PyDict_SetItem", "PyLong_FromLong", "PyErr_SetString", "memcpy", "malloc"} <= ran
    assert not {"lzma_code", "sqlite3_exec", "ZSTD_compress"} & ran
