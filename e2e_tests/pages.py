"""A page of the site as its users see it, with an ear on everything that goes wrong in it."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Worker
from playwright.sync_api import Error as PlaywrightError

ELSEWHERE = "elsewhere.test"  # the tests' server by a name that does not count as this machine's
LIMIT_S = 120  # a cold start on a busy machine with a software adapter
GPU_TROUBLE = re.compile(
    r"uncaptured|GPUValidationError|GPUInternalError|GPUOutOfMemoryError|\[Invalid ", re.IGNORECASE
)

# Playwright's drop needs a DataTransfer that was made inside the page.
DROP = """([name, type, base64]) => {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const data = new DataTransfer();
  data.items.add(new File([bytes], name, { type }));
  for (const kind of ["dragenter", "dragover", "drop"]) {
    const event = new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: data });
    document.getElementById("stage").dispatchEvent(event);
  }
}"""
PASTE = """([name, type, base64]) => {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const data = new DataTransfer();
  data.items.add(new File([bytes], name, { type }));
  document.dispatchEvent(new ClipboardEvent("paste", { bubbles: true, clipboardData: data }));
}"""


# Whether the page would hear of the end of its engine's worker: it waits for the lock that the worker holds.
WATCHED = """async () =>
  (await navigator.locks.query()).pending.some(({ name }) => name.startsWith("webinfer engine"))"""
STATE = """() => {
  const message = document.getElementById("message");
  const { webinferError } = document.documentElement?.dataset ?? {};
  return [webinferError ?? null, message?.checkVisibility() ?? false, message?.innerText ?? ""];
}"""

# Ends when the page says something new of these attributes, or after a while.
TOLD = """([names, limit]) => new Promise((done) => {
  const watch = new MutationObserver(end);
  const timer = setTimeout(end, limit);
  function end() {
    watch.disconnect();
    clearTimeout(timer);
    done();
  }
  watch.observe(document.documentElement ?? document, { attributeFilter: names, childList: true });
})"""
LEFT = re.compile("context was destroyed|Cannot find context")  # Playwright's words for a document that was left
# Work that only later visits gain from (the warm-up for the browser's code cache, tuning, stored plans, the kept site)
# takes more processor time than a visit itself, so pages of tests that mean none of it begin with it in an hour.
NO_IDLE_WORK = "try { localStorage.setItem('webinfer idle delay', '3600'); } catch {}"
TOLD_MS = 250  # the longest that an attribute is watched before the question is asked again


class DemoPage:
    """One tab with a page of the site; `complaints` are the errors of its console, its scripts and its GPU.

    `idle_work`: it does what pages do for later visits when nobody waits, as users' pages do.
    """

    def __init__(
        self, browser: Browser, address: str, query: str = "", path: str = "/face-detection", *,
        idle_work: bool = False, **context_options: Any,
    ) -> None:  # fmt: skip
        # Playwright's routes do not see what a service worker asks for: only tests that mean it have one.
        self.context: BrowserContext = browser.new_context(**{"service_workers": "block", **context_options})
        # A click waits until its target stood still for two frames, from a process that may be compiling shaders.
        self.context.set_default_timeout(1000 * LIMIT_S)
        if not idle_work:
            self.context.add_init_script(NO_IDLE_WORK)
        self.page: Page = self.context.new_page()
        self.address, self.url = address, f"{address}{path}{query}"
        self.mended = False  # requests that the test broke on purpose are answered by the server again
        self.complaints: list[str] = []
        self.console: list[str] = []
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(f"page error: {error}"))

    def _heard(self, message: ConsoleMessage) -> None:
        self.console.append(f"{message.type}: {message.text}")
        if message.type == "error" or GPU_TROUBLE.search(message.text):
            self.complaints.append(f"console {message.type}: {message.text}")

    def open(self, wait_until: Literal["commit", "load"] = "load") -> DemoPage:
        """The page, opened; nothing but this event has been waited for."""
        self.page.goto(self.url, wait_until=wait_until)
        return self

    def close(self) -> None:
        """Closes the tab and its context."""
        self.context.close()

    # ----- what the page says

    def ask(self, code: str) -> Any:
        """What JavaScript answers; None while one document takes the place of another: such a page says nothing."""
        try:
            return self.page.evaluate(code)
        except PlaywrightError as gone:
            if not LEFT.search(str(gone)):
                raise
            return None

    def _dataset(self, name: str) -> dict[str, Any] | None:
        text = self.ask(f"document.documentElement?.dataset.{name} ?? null")  # a new document has no root at first
        return json.loads(text) if text else None

    @property
    def result(self) -> dict[str, Any] | None:
        """The newest detection."""
        return self._dataset("webinferResult")

    @property
    def error(self) -> dict[str, Any] | None:
        """The error that is shown."""
        return self._dataset("webinferError")

    @property
    def count(self) -> int:
        """Detections so far."""
        return self.result["count"] if self.result else 0

    def text(self, selector: str) -> str:
        """The visible text of an element."""
        return self.page.locator(selector).inner_text()

    # ----- waiting; the strict CSP forbids Playwright's wait_for_function

    def wait_for(
        self, what: str, ask: Callable[[], Any], limit_s: float = LIMIT_S, *, told_by: tuple[str, ...] = ()
    ) -> Any:
        """The first true answer of `ask`; `told_by` are the root's attributes that change when it may be true."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            answer = ask()
            if answer:
                return answer
            if told_by:  # may be told between question and watch, and a page may go while it is watched
                with contextlib.suppress(PlaywrightError):
                    self.page.evaluate(TOLD, [list(told_by), TOLD_MS])
            else:
                self.page.wait_for_timeout(50)
        tail = "\n".join(self.console[-20:])
        raise AssertionError(f"no {what} within {limit_s} s; error shown: {self.error}; console:\n{tail}")

    def wait_for_result(self, after: int = 0) -> dict[str, Any]:
        """The first detection whose number is greater than `after`; an error on the page ends the wait."""

        earlier = self.error if after else None  # stays until the next picture is read

        def ask() -> dict[str, Any] | None:
            result = self.result
            if result and result["count"] > after:
                return result
            error = self.error
            assert not error or error == earlier or "again" in error["message"], f"the page shows {error}"
            return None

        found: dict[str, Any] = self.wait_for("result", ask, told_by=("data-webinfer-result", "data-webinfer-error"))
        return found

    def wait_for_error(self, code: str, words: str = "") -> dict[str, Any]:
        """The error with this code and these words, once it is shown."""

        def ask() -> tuple[dict[str, Any], bool, str] | None:
            # At one moment: the next message may take its place.
            told, visible, text = self.ask(STATE) or (None, False, "")
            error = json.loads(told) if told else None
            return (error, visible, text) if error and error["code"] == code and words in error["message"] else None

        error, visible, text = self.wait_for(f"error {code}", ask)
        assert visible
        assert error["message"] in text.replace("\xa0", " ")
        found: dict[str, Any] = error
        return found

    def wait_until_ready(self) -> None:
        """Waits until the engine has said what it runs on."""
        self.wait_for("engine", lambda: self.text("#backend").startswith("Runs on"))

    # ----- the engine

    @property
    def worker(self) -> Worker:
        """The engine's worker, the newest one: of one that was just replaced the end may not have been heard yet."""
        return [worker for worker in self.page.workers if "engine_worker" in worker.url][-1]

    def in_worker(self, code: str) -> None:
        """Runs JavaScript in the engine's worker that may be its end, so nobody waits there for an answer."""
        self.worker.evaluate(f"() => {{ new BroadcastChannel('test').onmessage = () => {{ {code} }}; }}")
        self.page.evaluate("new BroadcastChannel('test').postMessage('now')")

    def end_worker(self, at: str = "", act: Callable[[], None] | None = None) -> None:
        """Lets the engine's worker end, without a word, and waits until it has.

        With `at` it ends when it hears of this message, which `act` sends, and so before it can have answered.
        """
        self.wait_for("watch over the worker", lambda: self.page.workers and self.page.evaluate(WATCHED))
        if at:
            heard = f"({{ data }}) => data.type === '{at}' && self.close()"
            self.worker.evaluate(f"() => {{ addEventListener('message', {heard}); }}")
        with self.worker.expect_event("close", timeout=1000 * LIMIT_S):
            if act is None:
                self.in_worker("self.close();")
            else:
                act()

    def without_engine(self, code: str, *argument: Any) -> Any:
        """What JavaScript answers beside what the site has stored, while no engine can be at it; then the page anew."""
        self.page.goto(f"{self.address}/docs")
        self.wait_for("end of the engine", lambda: not self.page.workers)
        answer = self.page.evaluate(code, *argument)
        self.open()
        return answer

    def python(self, code: str) -> Any:
        """What the JSON says that this code ends with, run by the Python of the engine's worker."""
        return json.loads(self.worker.evaluate("(code) => self.pyodide.runPythonAsync(code)", code))

    # ----- what a user does

    def choose(self, *files: Path) -> None:
        """Picks a file through the button and the browser's own dialogue."""
        with self.page.expect_file_chooser() as chooser:
            self.page.get_by_role("button", name="Choose a picture").click()
        chooser.value.set_files([str(file) for file in files])

    def show_sample(self) -> None:
        """Brings the page back to its sample, the window to its size and colours, and closes the developer tools."""
        self.page.locator("#tools").evaluate("(tools) => { tools.open = false; }")
        self.page.set_viewport_size({"width": 1280, "height": 720})
        self.page.emulate_media(color_scheme="null", reduced_motion="null")
        before = self.count
        self.page.locator("#use-sample").click()
        self.wait_for("sample", lambda: self.count > before and self.result and self.result["source"] == "sample")

    def drop(self, name: str, media_type: str, base64: str) -> None:
        """Drops a file on the picture."""
        self.page.evaluate(DROP, [name, media_type, base64])

    def paste(self, name: str, media_type: str, base64: str) -> None:
        """Pastes a file."""
        self.page.evaluate(PASTE, [name, media_type, base64])

    def select_backend(self, name: str) -> None:
        """Chooses a backend by its label."""
        self.page.get_by_role("radio", name=name, exact=True).check(force=True)

    def open_tools(self) -> None:
        """Opens the developer tools."""
        self.page.locator("#tools > summary").click()

    def measure(self) -> None:
        """Measures where the time goes and waits for the figure; the developer tools are open."""
        self.page.get_by_role("button", name="Measure").click()
        self.wait_for_profile()

    def wait_for_profile(self) -> None:
        """Waits for the figure of a measurement."""
        self.wait_for("profile", lambda: self.page.locator("#profile").is_visible())


def overlap(a: dict[str, float], b: dict[str, float]) -> float:
    """Intersection over union of two boxes."""
    width = min(a["left"] + a["width"], b["left"] + b["width"]) - max(a["left"], b["left"])
    height = min(a["top"] + a["height"], b["top"] + b["height"]) - max(a["top"], b["top"])
    shared = max(width, 0.0) * max(height, 0.0)
    return shared / (a["width"] * a["height"] + b["width"] * b["height"] - shared)
