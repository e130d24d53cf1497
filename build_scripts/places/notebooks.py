"""JupyterLite: a site with the wheel inside, and a notebook that is run in it from the first cell to the last."""

import json
import shutil
import subprocess
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

from playwright.sync_api import Browser

from build_scripts.errors import BuildError
from build_scripts.paths import BROWSER_WHEELS, BUILD, ROOT, WHEELS, settings
from build_scripts.places.guest_site import guest_site, stand_in
from build_scripts.places.probe import MODEL
from build_scripts.setup.environment import pip
from build_scripts.site.wheel import wheel_name

PLACE = BUILD / "places"
LIMIT_S = 200
WANTED = "regressors (1, 896, 16), classificators (1, 896, 1)"
CELLS = (
    "%pip install webinfer",
    "import webinfer\n\nsession = await webinfer.load({model!r})\nsession.choice",
    "outputs = await session.run(session.noise())\nprint(', '.join(f'{{n}} {{t.shape}}' for n, t in outputs.items()))",
)


def in_jupyterlite(browser: Browser) -> str:
    """What a notebook prints in a JupyterLite site that has the wheel."""
    site = _built_site()
    context = browser.new_context()
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text[:300]))
    files: Mapping[str, Path | str] = {"/": site, f"/{MODEL.name}": MODEL}
    stand_in(context, {})  # Pyodide itself comes from where JupyterLite takes it
    try:
        with guest_site(files=files) as address:
            page.goto(f"{address}/notebooks/index.html?path=webinfer.ipynb")
            cell = page.locator(".jp-Notebook .jp-CodeCell")
            cell.first.wait_for(timeout=LIMIT_S * 1e3)
            cell.first.click()
            for _ in CELLS:
                page.keyboard.press("Shift+Enter")
            shown = page.locator(".jp-OutputArea-output", has_text="regressors").last
            shown.wait_for(timeout=LIMIT_S * 1e3)
            text = shown.inner_text().strip()
    except Exception as error:
        outputs = page.locator(".jp-OutputArea-output").all_inner_texts()
        raise BuildError(f"{str(error)[:200]}\n{outputs}\n{said[-6:]}") from error
    finally:
        context.close()
    if text != WANTED:
        raise BuildError(f"the notebook prints {text!r}")
    return f"the notebook prints {text!r}"


def _built_site() -> Path:
    """A JupyterLite site with the wheel, what it depends on, and what its kernel asks the package index for."""
    shutil.rmtree(PLACE / "site", ignore_errors=True)
    python, wheels, contents = PLACE / "jupyter" / "bin" / "python", PLACE / "wheels", PLACE / "contents"
    table = settings()["places"]
    own_environment(python.parent.parent, table["jupyterlite"])
    wheels.mkdir(parents=True, exist_ok=True)
    if not list(wheels.glob("ipython-*.whl")):
        pip("download", "--quiet", "--dest", str(wheels), *table["jupyterlite_kernel"], python=python)
    contents.mkdir(exist_ok=True)
    (contents / "webinfer.ipynb").write_text(json.dumps(_notebook(f"/{MODEL.name}")))
    pure = [*wheels.glob("*-none-any.whl"), *BROWSER_WHEELS.glob("[jm]*.whl"), WHEELS / wheel_name()]
    command = [
        str(python.with_name("jupyter")),
        "lite",
        "build",
        "--contents",
        str(contents),
        "--output-dir",
        str(PLACE / "site"),
    ]
    for path in pure:
        command += ["--piplite-wheels", str(path)]
    done = subprocess.run(command, cwd=PLACE, capture_output=True, text=True)
    if done.returncode or not (PLACE / "site" / "notebooks").is_dir():
        raise BuildError(f"jupyter lite build fails in {PLACE.relative_to(ROOT)}: {(done.stdout + done.stderr)[-600:]}")
    return PLACE / "site"


def own_environment(folder: Path, packages: Sequence[str]) -> None:
    """Makes the folder an environment with these packages, if it is none."""
    stamp, wanted = folder / "wanted.txt", " ".join(packages)
    if not stamp.is_file() or stamp.read_text() != wanted:
        venv.EnvBuilder(with_pip=True, clear=True).create(folder)
        pip("install", "--quiet", *packages, python=folder / "bin" / "python")
        stamp.write_text(wanted)


def _notebook(model: str) -> dict[str, object]:
    kernel = {"display_name": "Python (Pyodide)", "language": "python", "name": "python"}
    cells: list[dict[str, object]] = [
        {
            "cell_type": "code", "id": f"cell{i}", "execution_count": None, "metadata": {}, "outputs": [],
            "source": text.format(model=model),
        }
        for i, text in enumerate(CELLS)
    ]  # fmt: skip
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
