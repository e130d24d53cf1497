"""The exported site on hosts as they are: it runs, or says what is in the way and who can mend it (static-hosts.md)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Error, Frame, Page, Route

from build_scripts.site.bundle import player_page
from build_scripts.site.export import export
from e2e_tests.pages import LIMIT_S
from e2e_tests.static_host import served

TASK = "face-detection/?backend=wasm"
FEW_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".png": "image/png"}
SAID = """() => {
  const { webinferError, webinferResult, state } = document.documentElement.dataset;
  const shown = document.querySelector("#unstarted, .message:not([hidden])");
  const text = document.body.innerText;
  return { error: webinferError, result: webinferResult, state, text, shown: shown?.innerText ?? "" };
}"""

DRAWN = """() => [...document.querySelectorAll("[data-demo] canvas")].filter((canvas) => {
  const { width, height } = canvas;
  return canvas.getContext("2d").getImageData(0, 0, width, height).data.some((value) => value);
}).length"""  # cards of the home page that show what was found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole site, exported."""
    folder = tmp_path_factory.mktemp("hosts") / "site"
    export(folder, None, True)
    return folder


def said(place: Page | Frame, limit_s: float = LIMIT_S) -> dict[str, Any]:
    """What a page has: {"result"}, or {"error": {code, message}}, and its visible text."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        try:
            found: dict[str, Any] = place.evaluate(SAID)
        except Error:  # it is being loaded anew
            found = {}
        if found.get("result") or found.get("error"):
            return {**found, "error": json.loads(found.get("error") or "{}")}
        time.sleep(0.1)
    raise AssertionError(f"nothing is said after {limit_s} s; the page: {found}")


def test_a_host_that_knows_few_types_runs_the_site(page: Page, folder: Path) -> None:
    with served(folder, types=FEW_TYPES) as address:
        page.goto(f"{address}/{TASK}")
        found = said(page)
        assert len(json.loads(found["result"])["faces"]) == 1
        page.locator("html[data-state=ready]").wait_for()


def test_trusted_types_are_kept_to(page: Page, folder: Path) -> None:
    with served(folder, headers={"Content-Security-Policy": "require-trusted-types-for 'script'"}) as address:
        page.goto(f"{address}/{TASK}")
        assert "result" in said(page), page.inner_text("body")


POLICIES: dict[str, tuple[str, ...]] = {
    "script-src 'self' 'unsafe-inline'": ("refuses a part of the engine", "'wasm-unsafe-eval'"),
    "worker-src 'none'": ("worker-src", "'wasm-unsafe-eval'"),
    "default-src 'self'; img-src 'self' blob: data:": ("refuses the script in this page’s text", "'unsafe-inline'"),
    "require-trusted-types-for 'script'; trusted-types none": ("trusted-types", "“default”"),
}


@pytest.mark.parametrize("policy", POLICIES)
def test_a_security_policy_is_named_as_the_cause(policy: str, page: Page, folder: Path) -> None:
    with served(folder, headers={"Content-Security-Policy": policy}) as address:
        page.goto(f"{address}/{TASK}")
        found = said(page)
    assert found["error"].get("code") == "policy", found
    assert found["state"] == "failed"
    for words in (*POLICIES[policy], "Content-Security-Policy"):
        assert words in found["text"], found["text"]
    assert "connection" not in found["shown"]


def changed(route: Route) -> None:
    """As a CDN that minifies scripts."""
    answer = route.fetch()
    route.fulfill(response=answer, body=answer.body() + b"\n//")


def replaced(route: Route) -> None:
    """As a host that answers what it has not with its first page."""
    route.fulfill(body="<!doctype html><title>Home</title>", content_type="text/html")


def mislabelled(route: Route) -> None:
    """As a host that knows no scripts."""
    route.fulfill(response=(answer := route.fetch()), headers={**answer.headers, "content-type": "text/plain"})


@pytest.mark.parametrize(
    ("files", "answer", "code", "words"),
    [
        ("**/page.js", changed, "integrity", "proxy or CDN that minifies"),
        ("**/pyodide.data.bin", changed, "integrity", "proxy or CDN changes files"),
        ("**/pyodide.first.wasm", replaced, "integrity", "it is a web page"),
        ("**/page.js", mislabelled, "integrity", "declares page.js as text/plain"),
        ("**/page.js", lambda route: route.fulfill(status=503), "download", "answered 503 for page.js"),
    ],
    ids=["minified script", "changed file", "first page for missing files", "no type for scripts", "busy server"],
)
def test_what_a_host_has_changed_is_said(
    files: str, answer: Callable[[Route], None], code: str, words: str, page: Page, folder: Path
) -> None:
    page.route(files, answer)
    with served(folder) as address:
        page.goto(f"{address}/{TASK}")
        found = said(page)
    assert found["error"]["code"] == code, found
    assert words in found["text"], found["text"]


def test_pages_that_are_opened_as_files_say_how_to_serve_them(page: Page, folder: Path, tmp_path: Path) -> None:
    page.goto((folder / "face-detection" / "index.html").as_uri())
    assert said(page)["error"]["code"] == "file"
    for place in ("face-detection", ".", "docs"):
        page.goto((folder / place / "index.html").as_uri())
        assert "python3 -m http.server" in page.inner_text("body"), place
    for name, data in player_page().items():
        (tmp_path / name).write_bytes(data)
    page.goto((tmp_path / "index.html").as_uri())
    assert "python3 -m http.server" in page.inner_text("#status")


def test_a_sandboxed_frame_is_named(page: Page, folder: Path, tmp_path: Path) -> None:
    with served(folder) as address, served(tmp_path) as other:
        frame = f'<iframe sandbox="allow-scripts" width="900" height="900" src="{address}/{TASK}"></iframe>'
        (tmp_path / "index.html").write_text(f"<!doctype html>{frame}")
        page.goto(other)
        found = said(page.frames[1])
    assert found["error"]["code"] == "sandbox"
    assert "allow-same-origin" in found["text"]


def test_without_javascript_a_page_says_that_it_needs_it(browser: Browser, folder: Path) -> None:
    with browser.new_context(java_script_enabled=False) as context, served(folder) as address:
        page = context.new_page()
        page.goto(f"{address}/{TASK}")
        text = page.inner_text("body")
    assert "needs JavaScript" in text
    assert "first byte" not in text


def test_no_exported_page_asks_for_what_is_not_there(browser: Browser, folder: Path, tmp_path: Path) -> None:
    page = browser.new_page(service_workers="block")  # with one each page is loaded twice
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "path").symlink_to(folder)
    addresses = [path.parent.relative_to(folder).as_posix() for path in sorted(folder.rglob("index.html"))]
    assert len(addresses) > 30
    refused: list[str] = []
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(f"{page.url}: {error}"))
    page.route("**/engine_worker.js*", lambda route: route.abort())  # Python would take seconds in each page
    with served(tmp_path, refused=refused) as address:
        for place in addresses:
            page.goto(f"{address}/below/path/{place}/".replace("/./", "/"))
        page.goto(f"{address}/below/path/")
        deadline = time.monotonic() + LIMIT_S
        while (cards := page.evaluate(DRAWN)) <= 5 and time.monotonic() < deadline:
            page.wait_for_timeout(50)
    assert [line for line in refused if "favicon" not in line] == []
    assert not problems
    assert cards > 5
    page.close()


def test_scripts_have_names_that_hosts_know(folder: Path) -> None:
    assert not [path.name for path in folder.rglob("*.mjs")]
