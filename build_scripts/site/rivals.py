"""The rivals beside a site: their runtimes and the site's models in the forms that they read, for /benchmark."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from build_scripts.bench.rivals import MODULES, RIVALS, copy_script, rivals_step
from build_scripts.errors import BuildError
from build_scripts.paths import BENCHMARKS, BUILD, ENGINE, MODELS, SITE
from build_scripts.steps import run_steps

FOLDER = BUILD / "rivals"
SCRIPTS = ("answers.js", "compare.js", "memory_watch.js", "remote.js", "runner.js", "worker.js")
TITLES = {"litertjs": "LiteRT.js", "ortweb": "ONNX Runtime Web", "tfjs": "TensorFlow.js"}
READ_ALONE = {".tflite", ".onnx"}  # models of one file; what lies in archives is left to `bench`


def rivals_folder(only: tuple[str, ...] = ()) -> Path:
    """Writes the folder that the server serves under /rivals/; `only` names models, all that the site has if empty."""
    run_steps([rivals_step()])
    fresh = FOLDER.with_suffix(".new")
    shutil.rmtree(fresh, ignore_errors=True)
    (fresh / "systems").mkdir(parents=True)
    page = BENCHMARKS / "page"
    for name in (*SCRIPTS, *(f"systems/{system}.js" for system in TITLES), "systems/tfjs_operators.js"):
        shutil.copyfile(page / name, fresh / name)
    for system, files in RIVALS.items():
        for target, source in files.items():
            copy_script(MODULES / source, fresh / "rivals" / system / target)
    facts = {"systems": TITLES, "models": _models(fresh, only)}
    (fresh / "rivals.json").write_text(json.dumps(facts))
    shutil.rmtree(FOLDER, ignore_errors=True)
    fresh.rename(FOLDER)
    return FOLDER


def _models(folder: Path, only: tuple[str, ...]) -> dict[str, Any]:
    """The models of the site that rivals can be given, by the names that the page knows."""
    sys.path.insert(0, str(ENGINE.parent))  # the engine of this checkout exports graphs for TF.js
    from build_scripts.bench.models import prepare
    from build_scripts.bench.sources import Source

    known: dict[str, list[str]] = json.loads((SITE / "manifest.json").read_text())["page"]["models"]
    found = {}
    for name, files in known.items():
        path = MODELS / Path(files[0]).name
        if path.suffix not in READ_ALONE or not path.is_file() or (only and name not in only):
            continue
        try:
            entry = prepare(Source(name, path), folder, reference=False)
        except (BuildError, ValueError) as error:
            print(f"  {name}: rivals are not given it: {error}")
            continue
        if all(size > 0 for tensor in entry.inputs for size in tensor.shape):
            found[name] = entry.plain()
    return found
