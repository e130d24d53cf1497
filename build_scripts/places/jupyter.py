"""The documentation's notebook in Jupyter and in marimo, each in CPython: run from the first cell to the last."""

import json
import os
import subprocess
from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.judge.apart import environment_step, python_of
from build_scripts.paths import BUILD, WEB, WHEELS, settings
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
TABLES, PICTURES = 4, 2  # session, plan, profile and results as HTML; the drawing, without boxes and with them


def in_jupyter() -> str:
    """What the cells show where nbclient runs them, as Jupyter does."""
    python = _environment()
    said = _run([str(python), "-c", RUN, str(_notebook())])
    shown = json.loads(said.splitlines()[-1])
    tables = sum("text/html" in kinds for kinds in shown)
    pictures = sum("image/png" in kinds for kinds in shown)
    if (tables, pictures) != (TABLES, PICTURES):
        raise BuildError(f"{tables} tables and {pictures} pictures are shown: {shown}")
    return f"{len(shown)} cells; {tables} tables, {pictures} pictures"


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


def _environment() -> Path:
    """An environment with the wheel, Jupyter's client and marimo."""
    needed = ["wasmtime", "wgpu", "jinja2", "numpy", "pillow", *settings()["places"]["jupyter"]]
    run_steps([environment_step("jupyter", "install Jupyter's client and marimo apart", PLACE / "env", needed)])
    python = python_of(PLACE / "env")
    pip("install", "--no-deps", "--force-reinstall", str(WHEELS / wheel_name()), python=python)
    return python


def _notebook() -> Path:
    from server.notebook import notebook_of

    file = PLACE / "notebook.ipynb"
    file.write_bytes(notebook_of(PAGE.read_text(encoding="utf-8")))
    return file


def _run(command: list[str]) -> str:
    environment = {**os.environ, "WEBINFER_CACHE": str(PLACE / "cache")}
    done = subprocess.run(command, cwd=PLACE, env=environment, capture_output=True, text=True, timeout=LIMIT_S)
    if done.returncode:
        raise BuildError(f"{Path(command[-1]).name}: {(done.stdout + done.stderr)[-600:]}")
    return done.stdout
