"""The page opens without a network after one visit, and never with files of two versions."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Request, Route

from build_scripts.paths import WEB
from build_scripts.places.browsers import Firefox, WebKit
from e2e_tests.flaky import FlakyNetwork
from e2e_tests.pages import DemoPage

Demo = Callable[..., DemoPage]
QUERY = "?backend=wasm&stallTimeout=5"
KEPT = """async () => {
  const worker = (await navigator.serviceWorker?.getRegistration())?.active?.state;
  const names = (await caches.keys()).filter((name) => name.startsWith("webinfer site "));
  const complete = await Promise.all(names.map(async (name) => Boolean(await (await caches.open(name)).match("/"))));
  return worker === "activated" && complete.includes(true) && names.length === 1 ? names : null; // others go last
}"""
OLD_VERSION = """async () => {
  const cache = await caches.open("webinfer site old");
  await cache.put("/old", new Response("old"));
}"""


def visited(demo: Demo, address: str) -> DemoPage:
    """A page that was visited once, and whose site is kept."""
    page = demo(QUERY, address=address, service_workers="allow", idle_work=True)
    page.page.evaluate(OLD_VERSION)
    page.wait_for_result()
    (name,) = page.wait_for("kept site", lambda: page.page.evaluate(KEPT))
    assert "old" not in name
    icons = page.page.locator("link[rel=icon][href$='.svg'], link[rel=manifest]")
    assert page.wait_for("icons, behind the first result", lambda: icons.count() == 2)
    return page


def test_without_a_network_the_page_opens_in_two_tabs(demo: Demo, address: str) -> None:
    with FlakyNetwork(address) as network:
        page = visited(demo, network.address)
        network.hang_after(0)
        page.page.reload()
        assert len(page.wait_for_result()["faces"]) == 1  # a network that hangs
    other = page.context.new_page()  # no network at all
    other.goto(page.url)
    page.page.reload()
    assert len(page.wait_for_result()["faces"]) == 1
    assert page.page.evaluate("crossOriginIsolated") is True
    page.page, first = other, page.page
    assert len(page.wait_for_result()["faces"]) == 1
    assert first.evaluate("crossOriginIsolated") is True
    page.complaints.clear()  # the browser reports what it could not ask for


# Runs the service worker's script among caches and a network that are only pretended: a page that was kept is opened,
# the browser ends the script, and starts it again for a file of that page.
ENDED_BETWEEN = """async (script) => {
  const names = new Map([["webinfer site 1", ["/a-demo", "/", "/assets/a.js"]]]);
  const caches = {
    keys: async () => [...names.keys()],
    has: async (name) => names.has(name),
    delete: async (name) => names.delete(name),
    open: async (name) => {
      if (!names.has(name)) names.set(name, []);
      const path = (asked) => new URL(asked.url ?? asked, "http://x").pathname;
      return { match: async (asked) => names.get(name).find((kept) => kept === path(asked)) };
    },
  };
  const start = (network) => {
    const handlers = {};
    const addEventListener = (type, handler) => (handlers[type] = handler);
    const scope = { location: { origin: "http://x", href: "http://x/service_worker.js" }, addEventListener };
    new Function("self", "caches", "fetch", script)(scope, caches, network);
    return (path, mode) => new Promise((resolve) => {
      const preloadResponse = mode === "navigate" ? network() : undefined;
      const request = { url: `http://x${path}`, method: "GET", mode };
      handlers.fetch({ request, preloadResponse, respondWith: resolve, waitUntil() {} });
      resolve("left to the browser");
    });
  };
  const down = () => Promise.reject(new Error("down"));
  const up = async () => ({ status: 200 });
  const page = await start(down)("/a-demo", "navigate");
  const file = await start(down)("/assets/a.js", "cors");
  const online = start(up);
  await online("/", "navigate");
  return [page, file, await online("/assets/a.js", "cors"), [...names.keys()]];
}"""
KEEP = """async () => {
  const { assets } = JSON.parse(document.getElementById("manifest").textContent);
  for (const row of Object.values(assets)) row.url = new URL(row.url, document.baseURI).href;
  const { keepSite } = await import(assets["static/offline.js"].url);
  try {
    await keepSite(assets, location.pathname, "/");
  } catch (error) {
    return String(error);
  }
  const names = (await caches.keys()).filter((name) => name.startsWith("webinfer site "));
  return Promise.all(names.map(async (name) => Boolean(await (await caches.open(name)).match("/"))));
}"""


def test_a_service_worker_that_was_ended_knows_where_the_page_is_from(browser: Browser) -> None:
    page = browser.new_page()
    script = (WEB / "static/startup/service_worker.js").read_text()
    page_from, file, online, names = page.evaluate(ENDED_BETWEEN, script)
    page.close()
    assert (page_from, file, online) == ("/a-demo", "/assets/a.js", "left to the browser")
    assert names == ["webinfer site 1"]


DAMAGE = """async () => {
  const [name] = (await caches.keys()).filter((name) => name.startsWith("webinfer site "));
  const cache = await caches.open(name);
  const paths = (await cache.keys()).map(({ url }) => new URL(url).pathname);
  const files = paths.filter((path) => path.endsWith(".css") || path.endsWith("/engine_worker.js"));
  const changed = [...files.slice(0, 2), "/"];
  for (const path of changed) {
    const { headers } = await cache.match(path);
    await cache.put(path, new Response(path === "/" ? "<html>Sign in</html>" : "", { headers }));
  }
  return changed;
}"""
LENGTHS = """async (paths) => {
  const [name] = (await caches.keys()).filter((name) => name.startsWith("webinfer site "));
  const cache = await caches.open(name);
  return Promise.all(paths.map(async (path) => (await (await cache.match(path)).arrayBuffer()).byteLength));
}"""


def test_what_is_kept_and_damaged_is_replaced(demo: Demo, address: str) -> None:
    page = visited(demo, address)
    changed = page.page.evaluate(DAMAGE)
    assert len(changed) == 3
    assert page.page.evaluate(KEEP) == [True]  # as a worker does when nobody waits
    assert min(page.page.evaluate(LENGTHS, changed)) > 100
    page.complaints.clear()  # a sign-in page has no style


@pytest.mark.parametrize("name", ["firefox", "webkit"])
def test_other_browsers_open_kept_pages_without_the_server(
    name: str, address: str, request: pytest.FixtureRequest
) -> None:
    browser: Firefox | WebKit = request.getfixturevalue(name)
    result = "document.documentElement.dataset.webinferResult ?? null"
    with browser.tab() as tab:
        with FlakyNetwork(address) as network:
            tab.open(f"{network.address}/face-detection{QUERY}")
            tab.wait_for("result", lambda: tab.evaluate(result))
            tab.wait_for("kept site", lambda: tab.evaluate(f"({KEPT})()"))
        tab.open(f"{network.address}/face-detection{QUERY}")  # nobody listens there any more
        tab.wait_for("result without a server", lambda: tab.evaluate(result))


def test_the_site_is_kept_once_and_whole(demo: Demo) -> None:
    def damage(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(status=200, body=answer.body() + b" ", content_type="text/css")

    page = demo(QUERY, broken=(re.compile(r"/docs\.css$"), damage))
    page.wait_for_result()
    for words in (
        "being started again",
        "ended without an error message",
    ):  # no engine is left, which would keep the site by itself
        page.end_worker()
        page.wait_for_error("engine-died", words)
    assert "TypeError" in page.page.evaluate(KEEP)
    page.mended = True
    assert page.page.evaluate(KEEP) == [True]
    asked: list[str] = []

    def heard(request: Request) -> None:
        if request.resource_type == "fetch":  # the page asks for its own pictures when it is idle, kept or not
            asked.append(request.url)

    page.page.on("request", heard)
    assert page.page.evaluate(KEEP) == [True]
    assert not asked
    page.complaints.clear()  # the browser reports what it found damaged
