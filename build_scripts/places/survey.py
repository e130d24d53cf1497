"""`judge compat-matrix`: the wheel of users in every place where it promises to run, tried as its users do; a table."""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser

from build_scripts.errors import BuildError
from build_scripts.paths import BUILD, ROOT, settings
from build_scripts.places import (
    cpython_places,
    jupyter,
    marimo_notebook,
    notebooks,
    pyodide_places,
    site_places,
    wasm_place,
)
from build_scripts.places.recorded import RECORDED, row_of
from build_scripts.setup.chromium import driver, launch_options
from build_scripts.setup.sequence import set_up
from build_scripts.setup.task_models import npm_members

WHEEL, SHOWN = "micropip.install(wheel)", "as it stands there"


@dataclass(frozen=True)
class Place:
    """One place and the road to it; `visit` returns how it was seen to work, or raises what went wrong."""

    name: str
    road: str
    visit: Callable[[Browser], object]


def places() -> list[Place]:
    """Every place, those without a browser first."""
    return [
        *(_cpython(series) for series in cpython_places.SERIES),
        Place("Jupyter, the documentation's notebook", "nbclient, an ipykernel", lambda _: jupyter.in_jupyter()),
        Place("Colab's kernel, the same", "nbclient, IPython 7.34", lambda _: jupyter.in_jupyter("colab")),
        Place("Pyodide with NumPy, the same", "its cells, one by one, in a worker of a page", jupyter.in_pyodide),
        Place("marimo in CPython, the same", "marimo convert, check; python", lambda _: jupyter.in_marimo()),
        Place(
            "wasmtime's command line", "webinfer compile, wasmtime model.wasm < input.npy",
            lambda _: wasm_place.in_wasmtime(),
        ),
        Place("Node, a model as one .wasm", "webinfer compile, node:wasi", lambda _: wasm_place.in_node()),
        Place("stock Pyodide, Node", "loadPackage(wheel)", lambda _: pyodide_places.in_node()),
        *(_stock(worker, isolated) for worker in (False, True) for isolated in (False, True)),
        Place("stock Pyodide, the documentation's page", SHOWN, lambda b: pyodide_places.documented_page(
            b, "html guest", {})),
        Place("PyScript, the documentation's page", SHOWN, lambda b: pyodide_places.documented_page(
            b, "html pyscript", {"/pyscript/": _pyscript()})),
        Place("JupyterLite", "%pip install webinfer in a notebook", notebooks.in_jupyterlite),
        Place("marimo, the documentation's notebook", "marimo export html-wasm", marimo_notebook.in_marimo),
        *_sites(),
    ]  # fmt: skip


def _sites() -> Iterator[Place]:
    """The demo and a package's page in every browser."""
    served, files = "build_scripts serve", "webinfer export --package, http.server, below a path"
    both, one = ("wasm", "webgpu"), ("wasm",)
    yield Place("Chromium, the demo", served, site_places.on_server(site_places.chromium, both, True))
    bare = "build_scripts serve --not-isolated"
    yield Place("Chromium without isolation, the demo", bare, site_places.on_server(site_places.chromium, both, False))
    yield Place("Chromium without isolation, a package", files, site_places.in_package_page(site_places.chromium, both))
    for name, tabs, backends in (("Firefox", site_places.firefox, both), ("WebKitGTK", site_places.webkit, one)):
        yield Place(f"{name}, the demo", served, site_places.on_server(tabs, backends, True))
        yield Place(f"{name} without isolation, the demo", bare, site_places.on_server(tabs, one, False))
        yield Place(f"{name}, a package", files, site_places.in_package_page(tabs, backends))
    export = "build_scripts export, http.server, below a path"
    yield Place("static host, the site", export, site_places.on_static_host(None))
    yield Place("static host, one demo", f"{export} (--demo)", site_places.on_static_host(site_places.DEMO))


def _cpython(series: str) -> Place:
    road = "pip install wheel[native] in an empty environment"
    return Place(f"CPython {series}", road, lambda _: cpython_places.in_cpython(series))


def _stock(worker: bool, isolated: bool) -> Place:
    where = f"{'worker' if worker else 'page'}, {'isolated' if isolated else 'not isolated'}"

    def visit(browser: Browser) -> str:
        answer = pyodide_places.in_browser(browser, worker, isolated)
        if answer.capabilities["threads"][0] != (worker and isolated):
            raise BuildError(f"threads: {answer.threads}")
        return f"{answer}; threads: {answer.threads}"

    return Place(f"stock Pyodide, {where}", WHEEL, visit)


def _pyscript() -> Path:
    """The folder of PyScript's scripts, as npm publishes them."""
    folder = BUILD / "places" / "pyscript"
    if not (folder / "core.js").is_file():
        for name, data in npm_members(settings()["places"]["pyscript"]).items():
            if name.startswith("package/dist/") and name.count("/") == 2:
                folder.mkdir(parents=True, exist_ok=True)
                (folder / name.rpartition("/")[2]).write_bytes(data)
    return folder


def visited(place: Place, browser: Browser) -> dict[str, Any]:
    """What a visit came to: a row of the record."""
    begin = time.monotonic()
    try:
        works, seen = True, str(place.visit(browser))
    except BuildError as error:
        works, seen = False, str(error)
    row = {"place": place.name, "road": place.road, "works": works, "seen": seen}
    print(f"{row_of(row)} ({time.monotonic() - begin:.0f} s)", flush=True)
    return row


def write_record(rows: Mapping[str, dict[str, Any]], browser: str) -> None:
    """Puts these rows, by name of the place, into the record; rows of others stay."""
    kept = {row["place"]: row for row in json.loads(RECORDED.read_text())["rows"]} if RECORDED.is_file() else {}
    found = {**kept, **rows}
    record = {"chromium": browser, "rows": [found[place.name] for place in places() if place.name in found]}
    RECORDED.write_text(json.dumps(record, indent=1) + "\n")


def run(argv: list[str]) -> int:
    """0 if the wheel works in every place that was asked for."""
    parser = argparse.ArgumentParser(prog="python3 -m build_scripts judge compat-matrix", description=__doc__)
    parser.add_argument("words", nargs="*", help="only places whose name has one of these words; none: all")
    parser.add_argument("--record", action="store_true", help="write what was seen into the documentation's table")
    args = parser.parse_args(argv)
    set_up()
    wanted = [p for p in places() if not args.words or any(word.lower() in p.name.lower() for word in args.words)]
    with driver() as playwright:
        browser = playwright.chromium.launch(**launch_options())
        print(f"\nChromium {browser.version}\n\n| place | road | works | how seen |\n|---|---|---|---|", flush=True)
        try:
            rows = {place.name: visited(place, browser) for place in wanted}
            if args.record:
                write_record(rows, browser.version)
                print(f"recorded in {RECORDED.relative_to(ROOT)}; now: python3 -m build_scripts build tables --write")
        finally:
            browser.close()
    return 0 if all(row["works"] for row in rows.values()) else 1
