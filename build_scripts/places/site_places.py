"""The demo and a package's page in Chromium, Firefox and WebKit, on our server and on hosts that know files only."""

import contextlib
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Error, Page

from build_scripts.errors import BuildError
from build_scripts.loopback import plain_host
from build_scripts.paths import IMAGES
from build_scripts.places.browsers import Firefox, Tab, WebKit
from build_scripts.places.probe import MODEL, WANTED, judged
from build_scripts.setup import other_browsers
from build_scripts.site.bundle import player_page
from build_scripts.site.export import export
from build_scripts.site.headless import intersection_over_union
from build_scripts.site.serving import running_server
from server.settings import settings_from

Tabs = Callable[[Browser], contextlib.AbstractContextManager[Tab]]
DEMO, BELOW = "face-detection", "repo"
OVERLAP = 0.98  # of the box with that of CPython
SHOWN = "globalThis.result ? 'yes' : globalThis.problem && globalThis.problem.message"
THREADS = """[...document.querySelectorAll("#capabilities li")]
  .map((row) => [...row.children].map((cell) => cell.textContent))
  .find(([name]) => name === "threads")?.filter(Boolean)"""
# What the player computes of the input that all places get (probe.py).
PLAYED = """(async () => {
  const beside = (name) => new URL(name, document.baseURI).href;
  const { load } = await import(beside("player.js"));
  const seen = {};
  for (const backend of BACKENDS) {
    const model = await load(beside("model.webinfer"), { backend });
    const [{ name, shape }] = model.inputs;
    const length = shape.reduce((product, size) => product * size, 1);
    const outputs = await model.run({ [name]: Float32Array.from({ length }, (_, i) => ((i * 37) % 255) / 127.5 - 1) });
    const found = Object.values(outputs).flatMap(({ data }) => [...data.slice(0, WANTED)]);
    seen[backend] = { found, choice: model.choice };
    model.close();
  }
  return seen;
})()"""


class _ChromiumTab(Tab):
    def __init__(self, page: Page) -> None:
        self._page = page

    def open(self, url: str) -> None:
        """Goes to an address."""
        self._page.goto(url)

    def evaluate(self, expression: str) -> Any:
        """The JSON value of an expression; nothing while the page is loaded anew."""
        try:
            return self._page.evaluate(expression)
        except Error as error:
            if "context was destroyed" in error.message:
                return {}
            raise


@contextlib.contextmanager
def chromium(browser: Browser) -> Iterator[Tab]:
    """A tab of the Chromium that runs."""
    context = browser.new_context()
    try:
        yield _ChromiumTab(context.new_page())
    finally:
        context.close()


@contextlib.contextmanager
def firefox(_: Browser) -> Iterator[Tab]:
    """A tab of a Firefox of its own."""
    with contextlib.closing(Firefox(_there(other_browsers.firefox(), "Firefox"))) as browser, browser.tab() as tab:
        yield tab


@contextlib.contextmanager
def webkit(_: Browser) -> Iterator[Tab]:
    """The tab of a WebKitGTK of its own."""
    with contextlib.closing(WebKit(_there(other_browsers.webkit(), "WebKitGTK"))) as browser, browser.tab() as tab:
        yield tab


def _there(program: Path | None, name: str) -> Path:
    if program is None:
        raise BuildError(f"{name} is not installed: apt-get install {' '.join(other_browsers.PACKAGES)}")
    return program


def on_server(tabs: Tabs, backends: Sequence[str], isolated: bool) -> Callable[[Browser], str]:
    """How the demo on the site's own server is seen to work in such a tab."""

    def visit(browser: Browser) -> str:
        settings = replace(settings_from(), isolated=isolated)
        with running_server(settings) as address, tabs(browser) as tab:
            return _faces(tab, f"{address}/{DEMO}", backends)

    return visit


def on_static_host(slug: str | None) -> Callable[[Browser], str]:
    """How the exported site, or one demo of it, works in Chromium on a host that knows files only, below a path."""

    def visit(browser: Browser) -> str:
        with tempfile.TemporaryDirectory() as folder, plain_host(Path(folder)) as host, chromium(browser) as tab:
            export(Path(folder) / BELOW, slug, isolate=True)
            seen = _faces(tab, f"{host}/{BELOW}/" + ("" if slug else f"{DEMO}/"), ("wasm",))
            isolated = tab.evaluate("crossOriginIsolated")
            return f"{seen}; {'isolated by its service worker' if isolated else 'not isolated'}"

    return visit


def in_package_page(tabs: Tabs, backends: Sequence[str]) -> Callable[[Browser], str]:
    """How a package's page works in such a tab, on a host that knows files only, below a path."""

    def visit(browser: Browser) -> str:
        import webinfer
        from webinfer.package import compile_model
        from webinfer.package.web_page import export_page

        with tempfile.TemporaryDirectory() as folder, plain_host(Path(folder)) as host, tabs(browser) as tab:
            package = Path(folder) / "model.webinfer"
            package.write_bytes(webinfer.run_sync(compile_model(str(MODEL), backend=("wasm", "webgpu"))))
            export_page(package, Path(folder) / BELOW, player_page())
            tab.open(f"{host}/{BELOW}/")
            with _as_build_error():
                said = tab.wait_for("result of the page", lambda: tab.evaluate(SHOWN))
                if said != "yes":
                    raise BuildError(f"the page says {said}")
                script = PLAYED.replace("BACKENDS", json.dumps(list(backends))).replace("WANTED", str(WANTED))
                seen = tab.evaluate(script)
            if not isinstance(seen, dict):
                raise BuildError(f"the player says {seen}")
        return str(judged(json.dumps({**seen, "capabilities": []})))

    return visit


def _faces(tab: Tab, address: str, backends: Sequence[str]) -> str:
    """What the demo finds in its sample on each backend, beside what CPython finds there."""
    words, wanted = [], _face()
    for backend in backends:
        with _as_build_error():
            tab.open(f"{address}?backend={backend}")
            result = tab.result()
        if result["backend"] != backend or len(result["faces"]) != 1:
            raise BuildError(f"{backend}: {len(result['faces'])} faces on {result['backend']}: {result['reason']}")
        overlap = intersection_over_union(result["faces"][0]["box"], wanted)
        if overlap < OVERLAP:
            raise BuildError(f"{backend}: its box overlaps that of CPython by {overlap:.3f} only")
        words.append(f"{backend}: the face that CPython finds, boxes overlap by {overlap:.4f}")
    threads = tab.wait_for("word on threads", lambda: tab.evaluate(THREADS))
    return "; ".join([*words, f"threads: {', '.join(threads[1:3])}"])


@cache
def _face() -> dict[str, float]:
    """The box that CPython finds in the sample photo."""
    from PIL import Image

    import webinfer

    detector = webinfer.run_sync(webinfer.pipeline("face-detection", backend="wasm"))
    (face,) = webinfer.run_sync(detector.detect(Image.open(IMAGES / "astronaut.webp")))
    detector.close()
    return {side: float(getattr(face.box, side)) for side in ("left", "top", "width", "height")}


@contextlib.contextmanager
def _as_build_error() -> Iterator[None]:
    """What a browser's driver complains of, as the survey's own kind of error."""
    try:
        yield
    except (AssertionError, Error, OSError) as error:
        raise BuildError(str(error)[-600:]) from error
