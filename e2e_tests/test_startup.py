"""Python starts from the memory snapshot, from the stored one on later visits, and without one where it must."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Request, Route

from e2e_tests.pages import DemoPage

Demo = Callable[..., DemoPage]
LONG_WAY = "Python starts the long way"
KEPT = """async () => {
  const root = await navigator.storage.getDirectory();
  const folder = await root.getDirectoryHandle("webinfer", { create: true });
  const sizes = {};
  for await (const [name, handle] of folder.entries()) sizes[name] = (await handle.getFile()).size;
  return sizes;
}"""
SITE_KEPT = """async () => {
  if ((await navigator.locks.query()).held.some(({ name }) => name === "webinfer site")) return false; // at it
  const names = (await caches.keys()).filter((name) => name.startsWith("webinfer site "));
  const homes = await Promise.all(names.map(async (name) => (await caches.open(name)).match("/"))); // the last file
  return homes.some(Boolean);
}"""
PLANS = """async (spoil) => {
  const cache = await caches.open("webinfer");
  const sizes = {};
  for (const request of await cache.keys()) {
    const name = request.url.split("/").at(-1);
    if (!name.startsWith("plan-")) continue;
    const bytes = new Uint8Array(await (await cache.match(request)).arrayBuffer());
    if (spoil) bytes[bytes.length >> 1] ^= 4;
    if (spoil) await cache.put(request, new Response(bytes));
    sizes[name] = bytes.length;
  }
  return sizes;
}"""

SUM = """async () => {
  const cache = await caches.open("webinfer");
  let sum = 0;
  for (const request of await cache.keys()) {
    if (!request.url.split("/").at(-1).startsWith("plan-")) continue;
    const answer = await cache.match(request);
    if (answer) for (const byte of new Uint8Array(await answer.arrayBuffer())) sum += byte;
  }
  return sum;
}"""

WEIGHTS = "performance.getEntriesByName('webinfer weights started').length"


def took_the_long_way(page: DemoPage) -> bool:
    return any(LONG_WAY in line for line in page.console)


def files_asked_for(page: DemoPage) -> list[str]:
    """The names of the files that the page and its worker ask for from now on.

    Not the rest of the runtime, unless Python waits for it: a second after the start each worker brings it anyway.
    """
    names: list[str] = []

    def heard(request: Request) -> None:
        name = request.url.split("?")[0].rsplit("/", 1)[-1]
        if not name.endswith(".rest.wasm") or request.resource_type == "xhr":
            names.append(name)

    page.context.on("request", heard)
    return names


def wait_until_stored(page: DemoPage) -> dict[str, int]:
    """The sizes of what the browser keeps, once a snapshot is among it, the warm-up is over and the site is kept, too.

    That is the last that a worker does by itself. Until then it asks for the page and its files again; a test that
    loads the page anew would take these requests for the next visit's.
    """

    def ask() -> dict[str, int] | None:
        sizes: dict[str, int] = page.page.evaluate(KEPT)
        return sizes if any(name.endswith(".warm") for name in sizes) else None

    stored: dict[str, int] = page.wait_for("stored snapshot", ask)
    page.wait_for("kept site", lambda: page.page.evaluate(SITE_KEPT))
    return stored


def test_a_first_visit_needs_neither_standard_library_nor_wheels_nor_the_rest_of_the_runtime(demo: Demo) -> None:
    refused: list[str] = []

    def refuse(route: Route) -> None:
        refused.append(route.request.url)
        route.abort()

    page = demo("?backend=wasm&debug=1", broken=(re.compile(r"(\.whl|\.zip|\.rest\.wasm|\.asm\.wasm)$"), refuse))
    assert len(page.wait_for_result()["faces"]) == 1
    assert not took_the_long_way(page)
    assert not refused


def test_a_second_visit_reads_the_stored_snapshot(demo: Demo) -> None:
    page = demo("?backend=wasm&debug=1", idle_work=True)
    first = page.wait_for_result()
    stored = wait_until_stored(page)
    assert max(stored.values()) > 1_000_000
    names = files_asked_for(page)
    page.page.reload()
    second = page.wait_for_result()
    assert second["faces"][0]["box"] == pytest.approx(first["faces"][0]["box"])
    assert names[0] == "face-detection"
    assert not [name for name in names if name in stored or "rest" in name]
    assert not took_the_long_way(page)


def test_without_a_snapshot_python_starts_the_long_way_and_says_nothing_of_it(demo: Demo) -> None:
    stdlib: list[str] = []

    def answer(route: Route) -> None:
        if route.request.url.endswith(".zip"):
            stdlib.append(route.request.url)
            route.continue_()
        else:
            route.abort("connectionreset")

    page = demo("?backend=wasm", broken=(re.compile(r"(/snapshot/[^/]*\.bin|/python_stdlib\.zip)$"), answer))
    assert len(page.wait_for_result()["faces"]) == 1
    assert stdlib
    assert not took_the_long_way(page)  # which is said with debug=1
    page.complaints[:] = [c for c in page.complaints if "ERR_CONNECTION_RESET" not in c]


def test_with_a_snapshot_of_another_version_python_starts_the_long_way(demo: Demo) -> None:
    other = b"WINS\x63\x00\x00\x00" + bytes(100)

    def answer(route: Route) -> None:
        route.fulfill(status=200, body=other, content_type="application/octet-stream")

    page = demo("?backend=wasm&debug=1", broken=("**/snapshot/*.bin", answer))
    assert len(page.wait_for_result()["faces"]) == 1
    assert took_the_long_way(page)


def test_python_still_has_its_whole_library(demo: Demo) -> None:
    page = demo("?backend=wasm")
    page.wait_for_result()
    engine = page.worker
    assert engine.evaluate(
        "pyodide.runPython('import tarfile, inspect; inspect.getsource(tarfile.TarInfo)')"
    ).startswith("class")
    assert "async def load" in engine.evaluate(
        "pyodide.runPython('import webinfer.session.loading as s; inspect.getsource(s)')"
    )
    deferred = (
        "import html, ipaddress, ssl; f'{html.escape(chr(60))} {ipaddress.ip_address(1)} {ssl.SSLError.__name__}'"
    )
    assert engine.evaluate(f'pyodide.runPython("{deferred}")') == "&lt; 0.0.0.1 SSLError"
    code = "pyodide.loadPackage('micropip').then(() => pyodide.runPython('import micropip; micropip.__name__'))"
    assert engine.evaluate(code) == "micropip"


def test_functions_of_the_runtime_are_linked_when_a_library_asks_for_them(demo: Demo) -> None:
    page = demo("?backend=wasm")
    page.wait_for_result()
    code = """
        import ctypes
        number = ctypes.pythonapi.PyLong_FromLong
        number.restype = ctypes.py_object
        called = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda x: x + 1)
        f"{number(42)} {called(4)} {ctypes.CDLL(None).strlen(b'hello')}"
    """
    assert page.worker.evaluate("(code) => pyodide.runPython(code)", code) == "42 5 5"


def test_restored_interpreters_do_not_share_their_chance(demo: Demo) -> None:
    drawn = set()
    for _ in range(2):
        page = demo("?backend=wasm")
        page.wait_for_result()
        drawn.add(page.worker.evaluate("pyodide.runPython('import random; random.random()')"))
    assert len(drawn) == 2


def same_face(result: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Up to the last bits, which are another kernel's where the tuner found one meanwhile."""
    (face,), (other,) = result["faces"], wanted["faces"]
    assert face["box"] == pytest.approx(other["box"], abs=1e-2)
    assert face["score"] == pytest.approx(other["score"], abs=1e-4)


