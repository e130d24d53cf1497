"""The memory snapshot: an interpreter with the engine imported, made once and restored by every page."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.paths import BROWSER_WHEELS, NODE_MODULES, PAGE_ENGINE, SNAPSHOT, version
from build_scripts.setup.downloads import LOCK
from build_scripts.setup.node import node_commands
from build_scripts.site.page_engine import SNAPSHOT_MODULES
from build_scripts.site.short_glue import published_glue
from build_scripts.steps import Step

PYODIDE = NODE_MODULES / "pyodide"
GLUE = "pyodide.asm.mjs"
SCRIPT = Path(__file__).with_name("snapshot.mjs")
LINKING = [Path(__file__).with_name(f"{name}.py") for name in ("late_linking", "lean_code", "short_glue")]
FIRST = Path(__file__).with_name("sitecustomize.py")
OUTPUT = SNAPSHOT / "webinfer.bin"
IMPORTED = ("jinja2", "markupsafe")  # what the engine imports of the browser's wheels
LIMIT_S = 600


def snapshot_step() -> Step:
    """The step that runs Pyodide in Node and saves its memory."""
    return Step(
        "snapshot", "import the engine in Pyodide and save its memory",
        inputs=lambda: [SCRIPT, FIRST, Path(__file__), *LINKING, PAGE_ENGINE, BROWSER_WHEELS, PYODIDE / "package.json"],
        outputs=(OUTPUT,), action=make_snapshot, stamp=SNAPSHOT / ".stamp",
    )  # fmt: skip


def make_snapshot() -> None:
    """Writes build/snapshot/webinfer.bin; a Node that cannot is followed by one that can."""
    SNAPSHOT.mkdir(parents=True, exist_ok=True)
    complaints = []
    for node in node_commands():
        complaint = _made_by(node)
        if not complaint:
            return
        complaints.append(f"{node}: {complaint}")
    raise BuildError("no Node could make the memory snapshot:\n    " + "\n    ".join(complaints))


def _made_by(node: str) -> str:
    """Why this Node could not make the snapshot, or ""."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        files = {"pyodide": _linked_as_published(place / "pyodide"), "scratch": place / "stdlib.zip", "output": OUTPUT}
        job = json.dumps({**_job(), **{name: str(path) for name, path in files.items()}})
        environment = {**os.environ, "TZ": "UTC"}
        said = place / "said.txt"  # a pipe would lose what Node says last
        try:
            with said.open("w") as out:
                done = subprocess.run(
                    [node, str(SCRIPT), job], env=environment, stdout=out, stderr=subprocess.STDOUT, timeout=LIMIT_S
                )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        lines = [line for line in said.read_text(errors="replace").splitlines() if len(line) < 300]  # no packed source
    if done.returncode == 0 and OUTPUT.is_file():
        print(f"  snapshot       {lines[-1]}")
        return ""
    return "\n    ".join(lines[-30:])


def _linked_as_published(place: Path) -> Path:
    """A copy of Pyodide with the glue code of the site: the saved memory holds addresses that it gave."""
    shutil.copytree(PYODIDE, place)
    (place / GLUE).write_text(published_glue(PYODIDE / GLUE))
    return place


def _job() -> dict[str, object]:
    """What the script is told; an archive's `asset` is its name in the site's manifest."""
    lock = json.loads((PAGE_ENGINE / LOCK).read_text())
    series = "".join(lock["info"]["python"].split(".")[:2])
    wheels = [SNAPSHOT_MODULES, *(BROWSER_WHEELS / lock["packages"][name]["file_name"] for name in IMPORTED)]
    archives = [(f"/lib/python{series}.zip", PYODIDE / "python_stdlib.zip", "pyodide/python_stdlib.zip")]
    archives += [(f"/lib/archives/{wheel.name}", wheel, f"python/{wheel.name}") for wheel in wheels]
    header = {
        "version": version(),
        "archives": {path: asset for path, _, asset in archives},
        "packages": dict.fromkeys(("webinfer", *IMPORTED), "snapshot"),
        "lock": json.dumps(lock),
    }
    rows = [{"path": path, "file": str(file), "own": file == SNAPSHOT_MODULES} for path, file, _ in archives]
    return {"archives": rows, "first": str(FIRST), "lock": json.dumps(lock), "header": header}
