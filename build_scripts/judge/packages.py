"""`judge packages`: unmodified packages of PyPI that need onnxruntime or a TFLite interpreter, on it and on webinfer.

Each runs in processes of its own, in an environment that holds nothing of the project's: once on the library, once with
the library hidden and webinfer's stand-in in its place; with `--page` that one in Pyodide in headless Chromium.
The rows lie in pypi_packages.toml.
"""

import argparse
import json
import math
import os
import subprocess
import time
import tomllib
import venv
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from build_scripts.errors import BuildError
from build_scripts.judge.apart import python_of
from build_scripts.judge.packages_in_page import in_page
from build_scripts.paths import BUILD, ENGINE, IMAGES
from build_scripts.setup.environment import pip
from build_scripts.setup.sequence import set_up
from build_scripts.steps import Step, run_steps

TABLE = Path(__file__).with_name("pypi_packages.toml")
ENVIRONMENT = BUILD / "judges" / "packages"
PHOTO = IMAGES / "astronaut.png"
LIMIT_S = 600
TOLERANCE = 1e-3  # of numbers: what a package prints of scores is cut to three or four digits

# TensorFlow is 600 MB, and tflite_runtime has no wheels for Python 3.12: LiteRT's interpreter stands for both, under
# the name that the package imports.
_ORIGINALS = {
    "onnxruntime": "import onnxruntime",
    "tflite_runtime": """
import sys, types
import ai_edge_litert.interpreter
sys.modules["tflite_runtime"] = types.ModuleType("tflite_runtime")
sys.modules["tflite_runtime.interpreter"] = ai_edge_litert.interpreter
""",
    "tensorflow": """
import sys, types
import ai_edge_litert.interpreter
module = types.ModuleType("tensorflow")
module.lite = ai_edge_litert.interpreter
sys.modules["tensorflow"] = module
""",
}
_STAND_IN = """
import sys
from importlib.machinery import PathFinder

class Others:
    find_distributions = PathFinder.find_distributions

    @staticmethod
    def find_spec(name, path=None, target=None):
        return None if name == {library!r} else PathFinder.find_spec(name, path, target)

sys.meta_path[:] = [Others if finder is PathFinder else finder for finder in sys.meta_path]
sys.path.insert(0, {engine!r})
import webinfer.compat
webinfer.compat.install({library!r})
"""
_ENDING = 'import json\nprint("answer " + json.dumps(answer, default=lambda one: one.tolist()))'


@dataclass(frozen=True)
class PackageCase:
    """A row: a package, what it is for, and code that leaves `answer`."""

    name: str
    package: str
    version: str
    what: str
    code: str
    library: str = "onnxruntime"
    models: tuple[str, ...] = ()  # requirements that hold its models
    needs: tuple[str, ...] = ()  # large libraries, installed if `--with` names them
    loads: tuple[str, ...] = ()  # packages of Pyodide that it imports, beside NumPy and Pillow
    lacks: str = ""  # what it imports that the judge's Pyodide does not have

    @property
    def requirements(self) -> list[str]:
        """What is installed without dependencies."""
        return [f"{self.package}=={self.version}", *self.models]


@dataclass(frozen=True)
class PackageRow:
    """What became of one package: `verdict` is equal, different, or failed."""

    package: str
    version: str
    library: str
    what: str
    verdict: str
    distance: float | None  # the largest between two numbers
    values: int  # numbers and texts that were compared
    said: str
    original_s: float
    ours_s: float


def package_cases() -> dict[str, PackageCase]:
    """The table, by name."""
    table = tomllib.loads(TABLE.read_text())
    setup = table.pop("setup")
    for name in ("libraries", "pyodide"):
        table.pop(name)
    return {
        name: PackageCase(
            name, row.get("package", name), row["version"], row["what"],
            "\n".join([*(setup[one] for one in row.get("setup", ())), row["answer"]]),
            row.get("library", "onnxruntime"), tuple(row.get("models", ())), tuple(row.get("needs", ())),
            tuple(row.get("loads", ())), row.get("lacks", ""),
        )
        for name, row in table.items()
    }  # fmt: skip


def answer_of(python: Path, case: PackageCase, stand_in: bool) -> Any:
    """What the package answers on the library that it imports, or on the stand-in.

    Raises:  BuildError with the end of what it said if it fails
    """
    before = _ORIGINALS[case.library]
    if stand_in:
        before = _STAND_IN.format(library=case.library, engine=str(ENGINE.parent))
    command = [str(python), "-c", f"{before}\n{case.code}\n{_ENDING}"]
    env = {**os.environ, "WEBINFER_PHOTO": str(PHOTO), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=env)
    lines = [line for line in done.stdout.splitlines() if line.startswith("answer ")]
    if not lines:
        who = "the stand-in" if stand_in else case.library
        raise BuildError(f"{case.name} on {who}: {done.stderr.strip()[-1500:]}")
    return json.loads(lines[-1].removeprefix("answer "))


