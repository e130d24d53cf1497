"""The Python behind a demo: opened, changed, run, stopped, reset, carried by links; its editor by keyboard."""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Route

from build_scripts.paths import IMAGES, WEB
from e2e_tests.pages import DemoPage
from e2e_tests.test_studio import STUDIO, files_of
from server import studio
from server.demo_code import GIVEN, script_of

Demo = Callable[..., DemoPage]


READY = [demo for demo in STUDIO.demos if demo.slug in ("face-detection", "segmentation", "sentences", "files")]


@pytest.mark.parametrize("demo", READY, ids=lambda demo: demo.slug)
def test_the_script_on_a_page_runs_as_it_stands(
    demo: studio.Demo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing := files_of(demo):
        pytest.skip(f"fetched when the demo is opened, and not here yet: {', '.join(sorted(missing))}")
    options = {**demo.fixed, **{option.name: option.value for option in demo.options}}
    folder = IMAGES if demo.sample.startswith("images/") else WEB / "static"
    if demo.sample:
        (tmp_path / GIVEN[demo.source]).write_bytes((folder / Path(demo.sample).name).read_bytes())
    monkeypatch.chdir(tmp_path)
    exec(compile(script_of(demo, options), demo.slug, "exec"), {})
    assert min(Image.open(tmp_path / "results.png").size) > 100


def link(code: str) -> str:
    """The fragment of an address that carries code."""
    packer = zlib.compressobj(9, wbits=-15)
    packed = packer.compress(code.encode()) + packer.flush()
    return "#code=" + base64.urlsafe_b64encode(packed).decode().rstrip("=")


class CodePage:
    """A page whose code is open, or opens by its address."""

    def __init__(self, page: DemoPage, opened: bool = False) -> None:
        self.demo, self.page = page, page.page
        if not opened:
            self.page.locator("#code-box summary").click()
        self.editor = self.page.locator("#code-body .cm-content")
        self.editor.wait_for()

    @property
    def lines(self) -> str:
        shown = self.page.locator("#code-body .cm-line").all_inner_texts()  # an empty line is shown as a break
        return "\n".join(line.removesuffix("\n") for line in shown)

    @property
    def status(self) -> str:
        return self.demo.text("#code-body [role=status].quiet")

    def write(self, code: str) -> None:
        self.editor.press("ControlOrMeta+a")
        self.page.keyboard.insert_text(code)

    def press(self, name: str) -> None:
        self.page.locator("#code-body").get_by_role("button", name=name, exact=True).click()

    def ended(self, words: str) -> str:
        self.demo.wait_for(f"the end of the code: {words}", lambda: words in self.status)
        return self.demo.text("#code-body pre")


def test_the_editor_comes_when_opened_and_its_lines_run_fail_and_come_back(demo: Demo) -> None:
    shown = demo("?backend=wasm", broken=("**/code_panel.js", Route.abort))
    shown.wait_for_result()
    assert not [url for url in _loaded(shown) if "code_panel" in url]
    shown.page.locator("#code-box summary").click()
    shown.wait_for_error("download", "editor could not be loaded")
    shown.complaints.clear()
    shown.mended = True
    page = CodePage(shown)
    lines = page.lines
    assert 10 <= lines.count("\n") + 1 <= 20
    page.press("Run")
    output = page.ended("Ran in")
    assert "Faces found: 1" in output
    assert page.page.evaluate("document.querySelector('#code-body .code-editor').shadowRoot.adoptedStyleSheets.length")

    page.write("import statistics\n\nfaces = await task.run(picture)\n")
    page.editor.press("ControlOrMeta+Enter")
    output = page.ended("Line 3: NameError")
    assert 'File "your code", line 3' in output
    assert ".py" not in output
    assert page.page.locator("#code-body .cm-line.mistake").inner_text().startswith("faces =")
    assert page.page.locator("#code-body .cm-gutterElement.mistake").inner_text() == "3"
    page.press("Go to line 3")
    page.page.wait_for_selector("#code-body .cm-focused", state="attached")

    page.press("Reset")
    assert page.lines == lines
    count = shown.count
    page.page.locator("#use-sample").click()
    assert shown.wait_for_result(after=count)["faces"]


def test_endless_code_is_stopped_and_the_page_goes_on(demo: Demo) -> None:
    shown = demo("?backend=wasm")
    count = shown.wait_for_result()["count"]
    page = CodePage(shown)
    page.write("for i in range(100_000): print(i)\nwhile True: pass\n")
    page.press("Run")
    shown.wait_for("output", lambda: "left out" in shown.text("#code-body pre"))
    page.press("Stop")
    page.ended("Stopped before its end")
    assert shown.wait_for_result(after=count)["faces"]
    assert "Your code was stopped" in shown.text("#message")
    page.write("show([])\n6 * 7")
    page.press("Run")
    assert "42" in page.ended("Ran in")


# What code of others could leave for later visits: a plan in the cache, and a worker of its own that writes one.
FOREIGN = """
import js
from pyodide.ffi import to_js
from webinfer.host import origin_cache
from webinfer.page.messages import VERSION

await origin_cache.remember("planted", b"x")
port = js.MessageChannel.new().port2
url = js.URL.createObjectURL(js.Blob.new(to_js(["caches.open('planted')"])))
thread = {"v": VERSION, "type": "thread", "id": 99, "url": url, "name": "planted", "port": port}
js.postMessage(to_js(thread, dict_converter=js.Object.fromEntries), to_js([port]))
found = [name for name in ("caches", "indexedDB", "Worker", "BroadcastChannel") if hasattr(js, name)]
print("ran", 6 * 7, found, hasattr(js.navigator, "storage"))
"""


def test_code_from_a_link_is_shown_on_a_phone_runs_when_asked_and_reaches_nothing_that_is_kept(demo: Demo) -> None:
    code = FOREIGN
    shown = demo(f"?backend=wasm{link(code)}", viewport={"width": 360, "height": 780})
    page = CodePage(shown, opened=True)
    shown.wait_for("code", lambda: page.lines.strip() == code.strip())
    shown.wait_for_result()
    assert "came from a link" in shown.text("#code-body .note")
    page.editor.press("ControlOrMeta+Enter")  # by its button only
    shown.page.wait_for_timeout(300)
    assert page.page.locator("#code-body pre").is_hidden()
    assert page.page.evaluate("document.activeElement.textContent") == "Run"
    page.press("Run")
    assert page.ended("Ran in") == "ran 42 [] False\n"
    assert not [worker.url for worker in shown.page.workers if worker.url.startswith("blob:")]
    assert not shown.page.evaluate("caches.has('planted')")
    assert not shown.page.evaluate("caches.match('/webinfer/planted', { cacheName: 'webinfer' }).then(Boolean)")
    count = shown.count
    shown.page.locator("#use-sample").click()
    assert shown.wait_for_result(after=count)["faces"], "the engine goes on"
    page.write("print('é')")
    page.press("Copy link")
    shown.wait_for("link", lambda: "#code=" in shown.page.url and link(code) not in shown.page.url)
    mine = shown.page.url
    page.press("Reset")
    shown.wait_for("address", lambda: "#" not in shown.page.url)
    shown.page.goto(mine)
    shown.wait_for("code", lambda: page.lines == "print('é')")
    for hash, words in ((link(code)[:-9], "no readable code"), ("#code=%3C", "no readable"), ("#code=", "no readable"),
                        (link("x" * 100_000), "more than"), ("#code=" + "x" * 9000, "too long")):  # fmt: skip
        shown.page.evaluate("(hash) => { location.hash = hash; }", hash)
        shown.wait_for(words, lambda words=words: words in shown.text("#code-body .note"))  # type: ignore[misc]
        assert page.lines == "print('é')"
    assert shown.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0

    page.write("if True:\n")
    shown.page.keyboard.press("Tab")
    shown.page.keyboard.insert_text("x")
    assert page.lines.splitlines()[-1].replace("\xa0", " ").endswith("    x")
    shown.page.keyboard.press("Escape")
    shown.page.keyboard.press("Tab")
    assert shown.page.evaluate("document.activeElement.textContent") == "Run"
    assert "Escape, then Tab" in (page.editor.get_attribute("aria-label") or "")


def _loaded(page: DemoPage) -> list[str]:
    names: list[str] = page.page.evaluate("performance.getEntriesByType('resource').map(({ name }) => name)")
    return [re.sub(r"[?#].*", "", name) for name in names]
