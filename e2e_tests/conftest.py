"""The server process, the browsers and the page fixtures of the end-to-end tests."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, Playwright, Route

from build_scripts.errors import BuildError
from build_scripts.paths import IMAGES, ROOT, SITE
from build_scripts.places.browsers import Firefox, WebKit
from build_scripts.setup import other_browsers
from build_scripts.setup.chromium import driver, launch_options
from e2e_tests.pages import ELSEWHERE, LIMIT_S, DemoPage

CI = os.environ.get("WEBINFER_CI") == "1"
SOFTWARE_VULKAN = (
    "--use-vulkan=swiftshader",
    "--use-angle=vulkan",
    "--enable-features=Vulkan",
    "--ignore-gpu-blocklist",
)
SPARE = ("SpareRendererForSitePerProcess",)  # a renderer that no test uses
# A page lives for seconds: V8 spent a tenth to a fifth of a visit on optimizing WebAssembly that was hardly called
# again. Now it waits until a function has run 75 times as much as usual, as in starts without the snapshot.
LATE_OPTIMIZING = "--js-flags=--wasm-tiering-budget=1000000000"
ADAPTER = """async () => {
  const adapter = await navigator.gpu?.requestAdapter();
  return adapter ? `${adapter.info.vendor} ${adapter.info.architecture} ${adapter.info.description}`.trim() : "none";
}"""

IMPORT = """async () => {
  const device = await (await navigator.gpu.requestAdapter()).requestDevice();
  const canvas = new OffscreenCanvas(16, 16);
  canvas.getContext("2d").fillRect(0, 0, 8, 8);
  const frame = new VideoFrame(await createImageBitmap(canvas), { timestamp: 0 });
  try {
    device.importExternalTexture({ source: frame });
    return "";
  } catch (error) {
    return error.message;
  } finally {
    frame.close();
    device.destroy();
  }
}"""


def _missing(what: str) -> Any:
    """Skips, or fails where CI promised that nothing is missing."""
    return pytest.fail(what) if CI else pytest.skip(what)


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    """Playwright's driver."""
    with driver() as found:
        yield found


def _serve(*options: str) -> Iterator[str]:
    if not (SITE / "manifest.json").is_file():
        _missing("the site is not built: python3 -m build_scripts setup")
    command = [sys.executable, "-m", "e2e_tests.serve", *options]
    hosts = {"WEBINFER_SERVER_HOSTS": f"127.0.0.1,localhost,::1,{ELSEWHERE}"}
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env={**os.environ, **hosts})
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address, "the server ended at once"
        yield address
    finally:
        process.terminate()
        process.wait(10)


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """The address of a server as users start it."""
    yield from _serve()


@pytest.fixture(scope="session")
def insecure_address(address: str) -> str:
    """The same server as another machine names it over plain HTTP: its pages are not secure contexts."""
    assert "127.0.0.1" in address
    return address.replace("127.0.0.1", ELSEWHERE)


@pytest.fixture(scope="session")
def bare_address() -> Iterator[str]:
    """The address of a server that does not isolate its pages."""
    yield from _serve("--not-isolated")


@pytest.fixture(scope="session")
def lab_address() -> Iterator[str]:
    """The address of a server with a lab, whose token is "right"."""
    yield from _serve("--lab", "right")


def _launch(playwright: Playwright, *more: str, **options: Any) -> Iterator[Browser]:
    try:
        chosen = launch_options(**{"without": SPARE, **options})
    except BuildError as error:
        _missing(str(error))
    names = f"--host-resolver-rules=MAP {ELSEWHERE} 127.0.0.1"
    browser = playwright.chromium.launch(**{**chosen, "args": [*chosen["args"], LATE_OPTIMIZING, names, *more]})
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def browser(playwright: Playwright) -> Iterator[Browser]:
    """Chromium with WebGPU, by a software adapter where there is no other."""
    yield from _launch(playwright)


