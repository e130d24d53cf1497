"""`measure pages`: of each page of the site on a first visit, its largest paint, its shifts, its requests and bytes.

`--record` keeps the figures as a record, from the newest of which the documentation's table is made.
"""

from __future__ import annotations

import argparse
import datetime
import os
import statistics
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from build_scripts.bench.records import RECORDS, Record, Table, markdown_table, read, write
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
DONE = {  # what a page has, and what shows that it is done: a result, a running engine
    "[data-model]:not([data-model='']) #downloads": "#downloads:not([hidden])",
    "#loading": "#loading[hidden]",
    "#live": "#live[data-result]",
}
SETTLE_MS = 1_000  # after a page is done: late paints and shifts
LIMIT_MS = 120_000
WINDOWS = {"1280 px": {"width": 1280, "height": 800}, "360 px": {"width": 360, "height": 780}}
TITLE = "First visits of every page"
COLUMNS = [
    "Page", *(f"Largest paint, {name}" for name in WINDOWS), *(f"Layout shifts, {name}" for name in WINDOWS),
    "Requests", "MB received",
]  # fmt: skip


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
    parser.add_argument("--visits", type=int, default=3, help="of each page in each window; the medians are shown")
    parser.add_argument("--locale", default="en-US", help="the visitor's language, such as de-DE")
    parser.add_argument("--record", action="store_true", help="keep the figures as a record")
    parser.add_argument("pages", nargs="*", metavar="/page", help="addresses; all pages if left out")
    options = parser.parse_args(argv)
    if unknown := sorted(set(options.pages) - set(paths())):
        raise BuildError(f"no such pages: {', '.join(unknown)}; there are {', '.join(paths())}")
    set_up()
    found = measure(options.pages or paths(), options.visits, options.locale)
    print(markdown_table(figures(found)))
    if options.record:
        print(f"recorded in {write(record(found, options.visits, options.locale))}")
    return 0


def paths() -> list[str]:
    """The pages to visit: those of the site, and two of the documentation."""
    studio = read_studio(Settings().tables)
    return [*(page.address for page in studio.pages), *(demo.address for demo in studio.demos), *DOCS]


def measure(pages: list[str], visits: int, locale: str) -> dict[str, dict[str, Visit]]:
    """For each page and window the medians of its visits, each in a browser context of its own.

    Says on stderr how far it is. Raises: BuildError if a page cannot be shown whole, as when the site is built anew
    meanwhile
    """
    from build_scripts.setup.chromium import driver, launch_options
    from build_scripts.site.serving import running_server

    found: dict[str, dict[str, Visit]] = {}
    with running_server() as address, driver() as playwright:
        browser = playwright.chromium.launch(**launch_options())
        for path in pages:
            for name, window in WINDOWS.items():
                seen = [visit(browser, address + path, window, locale) for _ in range(visits)]
                columns = zip(*(asdict(one).values() for one in seen), strict=True)
                lcp, cls, requests, count = (statistics.median(values) for values in columns)
                found.setdefault(path, {})[name] = Visit(lcp, cls, round(requests), round(count))
                print(f"{path}, {name}: {lcp:.0f} ms, {cls:.3f}", file=sys.stderr, flush=True)
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
        for where, done in DONE.items():
            if page.locator(where).count():
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


def figures(found: Mapping[str, Mapping[str, Visit]]) -> Table:
    """The figures as a table; requests and bytes are those of the first window."""
    rows = []
    for path, seen in found.items():
        first = next(iter(seen.values()))
        paints = [f"{seen[name].lcp_ms:.0f} ms" for name in WINDOWS]
        shifts = [f"{seen[name].cls:.3f}" for name in WINDOWS]
        rows.append([f"`{path}`", *paints, *shifts, str(first.requests), f"{first.bytes / 1e6:.2f}"])
    return Table("Medians", COLUMNS, rows)


def record(found: Mapping[str, Mapping[str, Visit]], visits: int, locale: str) -> Record:
    """The figures as a record of today, with what they were measured on."""
    from build_scripts.bench.measure import machine  # which needs a browser's driver, as tables do not

    load = f"load {os.getloadavg()[0]:.0f} at the end, the server on the same machine, no network between"
    notes = [
        f"`measure pages`: medians of {visits} first visit(s) of each page in each window, in headless Chromium with"
        f" nothing cached, locale {locale}.",
        f"{machine()}, {load}.",
    ]
    return Record(TITLE, datetime.datetime.now(datetime.UTC).date().isoformat(), notes, [figures(found)])


def recorded() -> str:
    """The newest record of every page, as Markdown: what it was measured on, and its table.

    Raises:  BuildError if there is none
    """
    slug = TITLE.lower().replace(" ", "-")
    names = sorted(path.stem for path in RECORDS.glob(f"*-{slug}*.json"))
    if not names:
        raise BuildError("no record has the figures of the pages; `measure pages --record` makes one")
    found = read(names[-1])
    shown = markdown_table(found.tables[0]).replace("--:", "---")  # a style attribute, which the site's policy refuses
    return f"{' '.join(found.notes)} Measured on {found.date}.\n\n{shown}"
