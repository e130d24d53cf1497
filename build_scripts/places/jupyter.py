"""The documentation's notebook from the first cell to the last: in Jupyter and marimo in CPython, and in Pyodide.

JupyterLite's kernel runs cells in Pyodide, and fetches NumPy and Pillow from Pyodide's own server, which is not asked
here; the Pyodide of `judge packages --page` has both.
"""

import json
import os
import subprocess
from pathlib import Path

from playwright.sync_api import Browser, Route

from build_scripts.errors import BuildError
from build_scripts.judge.apart import environment_step, python_of
from build_scripts.judge.packages_in_page import page_files, pyodide_step
from build_scripts.paths import BUILD, NODE_MODULES, WEB, WHEELS, settings
from build_scripts.places.guest_site import guest_site
from build_scripts.places.pyodide_places import said_in
from build_scripts.setup.environment import pip
from build_scripts.site.wheel import wheel_name
from build_scripts.steps import run_steps

PLACE = BUILD / "places" / "jupyter"
PAGE = WEB / "docs" / "notebook.md"
LIMIT_S = 600
# What the notebook shows, cell by cell, as types of a cell's last output.
RUN = """
import json, sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], 4)
nbformat.validate(notebook)
NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
print(json.dumps([sorted(cell.outputs[-1].get("data", {})) if cell.outputs else [] for cell in cells]))
"""
# The same in Pyodide: what a notebook would show of each cell's last value.
CELLS = """
import json

import pyodide_js
from pyodide.code import eval_code_async
await pyodide_js.loadPackage(["numpy", "pillow"])
names = {{"__name__": "__main__"}}
values = [await eval_code_async(cell, names) for cell in {cells!r}]
kinds = {{"_repr_html_": "text/html", "_repr_png_": "image/png"}}
json.dumps([[kind for name, kind in kinds.items() if hasattr(value, name)] for value in values])
"""
TABLES, PICTURES = 4, 2  # session, plan, profile and results as HTML; the drawing, without boxes and with them


def in_jupyter(kernel: str = "jupyter") -> str:
    """What the cells show where nbclient runs them, as Jupyter does; "colab": with the IPython and kernel of Colab."""
    python = _environment(kernel)
    said = _run([str(python), "-c", RUN, str(_notebook())])
    return _judged(json.loads(said.splitlines()[-1]))


def _judged(shown: list[list[str]]) -> str:
    """What was shown, in words, from the types of each cell's last output."""
    tables = sum("text/html" in kinds for kinds in shown)
    pictures = sum("image/png" in kinds for kinds in shown)
    if (tables, pictures) != (TABLES, PICTURES):
        raise BuildError(f"{tables} tables and {pictures} pictures are shown: {shown}")
    return f"{len(shown)} cells; {tables} tables, {pictures} pictures"


def in_pyodide(browser: Browser) -> str:
    """What the cells show in a worker of a page with Pyodide, NumPy and Pillow; models come from npm's files."""
    run_steps([pyodide_step()])
    cells = ["".join(cell["source"]) for cell in json.loads(notebook())["cells"] if cell["cell_type"] == "code"]

    def npm(route: Route) -> None:
        package, _, file = route.request.url.partition("/npm/")[2].rpartition("/")
        path = NODE_MODULES / package.rpartition("@")[0] / file
        route.fulfill(body=path.read_bytes(), headers={"Access-Control-Allow-Origin": "*"})

    elsewhere = {"https://cdn.jsdelivr.net/npm/**": npm}
    with guest_site(files=page_files()) as address:
        said = said_in(browser, address, CELLS.format(cells=cells), worker=True, elsewhere=elsewhere)
    return _judged(json.loads(said))


def in_marimo() -> str:
    """What marimo says of the notebook that it made of ours, and that it runs as a script."""
    python, script = _environment(), PLACE / "notebook.py"
    marimo = [str(python), "-m", "marimo"]
    script.unlink(missing_ok=True)
    _run([*marimo, "convert", str(_notebook()), "-o", str(script)])
    _run([*marimo, "check", "--strict", str(script)])
    said = _run([str(python), str(script)])
    if "1 face, score 0.9" not in said:
        raise BuildError(f"the notebook prints {said[-300:]!r}")
    return "marimo check has no complaint; a face is found"


def _environment(kernel: str = "jupyter") -> Path:
    """An environment with the wheel, Jupyter's client, a kernel, and marimo beside the newest one."""
    needed = ["wasmtime", "wgpu", "jinja2", "numpy", "pillow", *settings()["places"][kernel]]
    run_steps([environment_step(kernel, f"install what {kernel} has apart", PLACE / kernel, needed)])
    python = python_of(PLACE / kernel)
    pip("install", "--no-deps", "--force-reinstall", str(WHEELS / wheel_name()), python=python)
    return python


def notebook() -> bytes:
    """The documentation's notebook as a file."""
    from server.notebook import notebook_of

    return notebook_of(PAGE.read_text(encoding="utf-8"))


def _notebook() -> Path:
    file = PLACE / "notebook.ipynb"
    file.write_bytes(notebook())
    return file


def _run(command: list[str]) -> str:
    environment = {**os.environ, "WEBINFER_CACHE": str(PLACE / "cache")}
    done = subprocess.run(command, cwd=PLACE, env=environment, capture_output=True, text=True, timeout=LIMIT_S)
    if done.returncode:
        raise BuildError(f"{Path(command[-1]).name}: {(done.stdout + done.stderr)[-600:]}")
    return done.stdout