@pytest.fixture(scope="session")
def browser_without_gpu(playwright: Playwright) -> Iterator[Browser]:
    """Chromium that offers no WebGPU."""
    yield from _launch(playwright, "--disable-gpu", webgpu=False, without=(*SPARE, "WebGPU", "WebGPUService"))


@pytest.fixture(scope="session")
def browser_with_camera(playwright: Playwright) -> Iterator[Browser]:
    """Chromium with two cameras that show its test pattern: a pie that fills."""
    yield from _launch(playwright, "--use-fake-device-for-media-stream=device-count=2", fake_camera=True)


@pytest.fixture(scope="session")
def browser_that_loses_its_gpu(playwright: Playwright) -> Iterator[Browser]:
    """Chromium whose GPU process may die any number of times, with a camera that shows its test pattern."""
    yield from _launch(
        playwright, "--disable-gpu-process-crash-limit", "--disable-domain-blocking-for-3d-apis", fake_camera=True
    )


@pytest.fixture(scope="session")
def browser_that_denies_the_camera(playwright: Playwright) -> Iterator[Browser]:
    """Chromium with a camera that no page may use."""
    yield from _launch(playwright, "--use-fake-device-for-media-stream", "--deny-permission-prompts")


def _other(program: Path | None, name: str) -> Path:
    """A browser beside Chromium: tests without it are skipped, or fail where it was promised."""
    if program is None and os.environ.get(other_browsers.EXPECTED):
        pytest.fail(f"{name} is missing")
    return program or pytest.skip(f"{name} is not installed: python3 -m build_scripts test --every-browser installs it")


@pytest.fixture(scope="module")
def firefox() -> Iterator[Firefox]:
    """Firefox, until its module ends: one that does nothing takes a twentieth of a core."""
    with contextlib.closing(Firefox(_other(other_browsers.firefox(), "Firefox"))) as browser:
        yield browser


@pytest.fixture(scope="module")
def private_firefox() -> Iterator[Firefox]:
    """Firefox that hides what pages could tell this machine from others by."""
    program = _other(other_browsers.firefox(), "Firefox")
    with contextlib.closing(Firefox(program, {"privacy.resistFingerprinting": True})) as browser:
        yield browser


@pytest.fixture(scope="module")
def webkit() -> Iterator[WebKit]:
    """WebKitGTK."""
    with contextlib.closing(WebKit(_other(other_browsers.webkit(), "WebKitGTK"))) as browser:
        yield browser


@pytest.fixture(scope="session")
def photo() -> Path:
    """The sample photo: one face."""
    path = IMAGES / "astronaut.png"
    return path if path.is_file() else _missing(f"{path} is missing: python3 -m build_scripts setup")