def plan_of_visit(page: DemoPage, since: int = 0) -> str:
    """What the engine said last about a plan that was stored, with debug=1, of the console's lines `since` this one."""

    def ask() -> list[str]:
        return [line for line in page.console[since:] if "plan of an earlier visit" in line]

    said: list[str] = page.wait_for("word of the plan", ask)
    return said[-1]


def wait_for_plan(page: DemoPage) -> dict[str, int]:
    """The sizes of the plans that are stored, once there is one."""
    sizes: dict[str, int] = page.wait_for("stored plan", lambda: page.page.evaluate(PLANS, False) or None)
    return sizes


@pytest.mark.parametrize("backend", ["wasm", "webgpu"])
def test_a_second_visit_runs_the_stored_plan(demo: Demo, backend: str) -> None:
    page = demo(f"?backend={backend}&debug=1", idle_work=True)
    first = page.wait_for_result()
    assert "no plan" in plan_of_visit(page)
    (size,) = wait_for_plan(page).values()
    assert 100_000 < size < 1_000_000
    tried = any("threads are slower" in line for line in page.console)  # and one was faster: it is tried again then
    names, lines = files_asked_for(page), len(page.console)
    page.page.reload()
    second = page.wait_for_result()
    assert "the plan" in plan_of_visit(page, lines)
    same_face(second, first)
    if backend == "wasm" and not tried:
        assert page.worker.evaluate(WEIGHTS) == 0, "the plan was not used"
        builds = [name for name in names if name.startswith("webinfer-") and name.endswith(".wasm")]
        assert len(builds) == 1, builds


