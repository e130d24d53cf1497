"""The page opens without a network after one visit, and never with files of two versions."""

from __future__ import annotations

from collections.abc import Callable

from e2e_tests.flaky import FlakyNetwork
from e2e_tests.pages import DemoPage

Demo = Callable[..., DemoPage]
QUERY = "?backend=wasm&patience=5"
KEPT = """async () => {
  const worker = (await navigator.serviceWorker?.getRegistration())?.active?.state;
  const names = (await caches.keys()).filter((name) => name.startsWith("webinfer site "));
  const complete = await Promise.all(names.map(async (name) => Boolean(await (await caches.open(name)).match("/"))));
  return worker === "activated" && complete.includes(true) ? names : null;
}"""
OLD_VERSION = """async () => {
  const cache = await caches.open("webinfer site old");
  await cache.put("/old", new Response("old"));
}"""


def visited(demo: Demo, address: str) -> DemoPage:
    """A page that was visited once, and whose site is kept."""
    page = demo(QUERY, address=address, service_workers="allow")
    page.page.evaluate(OLD_VERSION)
    page.wait_for_result()
    (name,) = page.wait_for("kept site", lambda: page.page.evaluate(KEPT))
    assert "old" not in name
    return page


def test_without_a_network_the_page_opens_in_two_tabs(demo: Demo, address: str) -> None:
    with FlakyNetwork(address) as network:
        page = visited(demo, network.address)
        network.hang_after(0)
        page.page.reload()
        assert len(page.wait_for_result()["faces"]) == 1  # a network that hangs
    other = page.context.new_page()  # no network at all
    other.goto(f"{page.address}/{QUERY}")
    page.page.reload()
    assert len(page.wait_for_result()["faces"]) == 1
    assert page.page.evaluate("crossOriginIsolated") is True
    page.page, first = other, page.page
    assert len(page.wait_for_result()["faces"]) == 1
    assert first.evaluate("crossOriginIsolated") is True
    page.complaints.clear()  # the browser reports what it could not ask for
