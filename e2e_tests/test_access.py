"""axe-core finds nothing to complain of on any page, light or dark."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from build_scripts.paths import NODE_MODULES
from e2e_tests.pages import DemoPage
from server.settings import Settings
from server.studio import read_studio

Demo = Callable[..., DemoPage]
AXE = NODE_MODULES / "axe-core" / "axe.min.js"
RUN = """async (only) => {
  const rules = only ? { runOnly: only } : {};
  const { violations } = await axe.run(document, { resultTypes: ["violations"], ...rules });
  const where = (nodes) => nodes.slice(0, 3).map(({ html }) => html.slice(0, 120)).join(" | ");
  return violations.map(({ id, help, nodes }) => `${id}: ${help}: ${where(nodes)}`);
}"""
DEMO = "/segmentation"  # all demos have one template; this one has controls of its own
PAGES = [page.address for page in read_studio(Settings().tables).pages]


def test_axe_finds_nothing_on_any_page_in_either_theme(demo: Demo) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: python3 -m build_scripts setup")
    page = demo("?backend=wasm", path=DEMO, reduced_motion="reduce")
    page.wait_for_result()
    for summary in page.page.locator("details > summary").all():
        summary.click()
    page.page.locator("#code-body .cm-content").wait_for()
    found = {}
    for path in (DEMO, *PAGES, "/docs", "/docs/using"):
        if path != DEMO:
            page.page.emulate_media(color_scheme="light", reduced_motion="reduce")
            page.page.goto(page.address + path)
        page.page.evaluate(AXE.read_text())
        found[path, "light"] = page.page.evaluate(RUN, None)
        page.page.emulate_media(color_scheme="dark", reduced_motion="reduce")
        found[path, "dark"] = page.page.evaluate(RUN, ["color-contrast"])  # all else is the same
    assert {where: complaints for where, complaints in found.items() if complaints} == {}
