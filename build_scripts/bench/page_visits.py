"""`measure pages`: of each page of the site on a first visit, its largest paint, its shifts, its requests and bytes.

A page that shows no result is measured up to its error message, or to the deadline; its row says what was missing.
`--record` keeps the figures as a record, from the newest of which the documentation's table is made.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from build_scripts.bench.records import RECORDS, Record, Table, markdown_table, read, write
from build_scripts.errors import BuildError
from build_scripts.setup.sequence import set_up
from server.settings import Settings
from server.studio import read_studio

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Request

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
ERROR = "[data-webinfer-error]"  # set on the root element, see web/static/ui/troubles.js
SETTLE_MS = 1_000  # after a page is done: late paints and shifts
DEADLINE_S = 120.0  # the largest package of models, 35 MB, came within 20 s (two busy cores, 2026-11-28)
WINDOWS = {"1280 px": {"width": 1280, "height": 800}, "360 px": {"width": 360, "height": 780}}
TITLE = "First visits of every page"
COLUMNS = [
    "Page", *(f"Largest paint, {name}" for name in WINDOWS), *(f"Layout shifts, {name}" for name in WINDOWS),
    "Requests", "MB received", "Missing",
]  # fmt: skip


@dataclass(frozen=True)
class Visit:
    """One first visit: milliseconds to the largest paint, the sum of layout shifts, requests, and bytes received.

    `missing` says what kept the page from its result, "" if nothing did.
    """

    lcp_ms: float
    cls: float
    requests: int
    bytes: int
    missing: str = ""


def run(argv: list[str]) -> int:
    """Prints a table; the times are of this machine, its server and whatever else it does meanwhile."""
    parser = argparse.ArgumentParser(prog="python3 -m build_scripts measure pages")
    parser.add_argument("--visits", type=int, default=3, help="of each page in each window; the medians are shown")
    parser.add_argument("--locale", default="en-US", help="the visitor's language, such as de-DE")
    parser.add_argument("--deadline", type=float, default=DEADLINE_S, metavar="S", help="for a page's result")
    parser.add_argument("--record", action="store_true", help="keep the figures as a record")
    parser.add_argument("pages", nargs="*", metavar="/page", help="addresses; all pages if left out")
    options = parser.parse_args(argv)
    if unknown := sorted(set(options.pages) - set(paths())):
        raise BuildError(f"no such pages: {', '.join(unknown)}; there are {', '.join(paths())}")
    set_up()
    found = measure(options.pages or paths(), options.visits, options.locale, options.deadline)
    print(markdown_table(figures(found)))
    if options.record:
        print(f"recorded in {write(record(found, options.visits, options.locale))}")
    return 0


def paths() -> list[str]:
    """The pages to visit: those of the site, and two of the documentation."""
    studio = read_studio(Settings().tables)
    return [*(page.address for page in studio.pages), *(demo.address for demo in studio.demos), *DOCS]


def measure(pages: list[str], visits: int, locale: str, deadline_s: float = DEADLINE_S) -> dict[str, dict[str, Visit]]:
    """For each page and window the medians of its visits, each in a browser context of its own.

    Says on stderr how far it is.
    """
    from build_scripts.setup.chromium import driver, launch_options
    from build_scripts.site.serving import running_server

    found: dict[str, dict[str, Visit]] = {}
    with running_server() as address, driver() as playwright:
        browser = playwright.chromium.launch(**launch_options())
        for path in pages:
            for name, window in WINDOWS.items():
                seen = [visit(browser, address + path, window, locale, deadline_s) for _ in range(visits)]
                found.setdefault(path, {})[name] = one = median(seen)
                print(f"{path}, {name}: {one.lcp_ms:.0f} ms, {one.cls:.3f} {one.missing}", file=sys.stderr, flush=True)
        browser.close()
    return found


def median(seen: Sequence[Visit]) -> Visit:
    """The medians of some visits, of those that had everything if there are any."""
    whole = [one for one in seen if not one.missing] or seen
    columns = ([getattr(one, name) for one in whole] for name in ("lcp_ms", "cls", "requests", "bytes"))
    lcp, cls, requests, count = (statistics.median(values) for values in columns)
    return Visit(lcp, cls, round(requests), round(count), whole[0].missing)


def visit(browser: Browser, url: str, window: dict[str, int], locale: str, deadline_s: float = DEADLINE_S) -> Visit:
    """One visit with nothing cached, until the page shows a result, its engine runs, or it says what is wrong."""
    context = browser.new_context(service_workers="block", viewport=window, locale=locale)
    context.add_init_script(WATCH)
    finished: list[Request] = []
    refused: list[str] = []
    try:
        page = context.new_page()
        page.on("requestfinished", lambda request: finished.append(request))
        page.on("response", lambda answer: refused.append(answer.url) if answer.status >= 400 else None)
        missing = open_whole(page, url, deadline_s)
        page.wait_for_timeout(SETTLE_MS)
        if refused:
            missing = f"the server refused {', '.join(urlsplit(one).path for one in refused)}"
        seen = page.evaluate("seen")
        sizes = [one.sizes() for one in finished]  # asked for here: an event's listener must not wait
        received = sum(one["responseBodySize"] + one["responseHeadersSize"] for one in sizes)
        return Visit(seen["lcp"], seen["cls"], len(sizes), received, missing)
    finally:
        context.close()


def open_whole(page: Page, url: str, deadline_s: float) -> str:
    """Opens a page until it is done or has failed; what is missing then, or "". The whole reason goes to stderr."""
    from playwright.sync_api import TimeoutError

    page.set_default_timeout(1000 * deadline_s)
    try:
        page.goto(url)
        done = next((done for where, done in DONE.items() if page.locator(where).count()), "html")
        page.locator(f"{done}, {ERROR}").first.wait_for(state="attached")
    except TimeoutError:
        return f"no result after {deadline_s:.0f} s"
    failed = page.locator(ERROR)
    if page.locator(done).count() or not failed.count():
        return ""
    print(json.loads(failed.get_attribute("data-webinfer-error") or "{}").get("message"), file=sys.stderr)
    title, model = page.locator("#message-title").inner_text(), failed.get_attribute("data-model")
    return f"{title}: {model}" if model else title


def figures(found: Mapping[str, Mapping[str, Visit]]) -> Table:
    """The figures as a table; requests and bytes are those of the first window."""
    rows = []
    for path, seen in found.items():
        first = next(iter(seen.values()))
        paints = [f"{seen[name].lcp_ms:.0f} ms" for name in WINDOWS]
        shifts = [f"{seen[name].cls:.3f}" for name in WINDOWS]
        missing = next((one.missing for one in seen.values() if one.missing), "")
        rows.append([f"`{path}`", *paints, *shifts, str(first.requests), f"{first.bytes / 1e6:.2f}", missing])
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
