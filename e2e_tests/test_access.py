"""On every page, light or dark: axe-core finds nothing to complain of, and every control can be clicked."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from build_scripts.paths import NODE_MODULES
from e2e_tests.pages import DemoPage
from server.settings import Settings
from server.studio import read_studio

Demo = Callable[..., DemoPage]
AXE = NODE_MODULES / "axe-core" / "axe.min.js"
RUN = """async (only) => {
  const rules = only ? { runOnly: only } : { rules: { "target-size": { enabled: true } } };  // off by default
  const { violations } = await axe.run(document, { resultTypes: ["violations"], ...rules });
  const where = (nodes) => nodes.slice(0, 3).map(({ html }) => html.slice(0, 120)).join(" | ");
  return violations.map(({ id, help, nodes }) => `${id}: ${help}: ${where(nodes)}`);
}"""

# Scrolls to each control and asks what lies in its middle. One that is hidden is left out; a menu is open for its own
# links only; a box to tick is as large as its label; links within a text may be as small as the text is.
UNREACHABLE = """() => {
  const LEAST = 24;  // CSS pixels, WCAG 2.2's success criterion 2.5.8
  const menus = [...document.querySelectorAll(".more")];
  const wrong = [];
  for (const control of document.querySelectorAll("a[href], button, input, select, textarea, summary")) {
    for (const menu of menus) menu.open = menu.contains(control);
    if (!control.checkVisibility({ visibilityProperty: true }) || control.matches(".skip")) continue;
    control.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
    const box = [...control.getClientRects()].find(({ width, height }) => width && height);
    if (!box) continue;
    const name = `${control.tagName} ${control.id || control.textContent.trim().slice(0, 30) || control.value}`;
    const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
    if (!top || !(control.contains(top) || control.labels?.[0]?.contains(top))) {
      wrong.push(`${name}: ${top ? `under ${top.tagName} ${top.id || top.className}` : "outside the window"}`);
    }
    const { width, height } = (control.closest("label") ?? control).getBoundingClientRect();
    const inText = getComputedStyle(control).display === "inline";
    if (inText || Math.min(width, height) >= LEAST) continue;
    wrong.push(`${name}: ${Math.round(width)} by ${Math.round(height)} pixels`);
  }
  for (const menu of menus) menu.open = false;
  return wrong;
}"""
SIZES = ((360, 780), (768, 1024), (1280, 800), (1366, 768), (1440, 900), (1920, 1080))
DEMO = "/segmentation"  # all demos have one template; this one has controls of its own
OPEN_MODEL = "/model?model=blazeface_short_range&backend=wasm"
PAGES = [page.address for page in read_studio(Settings().tables).pages]


def unreachable(page: Page) -> dict[str, list[str]]:
    """The controls that cannot be clicked, or are too small for a finger, by the window's size."""
    found = {}
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        found[f"{width} by {height}"] = page.evaluate(UNREACHABLE)
    return {size: wrong for size, wrong in found.items() if wrong}


def open_all(page: Page) -> None:
    """Opens everything that can be folded out."""
    page.evaluate("for (const one of document.querySelectorAll('details:not(.more)')) one.open = true")


def test_axe_finds_nothing_and_every_control_can_be_clicked_on_any_page(demo: Demo) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: python3 -m build_scripts setup")
    page = demo("?backend=wasm", path=DEMO, reduced_motion="reduce")
    page.wait_for_result()
    open_all(page.page)
    page.page.locator("#code-body .cm-content").wait_for()
    found: dict[tuple[str, str], object] = {}
    for path in (DEMO, OPEN_MODEL, *PAGES, "/docs", "/docs/using"):
        if path != DEMO:
            page.page.emulate_media(color_scheme="light", reduced_motion="reduce")
            page.page.goto(page.address + path)
        if path == OPEN_MODEL:
            page.page.locator("#run-box").wait_for()
        open_all(page.page)
        found[path, "clicks"] = unreachable(page.page)
        page.page.evaluate(AXE.read_text())
        found[path, "light"] = page.page.evaluate(RUN, None)
        page.page.emulate_media(color_scheme="dark", reduced_motion="reduce")
        found[path, "dark"] = page.page.evaluate(RUN, ["color-contrast"])  # all else is the same
    assert {where: complaints for where, complaints in found.items() if complaints} == {}
