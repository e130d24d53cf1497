"""Assembles the benchmark as a folder of files: page, rivals, engine, models. It needs no server of ours."""

import gzip
import hashlib
import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from build_scripts.bench.columns import Entry
from build_scripts.bench.models import ModelEntry
from build_scripts.bench.rivals import MODULES, ONLY_FOR, RIVALS, copy_script
from build_scripts.errors import BuildError
from build_scripts.paths import BENCHMARKS, BUILD, NODE_MODULES, SITE, STATIC
from build_scripts.setup.node import node_commands
from build_scripts.site.assemble import hashed_folder
from build_scripts.site.bundle import bundled
from build_scripts.site.player import write_player

COUNTED = ("rivals", "engine", "models")  # folders whose files a system needs; the rest is the benchmark's own
COMPILE = Path(__file__).with_name("compiled.mjs")
COMPILE_LIMIT_S = 120
GZIP_SIZES = BUILD / "stamps" / "bench-gzip.json"


def assemble(site: Path, backend: str) -> None:
    """Writes everything but the models and the configuration into an empty folder."""
    write_pages(site)
    compile_scripts(site / "systems")
    other = ONLY_FOR["webgpu" if backend == "wasm" else "wasm"]
    for system, files in RIVALS.items():
        for target, source in files.items():
            if not target.startswith(other):
                copy_script(MODULES / source, site / "rivals" / system / target)
    write_player(site / "rivals" / "player")


def write_pages(site: Path, left_out: Sequence[str] = ("models", "images")) -> None:
    """The benchmarks' pages and the engine without some of its files, in an empty folder."""
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(BENCHMARKS / "page", site)
    copy_engine(site / "engine", left_out)


def configure(site: Path, models: Sequence[ModelEntry], entries: Sequence[Entry], **settings: Any) -> None:
    """Writes config.json, the sizes of all files that a system may download among it."""
    config = {
        **settings,
        "entries": [asdict(entry) for entry in entries],
        "models": [model.plain() for model in models],
        "sizes": _sizes(site),
    }
    (site / "config.json").write_text(json.dumps(config))


def without(site: Path, done: Sequence[str], culprit: Mapping[str, Any], reason: str) -> None:
    """Rewrites config.json for the models that are left; the column that failed is refused for the model it ran."""
    path = site / "config.json"
    config = json.loads(path.read_text())
    config["models"] = [model for model in config["models"] if model["name"] not in done]
    for model in config["models"]:
        if model["name"] == culprit["model"]:
            model.setdefault("refused", []).append({**culprit, "error": reason})
    path.write_text(json.dumps(config))


def copy_engine(target: Path, left_out: Sequence[str] = ("models", "images")) -> None:
    """The engine, its kernels and Pyodide as the server would serve them, with relative addresses.

    Of the page's scripts each module by itself, and in start.js what starts Python without the page, and SITE: the
    manifest, so that nobody waits for that.
    """
    manifest = json.loads((SITE / "manifest.json").read_text())
    kept = {}
    for name, asset in manifest["assets"].items():
        if name.split("/")[0] in (*left_out, "static"):
            continue
        path = asset["url"].lstrip("/")
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(SITE / path, target / path)
        kept[name] = {"url": path, "bytes": asset["bytes"], "sha256": asset["sha256"]}
    modules = {path.relative_to(STATIC).as_posix(): path.read_bytes() for path in STATIC.rglob("*.js")}
    for module in hashed_folder("static", modules):
        (target / module.path).parent.mkdir(parents=True, exist_ok=True)
        (target / module.path).write_bytes(module.data)
        sha256 = hashlib.sha256(module.data).hexdigest()
        asked_for = f"static/{Path(module.logical).name}"  # pages ask for scripts without their folder
        kept[asked_for] = {"url": module.path, "bytes": len(module.data), "sha256": sha256}
    site = json.dumps({"assets": kept, "foreseen": manifest["page"]["foreseen"]})
    (target / "manifest.json").write_text(site)
    start = bundled(BENCHMARKS / "engine", "start", exports=True).decode()
    (target / "start.js").write_text(f"{start}\nexport const SITE = {site};\n")


def compile_scripts(folder: Path) -> None:
    """Writes beside each NAME.py of a folder a NAME.code, its code as Pyodide's Python marshals it."""
    job = {"pyodide": str(NODE_MODULES / "pyodide"), "scripts": sorted(map(str, folder.glob("*.py")))}
    command = [next(iter(node_commands())), str(COMPILE), json.dumps(job)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_LIMIT_S, check=False)
    if done.returncode:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if len(line) < 300]  # no packed source
        raise BuildError("the benchmark's Python cannot be compiled:\n    " + "\n    ".join(lines[-30:]))


def _sizes(site: Path) -> dict[str, int]:
    """Bytes on the wire of each file: gzip, or as it is where that is smaller."""
    known: dict[str, int] = json.loads(GZIP_SIZES.read_text()) if GZIP_SIZES.is_file() else {}
    sizes = {}
    for folder in COUNTED:
        for path in sorted((site / folder).rglob("*")):
            if path.is_file():
                data = path.read_bytes()
                digest = hashlib.sha256(data).hexdigest()
                if digest not in known:
                    known[digest] = min(len(data), len(gzip.compress(data, 6)))
                sizes[path.relative_to(site).as_posix()] = known[digest]
    GZIP_SIZES.parent.mkdir(parents=True, exist_ok=True)
    GZIP_SIZES.write_text(json.dumps(known))
    return sizes
