"""The documentation as readers meet it: links, keyboard, colours, widths; and its example of a page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page
from tests.docs.pages import blocks_of

from build_scripts.paths import WEB
from build_scripts.site.export import export
from e2e_tests.pages import DemoPage
from e2e_tests.test_layout import RATIO
from webinfer.testing import WebinferPage, served

Docs = Callable[..., Page]
FIRST = "Introduction"
TEXTS = (
    "h1", ".site a", ".docs nav a", ".docs nav [aria-current]", ".docs nav h2", ".docs article p", ".docs article p a",
    ".docs td", ".docs th", ".docs td code", ".docs .code", ".turn a", ".turn small",
    *(f".code .{name}" for name in ("kn", "k", "s2", "nb", "c1", "mi")),
)  # fmt: skip


@pytest.fixture
def docs(browser: Browser, address: str) -> Iterator[Docs]:
    """Opens pages of the documentation; one that complained in the console fails the test."""
    opened: list[DemoPage] = []

    def open_docs(name: str = "", **options: object) -> Page:
        page = DemoPage(browser, address, path=f"/docs{name and '/'}{name}", **options)
        opened.append(page)
        page.page.goto(page.url)
        return page.page

    yield open_docs
    complaints = [complaint for page in opened for complaint in page.complaints]
    for page in opened:
        page.close()
    assert not complaints, complaints


def is_as_wide_as_the_screen(page: Page) -> None:
    """Whether the screen is a phone's, a tablet's or a large one."""
    for width in (320, 768, 1600):
        page.set_viewport_size({"width": width, "height": 780})
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, (page.url, width)


def test_readers_come_from_the_demo_and_read_page_after_page_at_any_width(docs: Docs) -> None:
    page = docs()
    assert page.get_by_role("heading", level=1).inner_text() == FIRST
    titles = page.get_by_role("navigation", name="Documentation").locator("> ul > li > a").all_inner_texts()
    read = [FIRST]
    is_as_wide_as_the_screen(page)
    while (following := page.locator("a[rel=next]")).count():
        following.click()
        read.append(page.get_by_role("heading", level=1).inner_text())
        is_as_wide_as_the_screen(page)
    assert read == titles
    site = page.get_by_role("navigation", name="Site")
    site.get_by_role("link", name="Demos").click()
    page.get_by_role("link", name="Face detection").click()
    site.get_by_role("link", name="Docs").click()
    assert page.get_by_role("heading", level=1).inner_text() == FIRST


def test_the_navigation_works_by_keyboard(docs: Docs) -> None:
    page = docs()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the text"
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0  # seen while it has the focus
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "text"
    link = page.get_by_role("navigation", name="Documentation").get_by_role("link", name="Glossary")
    link.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    assert float(page.evaluate("getComputedStyle(document.activeElement).outlineWidth").removesuffix("px")) >= 2
    page.keyboard.press("Enter")
    page.wait_for_url("**/docs/glossary")
    current = page.get_by_role("navigation", name="Documentation").locator("[aria-current=page]")
    assert current.all_inner_texts() == ["Glossary"]


def test_a_heading_can_be_linked_to(docs: Docs) -> None:
    page = docs("using")
    page.get_by_role("navigation", name="Documentation").get_by_role("link", name="Threads and isolation").click()
    assert page.url.endswith("/docs/using#threads-and-isolation")
    assert page.locator("#threads-and-isolation").is_visible()
    assert page.get_by_role("link", name="Link to Precision").get_attribute("href") == "#precision"


def test_texts_stand_out_from_their_ground(docs: Docs) -> None:
    page = docs(reduced_motion="reduce")
    seen = set()
    for name in ("", "/using", "/custom-operators"):
        page.goto(re.sub(r"/docs.*", f"/docs{name}", page.url))
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            for selector in (text for text in TEXTS if page.locator(text).count()):
                seen.add(selector)
                assert page.evaluate(RATIO, selector) >= 4.5, (name, scheme, selector)
    assert seen == set(TEXTS)


def test_pictures_have_names_and_colours_of_the_scheme(docs: Docs) -> None:
    page = docs("architecture")
    assert page.get_by_role("img", name="The way of a model").count() == 1
    fill = "getComputedStyle(document.querySelector('.picture .ink')).fill"
    fills = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        fills.append(page.evaluate(fill))
    assert fills[0] != fills[1]


def test_the_example_of_a_page_runs_as_it_stands(browser: Browser, address: str) -> None:
    found = re.search(r"^```html page\n(.*?)^```", (WEB / "docs/index.md").read_text(), re.DOTALL | re.MULTILINE)
    assert found
    page = DemoPage(browser, address)
    page.context.route(f"{address}/example.html", lambda route: route.fulfill(body=found[1], content_type="text/html"))
    page.page.goto(f"{address}/example.html")
    said = page.wait_for("result", lambda: (text := page.text("#result")) != "Starting …" and text)
    assert said == "regressors (1, 896, 16), classificators (1, 896, 1)"
    assert not [complaint for complaint in page.complaints if "favicon" not in complaint]
    page.close()


def test_the_example_of_a_test_tests_a_page(
    page: Page, photo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (block,) = [block for block in blocks_of(WEB / "docs/ci.md") if block.kind == "python page"]
    names: dict[str, Any] = {}
    exec(block.text, names)
    with Image.open(photo) as picture:
        picture.convert("RGB").save(tmp_path / "photo.jpg")
    monkeypatch.chdir(tmp_path)
    export(tmp_path / "site", None, True)
    with served(tmp_path / "site") as address:
        names["test_faces"](WebinferPage(page, address))


def test_the_search_finds_a_passage_and_leads_there(docs: Docs) -> None:
    page = docs()
    page.keyboard.press("/")
    page.keyboard.type("isolat thread")
    result = page.locator("#results a", has_text="Threads and isolation")
    result.first.wait_for()
    assert "result" in page.locator("#search-status").inner_text()
    result.first.click()
    page.wait_for_url("**/docs/using#threads-and-isolation")
    page.fill("#search", "qqqqxyz")
    page.locator("#search-status", has_text="No results").wait_for()
    assert page.locator("#results a").count() == 0


def test_code_is_copied_without_prompts_and_without_what_it_prints(docs: Docs) -> None:
    page = docs("using")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    holder = page.locator(".holder").first
    holder.hover()
    holder.get_by_role("button", name="Copy").click()
    holder.get_by_role("button", name="Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("import webinfer")
    assert copied.strip() == holder.locator("pre").inner_text().strip()
