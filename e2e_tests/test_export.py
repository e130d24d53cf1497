"""The exported site runs on a host that only knows files, below a path, isolated, and without a network later on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, expect

from build_scripts.loopback import plain_host
from build_scripts.setup.chromium import launch_options
from build_scripts.site.bundle import player_page
from build_scripts.site.export import export
from e2e_tests.flaky import FlakyNetwork
from e2e_tests.models import classifier, compiled
from e2e_tests.pages import DemoPage

Demo = Callable[..., DemoPage]
PAGE = {"path": "/repo/face-detection/", "service_workers": "allow"}
KEPT = """async () => {
  const registration = await navigator.serviceWorker?.getRegistration();
  const names = (await caches.keys()).filter((name) => name.startsWith("webinfer site /repo/ "));
  const homes = await Promise.all(names.map(async (name) => (await caches.open(name)).match("/repo/")));
  return Boolean(registration?.active) && homes.some(Boolean);
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole site, exported below /repo/."""
    folder = tmp_path_factory.mktemp("host")
    export(folder / "repo", None, True)
    return folder


def faces(page: DemoPage) -> list[dict]:
    return page.wait_for_result()["faces"]


def is_isolated(page: DemoPage) -> bool:
    """Whether the page has been loaded anew by now, as its service worker's headers need it."""
    try:
        return bool(page.page.evaluate("crossOriginIsolated"))
    except Error:  # in between
        return False


def test_below_a_path_of_a_static_host_the_site_does_as_on_its_server_and_opens_without_a_network(
    demo: Demo, face_page: DemoPage, folder: Path, address: str
) -> None:
    expected = faces(face_page)
    with plain_host(folder) as plain, FlakyNetwork(plain) as host:
        page = demo("?backend=wasm&stallTimeout=5", address=host.address, idle_work=True, **PAGE)
        page.wait_for("isolation", lambda: is_isolated(page))
        found = faces(page)
        assert found[0]["score"] == pytest.approx(expected[0]["score"], abs=1e-5)
        assert found[0]["box"] == pytest.approx(expected[0]["box"], abs=0.01)
        assert page.page.get_by_role("link", name="webinfer").get_attribute("href") == "../"
        page.wait_for("kept site", lambda: page.page.evaluate(KEPT))
        host.hang_after(0)
        page.page.reload()
        assert len(faces(page)) == 1
        assert page.page.evaluate("crossOriginIsolated") is True
    other = page.context.new_page()
    other.goto(page.url.replace("face-detection", "face-landmarks"))
    assert "No network" in other.inner_text("body")
    assert "Face detection" in other.inner_text("body")
    other.evaluate("localStorage.setItem('webinfer language', 'de')")
    other.reload()
    assert "Kein Netz" in other.inner_text("body")
    assert "No network" not in other.inner_text("body")
    other.get_by_role("link", name="die Startseite").click()
    page.wait_for("home in German", lambda: "Machine Learning im Browser" in other.inner_text("h1"))
    page.complaints.clear()  # the browser reports what it could not ask for


def test_one_demo_alone_needs_no_service_worker_to_run(demo: Demo, tmp_path: Path) -> None:
    export(tmp_path / "demo", "face-detection", True)
    with plain_host(tmp_path) as host:
        page = demo("?backend=wasm", address=host, path="/demo/")  # this browser has none
        assert len(faces(page)) == 1
        assert page.page.evaluate("crossOriginIsolated") is False
        assert page.page.locator("nav a").count() == 0


def test_a_browser_without_webassembly_hears_of_it_at_once(demo: Demo, browser: Browser, tmp_path: Path) -> None:
    options = launch_options(webgpu=False)
    bare = browser.browser_type.launch(**{**options, "args": [*options["args"], "--js-flags=--jitless"]})
    (tmp_path / "small.onnx").write_bytes(classifier())
    compiled(str(tmp_path / "small.onnx"), "image-classifier", tmp_path / "model.webinfer", "--backend", "wasm")
    for name, data in player_page().items():
        (tmp_path / name).write_bytes(data)
    with plain_host(tmp_path) as host:
        package = bare.new_page()
        package.goto(f"{host}/?backend=wasm")
        expect(package.locator("#status")).to_have_text("this browser runs no WebAssembly")
        package.close()
    page = demo("?backend=wasm", browser=bare)
    error = page.wait_for("error", lambda: page.error, limit_s=10)
    assert error["code"] == "webassembly"
    said = page.text("#unstarted")
    assert "does not run WebAssembly" in said
    assert "another browser" in said
    assert page.page.locator("#loading").is_hidden()
    bare.close()