def farthest(ours: Any, wanted: Any) -> float:
    """The largest distance between two numbers of two answers; infinite if texts, lengths or keys differ."""
    if isinstance(wanted, list) and isinstance(ours, list) and len(ours) == len(wanted):
        return max((farthest(one, other) for one, other in zip(ours, wanted, strict=True)), default=0.0)
    if isinstance(wanted, float) and isinstance(ours, float):
        return 0.0 if math.isnan(ours) and math.isnan(wanted) else abs(ours - wanted)
    return 0.0 if type(ours) is type(wanted) and ours == wanted else math.inf


def values_in(answer: Any) -> int:
    """How many numbers and texts an answer holds."""
    return sum(map(values_in, answer)) if isinstance(answer, list) else 1


def judged(python: Path, case: PackageCase, page: Callable[[PackageCase], Any] | None = None) -> PackageRow:
    """The row of one package; `page` gives its answer on the stand-in in a page, in place of this machine's Python."""
    started = time.perf_counter()
    about = (case.name, case.version, case.library, case.what)
    try:
        wanted = answer_of(python, case, stand_in=False)
        halfway = time.perf_counter()
        ours = page(case) if page else answer_of(python, case, stand_in=True)
    except (BuildError, subprocess.TimeoutExpired) as error:
        return PackageRow(*about, "failed", None, 0, str(error), time.perf_counter() - started, 0.0)
    took = (halfway - started, time.perf_counter() - halfway)
    if not values_in(wanted):
        return PackageRow(*about, "failed", None, 0, "the answer is empty: nothing was compared", *took)
    distance = farthest(ours, wanted)
    verdict = "equal" if distance <= TOLERANCE else "different"
    said = "" if verdict == "equal" else f"ours {str(ours)[:600]}, {case.library}'s {str(wanted)[:600]}"
    return PackageRow(*about, verdict, distance if distance < math.inf else None, values_in(wanted), said, *took)


def environment_step(environment: Path, cases: Sequence[PackageCase]) -> Step:
    """Installs the packages without their dependencies, and the libraries that they import."""
    libraries = tomllib.loads(TABLE.read_text())["libraries"] + sorted({one for case in cases for one in case.needs})
    packages = sorted({one for case in cases for one in case.requirements})

    def create() -> None:
        venv.EnvBuilder(with_pip=True, clear=True).create(environment)
        pip("install", *libraries, python=python_of(environment))
        pip("install", "--no-deps", *packages, python=python_of(environment))

    return Step(
        "pypi packages", "install the packages in an environment of their own", inputs=lambda: [*libraries, *packages],
        outputs=(python_of(environment),), action=create, stamp=environment / ".stamp",
    )  # fmt: skip


def run(argv: list[str]) -> int:
    """Prints the table; 1 if an answer differs or a package fails."""
    parser = argparse.ArgumentParser(prog="python3 -m build_scripts judge packages")
    parser.add_argument("only", nargs="*", help="names of packages; all of them if left out")
    parser.add_argument("--with", dest="large", nargs="*", default=[], help="large libraries to install too: torch")
    parser.add_argument(
        "--python", type=Path, help="an interpreter that has the packages, in place of a new environment"
    )
    parser.add_argument(
        "--page",
        nargs="?",
        const="wasm",
        choices=("wasm", "webgpu"),
        help=("run the stand-in in Pyodide in headless Chromium, on this backend (wasm if it is left out)"),
    )
    parser.add_argument("--json", type=Path, help="also write the table here")
    options = parser.parse_args(argv)
    cases = package_cases()
    unknown = sorted(set(options.only) - set(cases))
    if unknown:
        raise BuildError(f"no such packages: {', '.join(unknown)}; there are {', '.join(cases)}")
    chosen = [case for case in cases.values() if not options.only or case.name in options.only]
    ready = [case for case in chosen if set(case.needs) <= set(options.large)]
    set_up()  # the stand-in's kernels; for a page the wheel, and what it needs there
    if options.python is None:
        run_steps([environment_step(ENVIRONMENT, ready)])
    if options.page:
        ready = [case for case in ready if not case.lacks]
    rows = []
    with in_page(ready, options.page) if options.page else nullcontext() as page:
        for case in ready:
            rows.append(row := judged(options.python or python_of(ENVIRONMENT), case, page))
            _print(row)
    for case in chosen:
        if case not in ready:
            why = (
                f"Pyodide here has no {case.lacks}"
                if options.page and case.lacks
                else f"--with {' '.join(case.needs)} installs what it needs"
            )
            print(f"{case.name:24}left out: {why}")
    print(f"{sum(row.verdict == 'equal' for row in rows)} of {len(rows)} packages give the library's answers")
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    return 0 if all(row.verdict == "equal" for row in rows) else 1


def _print(row: PackageRow) -> None:
    far = "" if row.distance is None else f"{row.distance:.1e} of {row.values} values"
    took = f"{row.original_s:6.1f} s {row.ours_s:6.1f} s"
    print(f"{row.package:24}{row.verdict:10}{far:28}{took}  {row.said}", flush=True)
