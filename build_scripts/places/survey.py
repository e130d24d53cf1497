"""The verb `places`: the wheel of users in every place where it promises to run, tried as its users do; a table."""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from playwright.sync_api import Browser

from build_scripts.errors import BuildError
from build_scripts.paths import BUILD, settings
from build_scripts.places import cpython_places, notebooks, pyodide_places, wasm_place
from build_scripts.setup.chromium import driver, launch_options
from build_scripts.setup.sequence import set_up
from build_scripts.setup.task_models import npm_members


@dataclass(frozen=True)
class Place:
    """One place and the road to it; `visit` returns how it was seen to work, or raises what went wrong."""

    name: str
    road: str
    visit: Callable[[], object]


def browser_places(browser: Browser) -> Iterator[Place]:
    """Places in a browser."""
    for worker in (False, True):
        for isolated in (False, True):
            where = f"{'worker' if worker else 'page'}, {'isolated' if isolated else 'not isolated'}"
            visit = partial(_with_threads, browser, worker, isolated)
            yield Place(f"stock Pyodide, {where}", "micropip.install(wheel)", visit)


def _with_threads(browser: Browser, worker: bool, isolated: bool) -> str:
    answer = pyodide_places.in_browser(browser, worker, isolated)
    able = worker and isolated
    if answer.capabilities["threads"][0] != able:
        raise BuildError(f"threads: {answer.threads}")
    return f"{answer}; threads: {answer.threads}"


def shown_places(browser: Browser) -> Iterator[Place]:
    """Pages that the documentation shows, a notebook, and what cannot be visited."""
    yield Place(
        "stock Pyodide, the documentation's page", "as it stands there",
        lambda: pyodide_places.documented_page(browser, "guest", {}),
    )  # fmt: skip
    yield Place(
        "PyScript, the documentation's page", "as it stands there",
        lambda: pyodide_places.documented_page(browser, "pyscript", {"/pyscript/": _pyscript()}),
    )  # fmt: skip
    yield Place("JupyterLite", "%pip install webinfer in a notebook", partial(notebooks.in_jupyterlite, browser))


def _pyscript() -> Path:
    """The folder of PyScript's scripts, as npm publishes them."""
    folder = BUILD / "places" / "pyscript"
    if not (folder / "core.js").is_file():
        for name, data in npm_members(settings()["places"]["pyscript"]).items():
            if name.startswith("package/dist/") and name.count("/") == 2:
                folder.mkdir(parents=True, exist_ok=True)
                (folder / name.rpartition("/")[2]).write_bytes(data)
    return folder


def other_places() -> Iterator[Place]:
    """Places without a browser."""
    for series in cpython_places.SERIES:
        visit = partial(cpython_places.in_cpython, series)
        yield Place(f"CPython {series}", "pip install wheel[native] in an empty environment", visit)
    yield Place("wasmtime's command line", "webinfer compile, wasmtime model.wasm < input.npy", wasm_place.in_wasmtime)
    yield Place("stock Pyodide, Node", "loadPackage(wheel)", pyodide_places.in_node)


def run(argv: list[str]) -> int:
    """0 if the wheel works in every place that was asked for."""
    parser = argparse.ArgumentParser(prog="python3 -m build_scripts places", description=__doc__)
    parser.add_argument("words", nargs="*", help="only places whose name has one of these words; none: all")
    words = parser.parse_args(argv).words
    set_up()
    failed = 0
    with driver() as playwright:
        browser = playwright.chromium.launch(**launch_options())
        print(
            f"\n| place | road | works | how seen |\n|---|---|---|---|\n| | | | Chromium {browser.version} |",
            flush=True,
        )
        try:
            for place in (*other_places(), *browser_places(browser), *shown_places(browser)):
                if words and not any(word.lower() in place.name.lower() for word in words):
                    continue
                begin = time.monotonic()
                try:
                    works, seen = "yes", str(place.visit())
                except BuildError as error:
                    works, seen = "NO", str(error)
                    failed += 1
                print(
                    f"| {place.name} | {place.road} | {works} | {seen} ({time.monotonic() - begin:.0f} s) |", flush=True
                )
        finally:
            browser.close()
    return 1 if failed else 0