@pytest.fixture(scope="session")
def film(photo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample photo as a YUV4MPEG2 film of two frames."""
    luma, blue, red = Image.open(photo).convert("RGB").convert("YCbCr").split()
    half = (luma.width // 2, luma.height // 2)
    planes = luma.tobytes() + blue.resize(half).tobytes() + red.resize(half).tobytes()
    film = tmp_path_factory.mktemp("film") / "photo.y4m"
    head = f"YUV4MPEG2 W{luma.width} H{luma.height} F30:1 Ip A1:1 C420jpeg\n".encode()
    film.write_bytes(head + 2 * (b"FRAME\n" + planes))
    return film


@pytest.fixture(scope="session")
def browser_that_films_the_photo(playwright: Playwright, film: Path) -> Iterator[Browser]:
    """Chromium whose camera sees the sample photo. Without a GPU's drawing WebGPU reads no video frames."""
    yield from _launch(playwright, f"--use-file-for-fake-video-capture={film}", fake_camera=True)


@pytest.fixture(scope="session")
def browser_with_frames_on_the_gpu(playwright: Playwright, film: Path, address: str) -> Iterator[Browser]:
    """Chromium whose camera sees the sample photo, drawing by a GPU in software, so that WebGPU reads video frames."""
    for browser in _launch(playwright, f"--use-file-for-fake-video-capture={film}", *SOFTWARE_VULKAN, fake_camera=True):
        page = browser.new_page()
        page.goto(f"{address}/docs")
        refusal = page.evaluate(IMPORT)
        page.close()
        if refusal:
            _missing(f"WebGPU reads no video frames ({refusal}); on Debian: apt-get install libvulkan1")
        yield browser


@pytest.fixture(scope="session")
def browser_that_loses_frames(playwright: Playwright, film: Path) -> Iterator[Browser]:
    """Chromium that draws by another GPU than WebGPU's: importing a video frame costs the WebGPU device."""
    drawing = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist")
    yield from _launch(playwright, f"--use-file-for-fake-video-capture={film}", *drawing, fake_camera=True)


@pytest.fixture
def demo(browser: Browser, address: str) -> Iterator[Callable[..., DemoPage]]:
    """Opens pages, `demo("?backend=wasm", path=..., browser=..., **context options)`; closes them afterwards.

    `idle_work=True` is for tests of the warm-up, of what later visits find, and of what a page checks behind its start.
    `broken` answers requests that fit a glob in its own way, until the page's `mended` is set. A page that
    complained (console, script or GPU error) fails the test, unless the test expected it and emptied `complaints`.
    """
    opened: list[DemoPage] = []

    def open_demo(
        query: str = "",
        *,
        browser: Browser = browser,
        address: str = address,
        broken: tuple[str, Callable[[Route], None]] | None = None,
        init_script: str = "",
        wait_until: Literal["commit", "load"] = "load",
        **options: Any,
    ) -> DemoPage:
        page = DemoPage(browser, address, query, **options)
        opened.append(page)
        if broken:  # `unroute` stood still now and then, so the answer depends on a flag
            pattern, answer = broken
            page.context.route(pattern, lambda route: route.fallback() if page.mended else answer(route))
        if init_script:
            page.context.add_init_script(init_script)
        return page.open(wait_until)

    yield open_demo
    complaints = [complaint for page in opened for complaint in page.complaints]
    for page in opened:
        page.close()
    assert not complaints, complaints


@pytest.fixture(scope="session")
def _kept_pages(browser: Browser) -> Iterator[list[DemoPage]]:
    pages: list[DemoPage] = []  # of this browser, which outlives them
    yield pages
    for page in pages:
        page.close()


@pytest.fixture
def face_page(
    browser: Browser, address: str, _kept_pages: list[DemoPage], request: pytest.FixtureRequest
) -> Iterator[DemoPage]:
    """The page "Face detection" on wasm with the result of its sample, which tests use one after the other.

    Opening a page takes 2.7 s of processor time, ten times as much as looking at a picture. For tests that begin with
    an open page, or run a program in its engine, and leave nothing behind but pictures, sizes and colours. One that
    fails takes the page with it.
    """
    page = _kept_pages.pop() if _kept_pages else DemoPage(browser, address, "?backend=wasm").open()
    page.wait_for_result()
    page.show_sample()
    failed = request.session.testsfailed
    yield page
    complaints, page.complaints = page.complaints, []
    if complaints or request.session.testsfailed > failed:
        page.close()
    else:
        _kept_pages.append(page)
    assert not complaints, complaints


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A fresh page of no site yet, which waits as long as pages of the demo do."""
    with browser.new_context() as context:
        context.set_default_timeout(1000 * LIMIT_S)
        yield context.new_page()


def pytest_report_header() -> str:
    """The browser and the GPU adapter that the tests will see."""
    try:
        options = launch_options()
        with driver() as playwright:
            browser = playwright.chromium.launch(**options)
            page = browser.new_page()
            page.route("**/*", lambda route: route.fulfill(body="<!doctype html>", content_type="text/html"))
            page.goto("http://localhost/")  # WebGPU needs a secure context
            adapter = page.evaluate(ADAPTER)
            version = browser.version
            browser.close()
        return f"e2e: Chromium {version}, WebGPU adapter: {adapter}"
    except BuildError as error:
        return f"e2e: no browser: {error}"
