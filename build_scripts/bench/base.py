"""What all parts of the benchmark share: where things lie, what a column is, how JSON is written."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from build_scripts.paths import BUILD, ROOT
from build_scripts.setup.node import npm_ci
from build_scripts.steps import Step

HOME = ROOT / "e2e_tests" / "benchmarks"
OUTPUT = BUILD / "bench"
ZOO = ROOT.parent / "shared" / "models"


@dataclass(frozen=True)
class Entry:
    """One column of the benchmark: a system on a backend with a number of threads."""

    system: str
    backend: str
    threads: int


def rivals_step() -> Step:
    """The step that installs the rivals from npm."""
    modules = HOME / "node_modules"
    return Step(
        "rivals", "npm ci in e2e_tests/benchmarks/: LiteRT.js, ONNX Runtime Web, TF.js",
        inputs=lambda: [HOME / "package.json", HOME / "package-lock.json"],
        outputs=(modules / "@litertjs" / "core" / "dist" / "index.js",), action=lambda: npm_ci(HOME),
        stamp=modules / ".webinfer-stamp",
    )  # fmt: skip


def write_json(target: Path, data: object) -> None:
    """The data as indented JSON, whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(data, indent=1) + "\n")
    temporary.replace(target)
