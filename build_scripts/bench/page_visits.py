"""`measure pages`: of each page of the site on a first visit, its largest paint, its shifts, its requests and bytes."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from build_scripts.errors import BuildError
from build_scripts.setup.sequence import set_up
from server.settings import Settings
from server.studio import read_studio

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Request

# As web-vitals counts them: https://web.dev/articles/lcp, https://web.dev/articles/cls (its windows of shifts are not
# told apart here: the sum is an upper bound).
WATCH = """
  self.seen = { lcp: 0, cls: 0 };
  new PerformanceObserver((list) => { for (const one of list.getEntries()) seen.lcp = one.startTime; })
    .observe({ type: "largest-contentful-paint", buffered: true });
  new PerformanceObserver((list) => {
    for (const one of list.getEntries()) if (!one.hadRecentInput) seen.cls += one.value;
  }).observe({ type: "layout-shift", buffered: true });
"""
DOCS = ("/docs", "/docs/using")
SETTLE_MS = 1_000  # after a page is done: late paints and shifts
LIMIT_MS = 120_000
PHONE, DESK = {"width": 360, "height": 780}, {"width": 1280, "height": 800}


@dataclass(frozen=True)
class Visit:
    """One first visit: milliseconds to the largest paint, the sum of layout shifts, requests, and bytes received."""

    lcp_ms: float
    cls: float
    requests: int
    bytes: int


def run(argv: list[str]) -> int:
    """Prints a table; the times are of this machine, its server and whatever else it does meanwhile."""
    parser = argparse.ArgumentParser(prog="python3 -m build_scripts measure pages")
    parser.add_argument("--visits", type=int, default=3, help="first visits of each page; the median is shown")
    parser.add_argument("--phone", action="store_true", help="a window of 360 by 780, not 1280 by 800")
    parser.add_argument("--locale", default="en-US", help="the visitor's language, such as de-DE")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args(argv)
    set_up()
    found = measure(options.visits, PHONE if options.phone else DESK, options.locale)
    print(table(found))
    if options.json:
        options.json.write_text(json.dumps({path: asdict(visit) for path, visit in found.items()}, indent=1) + "\n")
    return 0


def paths() -> list[str]:
    """The pages to visit: all that are no demos, one demo of each source, and two of the documentation."""
    studio = read_studio(Settings().tables)
    demos = {demo.source: demo.address for demo in reversed(studio.demos)}
    return [*(page.address for page in studio.pages), *sorted(demos.values()), *DOCS]


def measure(visits: int, window: dict[str, int], locale: str) -> dict[str, Visit]:
    """The medians of each page's visits, each in a browser context of its own; says on stderr how far it is.

    Raises: BuildError if a page cannot be shown whole, as when the site is built anew meanwhile
    """
    from build_scripts.setup.chromium import driver, launch_options
    from build_scripts.site.serving import running_server

    found = {}
    with running_server() as address, driver() as playwright:
        browser = playwright.chromium.launch(**launch_options())
        for path in paths():
            seen = [visit(browser, address + path, window, locale) for _ in range(visits)]
            figures = zip(*(asdict(one).values() for one in seen), strict=True)
            lcp, cls, requests, count = (statistics.median(values) for values in figures)
            found[path] = Visit(lcp, cls, round(requests), round(count))
            print(f"{path}: {lcp:.0f} ms", file=sys.stderr, flush=True)
        browser.close()
    return found


def visit(browser: Browser, url: str, window: dict[str, int], locale: str) -> Visit:
    """One visit with nothing cached, until the page shows a result, or its engine runs, or it has loaded.

    Raises: BuildError if the server refused a file
    """
    context = browser.new_context(service_workers="block", viewport=window, locale=locale)
    context.add_init_script(WATCH)
    finished: list[Request] = []
    refused: list[str] = []
    try:
        page = context.new_page()
        page.on("requestfinished", lambda request: finished.append(request))
        page.on("response", lambda answer: refused.append(answer.url) if answer.status >= 400 else None)
        page.goto(url)
        for done in ("#downloads:not([hidden])", "#loading[hidden]", "#live[data-result]"):
            if page.locator(done.partition(":")[0].partition("[")[0]).count():
                page.locator(done).wait_for(state="attached", timeout=LIMIT_MS)
                break
        page.wait_for_timeout(SETTLE_MS)
        if refused:
            raise BuildError(f"{url} was not shown whole: the server refused {', '.join(refused)}")
        seen = page.evaluate("seen")
        sizes = [one.sizes() for one in finished]  # asked for here: an event's listener must not wait
        received = sum(one["responseBodySize"] + one["responseHeadersSize"] for one in sizes)
        return Visit(seen["lcp"], seen["cls"], len(sizes), received)
    finally:
        context.close()


def table(found: dict[str, Visit]) -> str:
    """The figures as a table in Markdown."""
    rows = ["| page | largest paint | layout shifts | requests | MB received |", "|---|---:|---:|---:|---:|"]
    for path, one in found.items():
        rows.append(f"| `{path}` | {one.lcp_ms:.0f} ms | {one.cls:.3f} | {one.requests} | {one.bytes / 1e6:.2f} |")
    return "\n".join(rows)
