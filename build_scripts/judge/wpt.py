"""`wpt`: the W3C's tests of WebNN in headless Chromium, with our module in each page.

Prints each page with failures, and the numbers of sub-tests that passed and failed. A failure must have a cause in
wpt_causes.toml; `--record` keeps numbers and failures of a whole run for the documentation.
"""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from build_scripts.errors import BuildError
from build_scripts.judge.wpt_server import serving_suite, tests_of
from build_scripts.judge.wpt_table import CAUSES, PASSED, Found, explained, record
from build_scripts.setup.chromium import driver, launch_options
from build_scripts.setup.sequence import set_up

if TYPE_CHECKING:
    from playwright.sync_api import Browser

STATES = ("passed", "failed", "timed out", "not run", "not applicable")
LIMIT_S = 120
START_S = 180
PAGES_A_START = 60  # pages of one host page, then a fresh one: what tests leave behind does not pile up


def run(argv: list[str]) -> int:
    """0 if every page came to its end."""
    parser = argparse.ArgumentParser(prog="python3 -m build_scripts judge wpt", description=__doc__)
    parser.add_argument("--src", type=Path, required=True, help="the suite's tree: the folder that holds webnn/")
    parser.add_argument("--variant", choices=("cpu", "gpu", "npu"), default="cpu", help="device type (default cpu)")
    parser.add_argument("--filter", default=".", help="only pages whose path fits this regular expression")
    parser.add_argument("--json", type=Path, help="write every sub-test to this file")
    parser.add_argument("--record", action="store_true", help="renew what the documentation shows, of a whole run")
    parser.add_argument("--verbose", action="store_true", help="print every sub-test that did not pass")
    options = parser.parse_args(argv)
    if not (options.src / "webnn").is_dir():
        raise BuildError(f"{options.src} holds no folder webnn; name the suite's tree with --src")
    set_up()
    found: Found = {}
    begin = time.monotonic()
    with driver() as playwright:
        browser = playwright.chromium.launch(**launch_options())
        for page, result in run_suite(browser, options.src, options.variant, options.filter):
            found[page] = result
            _print(page, result, options.verbose)
        browser.close()
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    counts = count(found)
    told = ", ".join(f"{number} {state}" for state, number in counts.items() if number)
    print(f"{options.variant}: {sum(counts.values())} sub-tests of {len(found)} pages: {told}", end="")
    print(f" ({time.monotonic() - begin:.0f} s)")
    failures, unknown = explained(found, options.variant)
    for page, name in unknown:
        print(f"no cause in {CAUSES.name}: {page}: {name}")
    if options.record:
        record(options.variant, counts, len(found), failures)
    return 0 if found and not unknown and all(result["status"] == 0 for result in found.values()) else 1


def run_suite(browser: "Browser", root: Path, variant: str, pattern: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each page of the suite and what it found."""
    pages = tests_of(root, variant, pattern)
    with serving_suite(root) as address:
        for first in range(0, len(pages), PAGES_A_START):
            host = browser.new_page()
            host.set_default_timeout(1000 * LIMIT_S)
            host.goto(address)
            host.wait_for_function("self.isReady", timeout=1000 * START_S)
            for page in pages[first : first + PAGES_A_START]:
                yield page, host.evaluate("([url, ms]) => runTest(url, ms)", [page, 1000 * LIMIT_S])
            host.close()


def count(found: Found) -> dict[str, int]:
    """How many sub-tests ended in each state."""
    states = [test[1] for result in found.values() for test in result["tests"]]
    return {name: states.count(state) for state, name in enumerate(STATES)}


def _print(page: str, result: dict[str, Any], verbose: bool) -> None:
    bad = [test for test in result["tests"] if test[1] != PASSED]
    if bad or result["status"]:
        print(f"{page}: {len(bad)} of {len(result['tests'])} did not pass {result['message'] or ''}", flush=True)
    for name, _, message in bad if verbose else ():
        print(f"    {name}: {message}")
