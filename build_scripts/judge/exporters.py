"""`judge exporters`: architectures of timm with random weights and scikit-learn's estimators, through `from_torch` and
`from_sklearn`, beside the originals and onnxruntime. They run in an environment of their own, since PyTorch is large.
"""

import argparse
import collections
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from build_scripts.errors import BuildError
from build_scripts.judge.apart import environment_step, python_of
from build_scripts.paths import BUILD, ENGINE
from build_scripts.steps import Step, run_steps

ENVIRONMENT = BUILD / "judges" / "exporters"
SCRIPT = Path(__file__).with_name("exported_answers.py")
REQUIREMENTS = (
    "torch", "timm", "onnx", "onnxscript", "onnxruntime", "skl2onnx", "scikit-learn", "numpy", "wasmtime", "jinja2",
    "transformers", "pillow",
)  # fmt: skip
# what is not a model's fault here: it cannot be built so small, its own exporter refuses it, or it is larger than asked
LEFT_OUT = ("does not run", "not fitted", "not exported", "too large")


def run(argv: list[str]) -> int:
    """Prints the counts and every model that differs; 1 if one does."""
    parser = argparse.ArgumentParser(prog="python3 -m build_scripts judge exporters")
    parser.add_argument("kind", choices=("timm", "sklearn"))
    parser.add_argument("--most", type=int, default=400, help="models at most; of timm the small ones come first")
    parser.add_argument("--seconds", type=float, default=120.0, help="the limit of one model")
    parser.add_argument("--output", type=Path, help="a line of JSON a model; goes on where an earlier run has stopped")
    options = parser.parse_args(argv)
    run_steps([pytorch_step()])
    output = (options.output or BUILD / "judges" / f"{options.kind}.jsonl").resolve()
    arguments = [options.kind, output, ENGINE.parent, options.seconds, options.most]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}  # a team of threads does not survive the fork of a model's process
    done = subprocess.run([str(python_of(ENVIRONMENT)), str(SCRIPT), *map(str, arguments)], check=False, env=env)
    if done.returncode:
        raise BuildError(f"{SCRIPT.name} ended with {done.returncode}")
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    return told(rows)


def pytorch_step() -> Step:
    """Installs what models are exported with; `judge tasks` has its zero-shot models from there too."""
    return environment_step("exporters", "install PyTorch and scikit-learn apart", ENVIRONMENT, REQUIREMENTS)


def told(rows: list[dict[str, Any]]) -> int:
    """Prints what became of the models; 1 if one of those that were compared differs."""
    for row in rows:
        if row["verdict"] != "equal":
            print(f"{row['name']:40}{row['verdict']:16}{row.get('distance', '')!s:24}{row['said'][:200]}")
    counts = collections.Counter(row["verdict"] for row in rows)
    compared = [row for row in rows if row["verdict"] not in LEFT_OUT]
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()))
    return 0 if all(row["verdict"] in ("equal", "as onnxruntime") for row in compared) else 1
