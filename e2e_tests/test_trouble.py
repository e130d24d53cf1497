"""What the page does when something is missing or breaks: it says so readably, and goes on where it can."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route

from e2e_tests.pages import DemoPage
from e2e_tests.test_damage import Altering

Demo = Callable[..., DemoPage]
SILENCE_S = 60
THREADS_BY_NUMBER = """
import json, webinfer
model = "blazeface_short_range"
try:
    await webinfer.load(model, backend="wasm", threads=4, strict=True)
    error = ""
except webinfer.IsolationError as caught:
    error = str(caught)
with await webinfer.load(model, backend="wasm", threads=4) as session:
    answer = json.dumps([error, session.choice])
answer
"""


@pytest.mark.parametrize("query", ["", "?backend=webgpu"])
def test_without_webgpu_the_page_runs_on_wasm_and_says_so(demo: Demo, browser_without_gpu: Browser, query: str) -> None:
    page = demo(query, browser=browser_without_gpu)
    page.wait_until_ready()
    result = page.wait_for("result", lambda: page.result)
    assert result["backend"] == "wasm"
    assert len(result["faces"]) == 1
    assert "webgpu" in result["reason"].lower()
    if query:
        assert "wasm" in page.wait_for_error("backend-unavailable")["message"]
    page.open_tools()
    page.page.locator("#capabilities-box summary").click()
    page.page.locator("#capabilities .absent", has_text="webgpu").wait_for()  # behind the first result, with "auto"


def test_without_isolation_the_page_works_and_says_why_it_has_one_thread(demo: Demo, bare_address: str) -> None:
    page = demo("?backend=wasm", address=bare_address)
    assert page.page.evaluate("crossOriginIsolated") is False
    assert len(page.wait_for_result()["faces"]) == 1
    page.open_tools()
    page.page.locator("#capabilities-box summary").click()
    text = page.text("#capabilities")
    assert "one thread" in text
    assert "Cross-Origin-Opener-Policy" in text


def test_over_plain_http_from_another_machine_the_page_works_and_files_are_still_checked(
    demo: Demo, insecure_address: str
) -> None:
    page = demo("", address=insecure_address)
    assert page.page.evaluate("[isSecureContext, Boolean(crypto.subtle), Boolean(navigator.gpu)]") == [False] * 3
    result = page.wait_for_result()
    assert (result["backend"], len(result["faces"])) == ("wasm", 1)
    page.open_tools()
    page.page.locator("#capabilities-box summary").click()
    assert "so one thread is used\n\nopen the page over https or as localhost" in page.text("#capabilities")
    page.complaints.clear()  # Chromium says that it ignores the headers that isolate
    page = demo("", address=insecure_address, broken=("**/*.tflite", Altering(1)))
    assert ".tflite" in page.wait_for_error("integrity")["message"]
    page.complaints.clear()


def test_without_isolation_strict_threads_are_a_typed_error_and_others_a_reason(demo: Demo, bare_address: str) -> None:
    page = demo("?backend=wasm", address=bare_address)
    page.wait_for_result()
    error, choice = page.python(THREADS_BY_NUMBER)
    assert error.startswith("threads=4 was asked for, but the page is not cross-origin isolated; ")
    assert choice == "wasm was asked for; on one thread, because the page is not cross-origin isolated"


def test_the_page_is_isolated_as_served(face_page: DemoPage) -> None:
    assert face_page.page.evaluate("crossOriginIsolated") is True


@pytest.mark.parametrize("file", ["pyodide.js", "pyodide.first.wasm", "engine_worker.js"])
def test_a_missing_file_is_named_and_trying_again_helps(demo: Demo, file: str) -> None:
    page = demo(broken=(f"**/{file}", lambda route: route.fulfill(status=404, body="not here")))
    error = page.wait_for("error", lambda: page.error)
    assert error["code"] == ("worker" if file == "engine_worker.js" else "download")
    assert file in error["message"]
    page.mended = True
    page.page.get_by_role("button", name="Try again").click()
    assert len(page.wait_for_result()["faces"]) == 1
    page.complaints.clear()  # the browser reports the 404 itself


def test_a_page_without_its_script_has_a_way_on_too(demo: Demo) -> None:
    page = demo("?backend=wasm", broken=("**/page.js", lambda route: route.abort("connectionreset")))
    told = page.page.locator("#unstarted")
    page.wait_for("message", told.is_visible)
    page.mended = True
    told.get_by_role("link", name="Try again").click()
    assert len(page.wait_for_result()["faces"]) == 1
    assert told.count() == 0
    page.complaints.clear()  # the browser reports what did not come


def test_a_broken_connection_is_said(demo: Demo) -> None:
    page = demo(broken=("**/pyodide.first.wasm", lambda route: route.abort("connectionreset")))
    assert "pyodide.first.wasm" in page.wait_for_error("download")["message"]
    page.complaints.clear()


def test_an_unknown_model_is_answered_with_the_names_there_are(demo: Demo) -> None:
    page = demo("?model=no_such_model")
    message = page.wait_for_error("model-unknown")["message"]
    assert "no_such_model" in message
    assert "blazeface_short_range" in message


def test_html_in_an_address_stays_text(demo: Demo) -> None:
    page = demo("?model=<img src=x onerror=alert(1)>")
    assert "<img src=x" in page.wait_for_error("model-unknown")["message"]
    assert page.page.locator("#message img").count() == 0


@pytest.mark.parametrize(
    ("name", "content"), [("empty", b""), ("HTML", b"<!doctype html><p>404"), ("random bytes", bytes(range(256)) * 40)]
)
def test_a_model_that_is_none_is_refused(demo: Demo, name: str, content: bytes) -> None:
    def answer(route: Route) -> None:
        route.fulfill(status=200, body=content, content_type="application/octet-stream")

    page = demo(broken=("**/*.tflite", answer))
    error = page.wait_for("error", lambda: page.error)
    assert error["code"] in ("model-format", "integrity"), name
    page.mended = True
    page.page.get_by_role("button", name="Try again").click()
    assert len(page.wait_for_result()["faces"]) == 1


def test_a_dead_interpreter_is_replaced(demo: Demo, photo: Path) -> None:
    page = demo("?backend=wasm")
    page.wait_for_result()
    # Reads outside of the interpreter's memory: a WebAssembly trap, after which Pyodide refuses to go on.
    page.in_worker("try { pyodide.runPython('import ctypes; ctypes.string_at(0xFFFFFFF0, 64)') } catch {}")
    assert "being started again" in page.wait_for_error("engine-died")["message"]
    page.wait_until_ready()
    assert "was started again" in page.wait_for_error("engine-died")["message"]
    page.choose(photo)
    result = page.wait_for("result", lambda: page.result if page.result["source"] == "picture" else None)
    assert len(result["faces"]) == 1
    page.complaints.clear()  # Pyodide prints its end to the console


def test_a_silent_engine_is_replaced(demo: Demo, photo: Path) -> None:
    page = demo("?backend=wasm&stallTimeout=8")
    count = page.wait_for_result()["count"]
    page.in_worker("for (;;);")
    page.choose(photo)  # must not be lost
    said = page.wait_for("message", lambda: page.error, SILENCE_S)
    assert said["code"] == "engine-silent"
    assert "for 10 seconds" in said["message"]
    assert page.wait_for_result(after=count)["source"] == "picture"


def test_a_page_of_another_version_is_told_to_reload(face_page: DemoPage) -> None:
    answer = face_page.page.evaluate(
        """() => new Promise((resolve) => {
          const worker = new Worker(JSON.parse(document.getElementById("manifest").textContent)
            .assets["static/engine_worker.js"].url, { type: "module" });
          worker.onmessage = ({ data }) => { worker.terminate(); resolve(data); };
          worker.postMessage({ v: 99, type: "start" });
        })"""
    )
    assert answer["code"] == "protocol"
    assert "reload" in answer["message"]


# Keeps every engine's worker that the page makes, ended ones too.
KEEP_WORKERS = """globalThis.kept = [];
globalThis.Worker = class extends Worker {
  constructor(...given) {
    super(...given);
    if (given[1].name === "webinfer engine") kept.push(this);
  }
};"""
SPEAK_LATE = """() => {
  const [ended] = kept;
  const data = { v: 4, type: "error", code: "engine-died", message: "late", fatal: true };
  for (const type of ["message", "messageerror"]) ended.dispatchEvent(new MessageEvent(type, { data }));
  ended.dispatchEvent(new ErrorEvent("error", { message: "late" }));
}"""


def test_what_an_ended_worker_still_says_is_not_heard(demo: Demo) -> None:
    page = demo("?backend=wasm", init_script=KEEP_WORKERS)
    count = page.wait_for_result()["count"]
    page.end_worker()
    assert "ended without an error message" in page.wait_for_error("engine-died", "being started again")["message"]
    page.wait_for_error("engine-died", "was started again")
    count = page.wait_for("result", lambda: page.count if page.count > count else None)
    page.page.evaluate(SPEAK_LATE)
    page.page.get_by_role("button", name="Sample photo").click()
    assert page.wait_for("result", lambda: page.count > count)
    assert page.text("#backend").startswith("Runs on")
    assert page.page.evaluate("kept.length") == 2


def test_a_worker_that_ends_while_it_starts_is_noticed_at_once(demo: Demo) -> None:
    page = demo("?backend=wasm", wait_until="commit", broken=("**/*.tflite", lambda route: None))  # it goes on starting
    for words in (
        "being started again",
        "ended without an error message",
    ):  # it is started again once without being asked
        page.end_worker()
        page.wait_for_error("engine-died", words)  # not "engine-silent", which it is only after two minutes
    page.mended = True
    page.page.get_by_role("button", name="Try again").click()
    assert len(page.wait_for_result()["faces"]) == 1


def test_the_way_on_stays_until_it_is_taken(demo: Demo, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("words")
    page = demo("?backend=wasm", broken=("**/engine_worker.js", lambda route: route.fulfill(status=404)))
    page.wait_for_error("worker")
    again = page.page.get_by_role("button", name="Try again")
    assert page.page.evaluate("document.activeElement.id") == "retry"
    page.page.get_by_role("button", name="Sample photo").click()
    assert again.is_visible()
    page.choose(tmp_path / "notes.txt")
    page.wait_for_error("bad-image")
    assert again.is_visible()
    page.page.get_by_role("button", name="Close").click()
    assert "engine_worker.js" in page.wait_for_error("worker")["message"]
    page.mended = True
    again.focus()
    page.page.keyboard.press("Enter")
    assert page.page.evaluate("document.activeElement.id") == "loading"
    assert len(page.wait_for_result()["faces"]) == 1
    page.complaints.clear()  # the browser reports the 404 itself
