"""`build runtime-profile`: records which functions of Python's runtime the pages of the site run.

The site is served with a runtime that notes what ran; Chromium opens the demos, and in one of them Python does what
programs of users do. After another version of Pyodide this is run again; until then its runtime is one file.
"""

import argparse
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from build_scripts.errors import BuildError
from build_scripts.paths import NODE_MODULES, SITE
from build_scripts.setup.sequence import set_up
from build_scripts.site.assemble import PYODIDE_FILES, WHOLE_RUNTIME
from build_scripts.site.runtime_split import OWN, PROFILE, counting, record, recorded
from build_scripts.site.serving import running_server
from server.settings import settings_from

RUNTIMES = ("pyodide/pyodide.first.wasm", WHOLE_RUNTIME)  # what pages run: the second where nothing is recorded yet
WORKER = "static/engine_worker.js"
KEEP = """const instantiate = WebAssembly.instantiate;
WebAssembly.instantiate = async (...given) => {
  const made = await instantiate(...given);
  const { exports } = made.instance ?? made;
  if (Object.keys(exports).some((name) => name.startsWith("%sran"))) self.runtimeRan = exports;
  return made;
};
"""
READ = """() => Object.entries(self.runtimeRan).filter(([name, flag]) => name.startsWith("%sran") && flag.value)
  .map(([name]) => Number(name.slice(%d)))"""
USERS = Path(__file__).with_name("profiled_program.txt")  # what programs of users do
CALLS = Path(__file__).with_name("profiled_calls.txt")  # and what their JavaScript asks of Python
TWICE = ("face-detection?backend=wasm", "face-detection?backend=webgpu")  # the second visit finds what was kept
ONCE = (
    "face-detection?backend=wasm&debug=2", "face-detection?backend=webnn", "segmentation?backend=webgpu",
    *(f"{name}?backend=wasm" for name in ("face-landmarks", "hand-landmarks", "pose-landmarks", "holistic", "people",
      "body-parts", "image-classification", "object-detection", "text", "speech", "sentences", "files")),
)  # fmt: skip
DESKS = ("model", "chat")  # pages without a result of their own
ASKED = (  # of the worker, beside pictures
    {"type": "plan"}, {"type": "profile"}, {"type": "tune", "budget": 500}, {"type": "exportTuning"},
    {"type": "importTuning", "text": "no tuning"}, {"type": "runCode", "code": "print(1)\n1 / 0"},
)  # fmt: skip
ASK = "(data) => self.dispatchEvent(new MessageEvent('message', { data }))"
LIMIT_S = 120
WARM_MS = 8000  # until nothing is done any more after a result
ANSWER_MS = 1500


def run(argv: list[str]) -> int:
    """Writes build_scripts/site/runtime_profile.json; takes some minutes."""
    parser = argparse.ArgumentParser(prog="python3 -m build_scripts build runtime-profile", description=__doc__)
    parser.add_argument("--add", action="append", help="a page whose functions are added to what is recorded already")
    pages = parser.parse_args(argv).add
    set_up()
    whole = (NODE_MODULES / "pyodide" / PYODIDE_FILES[0]).read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        site = counting_site(Path(folder) / "site", whole)
        with running_server(replace(settings_from(), site=site)) as address:
            ran = frozenset(i for page in visits(address, pages or (*TWICE, *ONCE, *DESKS)) for i in page)
    if pages:
        ran |= recorded(whole) or frozenset()
    record(whole, ran)
    print(f"{len(ran)} functions ran; written to {PROFILE.name}")
    return 0


def counting_site(place: Path, whole: bytes) -> Path:
    """The built site with a runtime that notes what ran, and a worker that keeps hold of it."""
    shutil.copytree(SITE, place, copy_function=os.link)
    manifest = json.loads((SITE / "manifest.json").read_text())
    rows = manifest["assets"]
    worker = (SITE / rows[WORKER]["url"].lstrip("/")).read_bytes()
    runtime = next(name for name in RUNTIMES if name in rows)
    for name, data in {runtime: counting(whole), WORKER: (KEEP % OWN).encode() + worker}.items():
        path = place / rows[name]["url"].lstrip("/")
        path.unlink()
        path.write_bytes(data)
        rows[name] |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest(), "encodings": {}}
    _write_anew(place / "manifest.json", manifest)
    return place


def _write_anew(path: Path, value: Mapping[str, Any]) -> None:
    path.unlink()  # it is a link to the site's own
    path.write_text(json.dumps(value))


def _await_result(page: Any) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not (data := page.evaluate("({...document.documentElement.dataset})")).get("webinferResult"):
        if data.get("webinferError") or time.monotonic() > deadline:
            raise BuildError(f"{page.url} shows no result: {data.get('webinferError', 'nothing')}")
        page.wait_for_timeout(100)


def visits(address: str, pages: Sequence[str]) -> Iterator[list[int]]:
    """The functions that ran in each page."""
    from build_scripts.setup.chromium import driver, launch_options

    with driver() as playwright:
        browser = playwright.chromium.launch(**launch_options(webgpu=True))
        for name in pages:
            context = browser.new_context()
            for _ in range(2 if name in TWICE else 1):
                try:
                    ran = _visit(context.new_page(), f"{address}/{name}", result=name not in DESKS)
                except BuildError as error:
                    print(f"  {error}")
                    continue
                print(f"  {name}: {len(ran)} functions")
                yield ran
            context.close()
        browser.close()


def _visit(page: Any, url: str, *, result: bool) -> list[int]:
    """The functions that ran in a page, in which all is done that pages and their users do."""
    version = import_module("webinfer.page.messages").VERSION
    page.goto(url)
    if result:
        _await_result(page)
    page.wait_for_timeout(WARM_MS)
    worker = page.workers[0]
    worker.evaluate("(code) => self.pyodide.runPythonAsync(code)", USERS.read_text())
    worker.evaluate(CALLS.read_text().split("\n", 1)[1])
    for message in ASKED if result else ():
        worker.evaluate(ASK, {"v": version, **message})
        page.wait_for_timeout(ANSWER_MS)
    ran: list[int] = worker.evaluate(READ % (OWN, len(OWN) + 3))
    page.close()
    return ran
