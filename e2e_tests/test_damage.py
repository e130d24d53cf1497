"""Damaged bytes: a file that comes or was kept altered costs one slow visit at most, and never a wrong answer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Route

from e2e_tests.pages import ELSEWHERE, DemoPage
from e2e_tests.test_startup import files_asked_for, took_the_long_way, wait_until_stored

Demo = Callable[..., DemoPage]
SITE = "?backend=wasm&stallTimeout=300"  # large files that are altered on their way come in one piece, and late
# Each way damages the kept snapshot, and what is kept beside it, in place: disks and crashes do such things.
DAMAGE = """async (way) => {
  const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle("webinfer");
  for await (const [name, handle] of folder.entries()) {
    if (!name.endsWith(".bin")) continue;
    const bytes = new Uint8Array(await (await handle.getFile()).arrayBuffer());
    const begin = name.startsWith("webinfer") ? 16 + 8 * new Uint32Array(bytes.buffer, 12, 1)[0] : 0;
    const ways = {
      "zeroed middle": () => bytes.fill(0, bytes.length / 3, (2 * bytes.length) / 3),
      "run table": () => bytes.fill(0xee, 64, 192),
      "flipped bytes": () => {
        for (let i = 0; i < 300; i += 1) bytes[begin + ((i * 7919 * 4099) % (bytes.length - begin))] ^= 255;
      },
      "truncated": () => {},
    };
    ways[way]();
    const writer = await handle.createWritable();
    await writer.write(way === "truncated" ? bytes.subarray(0, 1_000_000) : bytes);
    await writer.close();
  }
}"""


class Altering:
    """Alters bytes of an answer, in the middle of it: of the first `times` answers, or of all."""

    def __init__(self, count: int, times: int = 1_000_000) -> None:
        self.count, self.times, self.asked = count, times, 0

    def __call__(self, route: Route) -> None:
        self.asked += 1
        if self.asked > self.times or route.request.method == "HEAD":
            route.continue_()
            return
        answer = route.fetch(url=route.request.url.replace(ELSEWHERE, "127.0.0.1"))  # only the browser knows that name
        body = bytearray(answer.body())
        for number in range(self.count):
            body[len(body) // 2 + number * 1009] ^= 1
        headers = {k: v for k, v in answer.headers.items() if k not in ("content-encoding", "content-length")}
        route.fulfill(status=200, body=bytes(body), headers=headers)


TUNED = """async () => (await (await caches.open("webinfer")).keys()).some(({ url }) => /\\/tuning-[^/]*$/.test(url))"""


def told(page: DemoPage, words: str) -> list[str]:
    return [line for line in page.console if words in line]


def same_face(result: dict[str, Any], wanted: dict[str, Any]) -> None:
    (face,), (other,) = result["faces"], wanted["faces"]
    assert face["box"] == pytest.approx(other["box"], abs=1e-2)


def test_a_damaged_kept_snapshot_costs_one_visit(demo: Demo) -> None:
    page = demo("?backend=wasm&debug=1", idle_work=True)
    first = page.wait_for_result()
    names = files_asked_for(page)
    for number, way in enumerate(("zeroed middle", "run table", "flipped bytes", "truncated"), 1):
        kept = wait_until_stored(page)
        snapshot = max(kept, key=kept.__getitem__)
        page.page.evaluate(DAMAGE, way)
        names.clear()
        page.page.reload()
        same_face(page.wait_for_result(), first)
        assert names.count(snapshot) == 1, way
        assert len(told(page, f"{snapshot} was kept in this browser and is damaged")) == number
    wait_until_stored(page)
    names.clear()
    page.page.reload()
    same_face(page.wait_for_result(), first)
    assert snapshot not in names
    assert len(told(page, f"{snapshot} was kept in this browser and is damaged")) == number
    assert not took_the_long_way(page)


def test_files_that_come_altered_once_are_fetched_again(demo: Demo) -> None:
    counts = {"pyodide.first.wasm": 1, ".bin": 20, "-threads.wasm": 1, ".tflite": 1}
    altering = {end: Altering(count, times=1) for end, count in counts.items()}

    def alter(route: Route) -> None:
        next(act for end, act in altering.items() if route.request.url.endswith(end))(route)

    page = demo(f"{SITE}&debug=1", broken=(re.compile("(" + "|".join(map(re.escape, counts)) + ")$"), alter))
    assert len(page.wait_for_result()["faces"]) == 1
    for end in counts:
        assert altering[end].asked >= 2, end
        assert end == "pyodide.first.wasm" or told(page, f"{end} came damaged"), end
    assert not took_the_long_way(page)
    page.complaints.clear()  # the browser itself reports the runtime


def test_altered_kernels_are_named_and_trying_again_helps(demo: Demo) -> None:
    file = re.compile(r"/webinfer-\w+(-threads)?\.wasm$")
    page = demo("?backend=wasm", broken=(file, Altering(1)))
    error = page.wait_for_error("integrity")
    assert "webinfer-" in error["message"]
    page.mended = True
    page.page.get_by_role("button", name="Try again").click()
    assert len(page.wait_for_result()["faces"]) == 1


def test_an_altered_runtime_is_named(demo: Demo) -> None:
    page = demo("?backend=wasm", broken=("**/pyodide.first.wasm", Altering(1)))
    assert "pyodide.first.wasm" in page.wait_for_error("integrity")["message"]
    page.complaints.clear()  # the browser itself reports the runtime


def test_the_rest_of_the_runtime_is_asked_for_again_if_it_is_damaged(demo: Demo) -> None:
    rest = Altering(1, times=1)
    page = demo(SITE, broken=("**/pyodide.rest.wasm", rest))
    page.wait_for_result()
    assert page.python("import bz2; str(len(bz2.decompress(bz2.compress(b'rare' * 99))))") == 396
    assert rest.asked >= 2  # the page may keep it for visits without a network meanwhile
    assert page.python("import sqlite3; str(sqlite3.connect(':memory:').execute('select 6 * 7').fetchone()[0])") == 42
    assert page.python("str(len(bytes('数', 'gbk')))") == 2
    assert len(page.wait_for_result()["faces"]) == 1


def test_without_the_rest_of_the_runtime_what_calls_it_ends_python_and_the_page_says_why(demo: Demo) -> None:
    page = demo(SITE, broken=("**/pyodide.rest.wasm", lambda route: route.abort()))
    page.wait_for_result()
    call = "'' if 'x'.encode('utf-7') else ''"  # nothing that pages or their users do
    page.in_worker(f"self.pyodide.runPythonAsync({json.dumps(call)});")
    assert "the rest of Python's runtime" in page.wait_for_error("engine-died")["message"]
    page.mended = True
    assert len(page.wait_for_result(after=1)["faces"]) == 1
    page.complaints.clear()  # Pyodide prints its end to the console


def test_without_a_whole_snapshot_python_starts_the_long_way(demo: Demo) -> None:
    page = demo(f"{SITE}&debug=1", broken=("**/snapshot/*.bin", Altering(20)))
    assert len(page.wait_for_result()["faces"]) == 1
    assert took_the_long_way(page)
    assert "SHA-256" in told(page, "Python starts the long way")[0]


def test_an_altered_wheel_is_named(demo: Demo) -> None:
    alter = Altering(1)

    def answer(route: Route) -> None:
        if route.request.url.endswith(".whl"):
            alter(route)
        else:
            route.fulfill(status=200, body=b"")

    page = demo("?backend=wasm", broken=(re.compile(r"(/snapshot/[^/]*\.bin|/webinfer-[^/]*\.whl)$"), answer))
    assert ".whl" in page.wait_for_error("integrity")["message"]


@pytest.mark.parametrize("script", ["static/engine_worker.js", "pyodide/pyodide.mjs"])
def test_an_altered_script_ends_its_worker_and_the_next_one_runs(demo: Demo, script: str) -> None:
    asked: list[str] = []

    def alter(route: Route) -> None:
        asked.append(route.request.url)
        answer = route.fetch()
        body = answer.body() + (b"\n" if len(asked) <= 2 else b"")  # for the worker, and for the check beside it
        headers = {k: v for k, v in answer.headers.items() if k not in ("content-encoding", "content-length")}
        route.fulfill(status=200, body=body, headers=headers)

    pattern = "**/" + script.split("/")[1].replace(".mjs", ".js")
    page = demo("?backend=wasm", broken=(pattern, alter), idle_work=True)
    assert len(page.wait_for_result()["faces"]) == 1
    page.wait_for("word of it", lambda: told(page, f"{script} came damaged"))
    assert page.wait_for("the engine anew", lambda: "started again" in page.text("#message"))
    assert len(page.wait_for_result(after=1)["faces"]) == 1


def test_scripts_that_cannot_be_checked_because_the_network_has_gone_go_on(demo: Demo) -> None:
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.url)
        if len(asked) == 1:
            route.continue_()
        else:
            route.abort("connectionreset")

    page = demo("?backend=wasm", broken=("**/pyodide.js", answer), idle_work=True)
    page.wait_for_result()
    page.wait_for("word of it", lambda: told(page, "were not checked"))
    page.page.get_by_role("button", name="Sample photo").click()
    assert len(page.wait_for_result(after=1)["faces"]) == 1
    assert not page.error
    page.complaints.clear()  # the browser reports the connection


@pytest.mark.parametrize("script", ["page", "results/detections"])  # named by the page itself; imported by its script
def test_an_altered_script_of_the_page_never_runs_and_trying_again_helps(demo: Demo, script: str) -> None:
    def alter(route: Route) -> None:
        answer = route.fetch()
        headers = {k: v for k, v in answer.headers.items() if k not in ("content-encoding", "content-length")}
        route.fulfill(status=200, body=answer.body() + b"\nglobalThis.altered = true;\n", headers=headers)

    page = demo("?backend=wasm", broken=(f"**/static-*/{script}.js", alter))
    code = page.wait_for("error", lambda: page.error)["code"]
    assert code == ("integrity" if script == "page" else "download")
    assert page.page.evaluate("globalThis.altered") is None
    page.mended = True
    page.page.locator("a:visible, button:visible").filter(has_text="Try again").click()
    assert len(page.wait_for_result()["faces"]) == 1
    page.complaints.clear()  # the browser itself reports the script


def test_a_damaged_tuning_is_ignored_and_told(demo: Demo, photo: Path) -> None:
    page = demo("?backend=wasm&debug=1", idle_work=True)
    first = page.wait_for_result()
    change = """async () => {
      const cache = await caches.open("webinfer");
      let found = 0;
      for (const request of await cache.keys()) {
        const name = request.url.split("/").at(-1);
        if (name.startsWith("plan-")) await cache.delete(request);
        if (!name.startsWith("tuning-")) continue;
        found += 1;
        const bytes = new Uint8Array(await (await cache.match(request)).arrayBuffer());
        bytes[bytes.length - 10] ^= 1;
        await cache.put(request, new Response(bytes));
      }
      return found;
    }"""
    page.wait_for("tuning", lambda: page.page.evaluate(TUNED))
    assert page.without_engine(change)
    same_face(page.wait_for_result(), first)
    page.wait_for("word of it", lambda: told(page, "was stored here and is damaged"))


def test_a_late_part_of_the_engine_is_fetched_when_it_is_imported_and_again_if_it_came_damaged(demo: Demo) -> None:
    altered = Altering(3, times=1)
    page = demo("?backend=wasm", broken=("**/late-onnx.bin", altered))
    page.wait_for_result()
    assert altered.asked == 0, "a page without such a model needs none of it"
    code = "import json, webinfer.importers.onnx.convert as onnx; json.dumps([onnx.__file__, len(onnx.CONVERTERS)])"
    file, converters = page.python(code)
    assert file.startswith("/lib/late/")
    assert file.endswith(".pyc"), "nobody waits for a compiler"
    assert converters > 100
    assert altered.asked == 2
    page.python("import json, webinfer.importers.onnx.random, webinfer.importers.keras.convert; json.dumps(1)")
    assert altered.asked == 2, "one file has all of a format"


def test_a_late_part_that_stays_damaged_is_an_error_and_never_used(demo: Demo) -> None:
    page = demo("?backend=wasm", broken=("**/late-onnx.bin", Altering(1)))
    page.wait_for_result()
    code = """
import json
from webinfer.errors import IntegrityError
try:
    import webinfer.importers.onnx
except IntegrityError as error:
    said = str(error)
json.dumps(said)"""
    assert "late-onnx.bin, a part of the engine, arrived damaged twice" in page.python(code)
    page.mended = True
    page.python("import json, webinfer.importers.onnx.convert; json.dumps(1)")
