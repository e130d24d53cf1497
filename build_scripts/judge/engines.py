"""`judge engines`: `webinfer.scale` and its documentation with Ray, Dask and Spark, in an environment of their own.

The tests that other machines skip for want of an engine run here: equal rows, the same bytes from each engine, workers
and drivers that are killed. `--beside` compares the speed of one Ray pipeline with ours and with ONNX Runtime.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.judge.apart import environment_step, python_of
from build_scripts.paths import BUILD, ENGINE, ROOT, settings
from build_scripts.setup.sequence import set_up
from build_scripts.steps import run_steps

ENVIRONMENT = BUILD / "engines" / "environment"
TESTS = [str(ENGINE.parent / "tests" / name) for name in ("scale", "docs/test_given.py")]
BESIDE = Path(__file__).with_name("ray_beside.py")
LIMIT_S = 3600
TEST_LIMIT_S = 1200  # with two busy cores a session of Spark needs a minute to begin, and a test of it four


def run(argv: list[str]) -> int:
    """pytest's status, or that of the comparison."""
    parser = argparse.ArgumentParser(prog="python3 -m build_scripts judge engines", description=(__doc__ or "").strip())
    parser.add_argument("--python", type=Path, help="an interpreter that has the engines, instead of a new environment")
    parser.add_argument("--beside", type=Path, metavar="MODEL.onnx", help="compare one Ray pipeline instead of testing")
    parser.add_argument("--rows", type=int, default=2000, help="of the comparison (default: %(default)s)")
    parser.add_argument("tests", nargs="*", help="options of pytest, behind --")
    options = parser.parse_args(argv)
    set_up()
    if options.python is None:
        requirements = settings()["engines"]["requirements"]
        run_steps([environment_step("engines", "install Ray, Dask and Spark apart", ENVIRONMENT, requirements)])
    if options.beside is None and shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise BuildError("Spark needs Java, which is not installed: apt-get install default-jre-headless")
    what = ["-m", "pytest", "-q", "-o", f"faulthandler_timeout={TEST_LIMIT_S}", *TESTS, *options.tests]
    if options.beside is not None:
        what = [str(BESIDE), str(options.beside), str(options.rows)]
    command = [str(options.python or python_of(ENVIRONMENT)), *what]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ENGINE.parent)])}
    return subprocess.run(command, cwd=ROOT, env=environment, timeout=LIMIT_S).returncode


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
