"""`judge open-tasks`: every task by its name, from the wheel in an empty environment with an empty cache.

A task opens, out of the package that publishes its model, or says in a typed error why it cannot: a model of one's own
is needed, or a repository is not to be reached.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time
import venv
from dataclasses import dataclass
from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.judge.apart import python_of
from build_scripts.paths import WHEELS
from build_scripts.setup.environment import pip
from build_scripts.site.wheel import wheel_name

LIMIT_S = 600
NAMES = """
from webinfer.tasks import GIVEN_MODEL_TASKS, LATE_TASKS, TASKS
print(*sorted({*TASKS, *GIVEN_MODEL_TASKS, *LATE_TASKS}))
"""
# In a script without await; what is raised but no WebinferError ends the program with a traceback.
OPEN = """
import json, sys, webinfer
task = webinfer.pipeline(sys.argv[1])
try:
    opened = getattr(task, "task", None) or webinfer.run_sync(task)
    print(json.dumps(["opens", ""]))
except webinfer.InputError as error:
    print(json.dumps(["needs a model", str(error)]))
except webinfer.WebinferError as error:
    print(json.dumps(["unavailable", str(error)]))
except TypeError as error:
    print(json.dumps(["untyped", str(error)]))
"""


@dataclass(frozen=True)
class TaskRow:
    """What became of one task: `verdict` is opens, needs a model, unavailable, untyped or failed."""

    task: str
    verdict: str
    said: str
    seconds: float


def opened(python: Path, task: str, folder: Path) -> TaskRow:
    """The row of one task, in a process of its own."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("WEBINFER", "PYTHON"))}
    environment = {**clean, "WEBINFER_CACHE": str(folder / "cache"), "XDG_CONFIG_HOME": str(folder / "settings")}
    begin = time.monotonic()
    command = [str(python), "-c", OPEN, task]
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return TaskRow(task, "failed", f"no answer within {LIMIT_S} s", time.monotonic() - begin)
    verdict, said = json.loads(done.stdout) if not done.returncode else ("failed", done.stderr.strip()[-600:])
    return TaskRow(task, verdict, said, time.monotonic() - begin)


def run(argv: list[str]) -> int:
    """1 if a task neither opens nor says why in a typed error."""
    parser = argparse.ArgumentParser(prog="python3 -m build_scripts judge open-tasks", description=__doc__)
    parser.add_argument("only", nargs="*", help="names of tasks; all of them if left out")
    parser.add_argument("--python", type=Path, help="an interpreter that has the wheel, instead of a new environment")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        python = options.python
        if python is None:
            wheel = WHEELS / wheel_name()
            if not wheel.is_file():
                raise BuildError(f"{wheel} is missing; run python3 -m build_scripts build wheel")
            venv.EnvBuilder(with_pip=True).create(folder / "env")
            python = python_of(folder / "env")
            pip("install", "--quiet", f"{wheel}[native,numpy,pillow]", python=python)
        told = subprocess.run([str(python), "-c", NAMES], capture_output=True, text=True, check=True)
        rows = []
        for task in options.only or told.stdout.split():
            rows.append(row := opened(python, task, folder))
            print(f"{row.task:22}{row.verdict:16}{row.seconds:6.1f} s  {row.said[:200]}", flush=True)
    opens = sum(row.verdict == "opens" for row in rows)
    print(f"{opens} of {len(rows)} tasks open; {sum(row.verdict == 'needs a model' for row in rows)} need a model")
    return int(any(row.verdict in ("untyped", "failed") for row in rows))