def test_a_damaged_stored_plan_is_ignored_and_made_anew(demo: Demo) -> None:
    page = demo("?backend=wasm&debug=1", idle_work=True)
    first = page.wait_for_result()
    wait_for_plan(page)
    lines = len(page.console)
    spoiled = page.without_engine(f"async () => {{ await ({PLANS})(true); return ({SUM})(); }}")
    same_face(page.wait_for_result(), first)
    assert "no plan" in plan_of_visit(page, lines)
    assert [line for line in page.console if "was stored here and is damaged" in line]
    page.wait_for("another plan", lambda: page.page.evaluate(SUM) not in (0, spoiled))
    lines = len(page.console)
    page.page.reload()
    same_face(page.wait_for_result(), first)
    assert "the plan" in plan_of_visit(page, lines)


@pytest.mark.parametrize("backend", ["wasm", "webgpu"])
def test_a_first_visit_runs_nothing_that_the_first_part_of_the_runtime_lacks(demo: Demo, backend: str) -> None:
    """Else Python waits for the rest: `python3 -m build_scripts build runtime-profile` records anew what pages run."""
    asked: list[str] = []

    def note(route: Route) -> None:
        asked.append(route.request.resource_type)
        route.continue_()

    page = demo(f"?backend={backend}", broken=("**/pyodide.rest.wasm", note))
    page.wait_for_result()
    assert not asked


LIBRARY = """(module
  (import "env" "memory" (memory 1))
  (import "env" "labs" (func $labs (param i32) (result i32)))
  (import "env" "lzma_crc32" (func $crc (param i32 i32 i32) (result i32)))
  (import "GOT.mem" "_ZTVSt12bad_any_cast" (global $table (mut i32)))
  (import "GOT.mem" "PyExc_KeyError" (global $error (mut i32)))
  (func (export "answers") (result i32)
    (i32.and
      (i32.and (i32.eq (call $labs (i32.const -42)) (i32.const 42))
               (i32.eq (call $crc (i32.const 0) (i32.const 0) (i32.const 7)) (i32.const 7)))
      (i32.and (i32.ne (global.get $table) (i32.const 0))
               (i32.ne (i32.load (global.get $error)) (i32.const 0))))))"""
SHARED_LIBRARY = b"\x00\x0f\x08dylink.0\x01\x04\x00\x00\x00\x00"


def test_other_modules_of_machine_code_find_what_the_first_part_of_the_runtime_does_not_export(demo: Demo) -> None:
    wasmtime = pytest.importorskip("wasmtime")
    code = bytes(wasmtime.wat2wasm(LIBRARY))
    page = demo("?backend=wasm")
    page.wait_for_result()
    load = """(bytes) => {
      pyodide.FS.writeFile("/tmp/library.so", Uint8Array.from(bytes));
      const found = {};
      pyodide._module.loadDynamicLibrary("/tmp/library.so", { nodelete: true, fs: pyodide.FS }, found);
      return (found.answers ?? pyodide._module._answers)();
    }"""
    assert page.worker.evaluate(load, list(code[:8] + SHARED_LIBRARY + code[8:])) == 1
