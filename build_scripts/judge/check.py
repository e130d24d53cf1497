"""`check`: everything that needs no device and no browser."""

import subprocess
import sys
from collections.abc import Callable

from build_scripts.judge import docstrings, sizes, tables
from build_scripts.kernels import step as setup_kernels
from build_scripts.options import switches
from build_scripts.paths import ROOT
from build_scripts.stages import Stage, run_stages
from build_scripts.steps import run_steps

RING_0 = (
    "web/python/tests/test_layers.py",
    "web/python/tests/graph",
    "web/python/tests/importers",
    "web/python/tests/ops",
    "web/python/tests/passes",
    "web/python/tests/plan",
    "web/python/tests/codegen",
    "web/python/tests/docs/test_names.py",
    "server/tests/test_docs.py",
)


def static_stages(fix: bool = False, ahead: bool = False) -> list[Stage]:
    """Format, lint, types, sizes, docstrings and tables; with `fix` what can be repaired is.

    With `ahead` those that read nothing but sources begin at once, beside whatever the caller does before their turn.
    """
    python, run = sys.executable, begun if ahead else _deferred
    formatter = [python, "-m", "ruff", "format", "--output-format=concise", *([] if fix else ["--check"]), "."]
    linter = [python, "-m", "ruff", "check", "--output-format=concise", *(["--fix"] if fix else []), "."]
    return [
        Stage("format", run(formatter)),
        Stage("lint", run(linter)),
        Stage("types", run([python, "-m", "mypy"])),
        Stage("sizes", lambda: sizes.run([])),
        Stage("docstrings", run([python, "-m", docstrings.__name__])),
        Stage("tables", lambda: tables.run(["--write"] if fix else [])),
    ]


def command(arguments: list[str]) -> int:
    """The exit status of a command that runs in the checkout and prints as it likes."""
    return subprocess.run(arguments, cwd=ROOT).returncode


def _deferred(arguments: list[str]) -> Callable[[], int]:
    return lambda: command(arguments)


def begun(arguments: list[str]) -> Callable[[], int]:
    """Begins a command; what is returned waits for its end, prints what it said and gives its exit status."""
    process = subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def end() -> int:
        said, _ = process.communicate()
        print(said, end="", flush=True)
        return process.returncode

    return end


def run(argv: list[str]) -> int:
    """0 when all is well; --fix formats, repairs lint and renews the tables; --docstrings lists what lacks one."""
    options = switches(
        "check", "Every check that needs no device and no browser.", argv,
        fix="format, repair lint, renew the generated tables", docstrings="only list the definitions that have none",
    )  # fmt: skip
    if options.docstrings:
        return docstrings.run(["--list"])
    run_steps([setup_kernels.kernels_step()])  # the generated kernel table is part of what mypy reads
    ring = [path for path in RING_0 if (ROOT / path).exists()]
    tests = [sys.executable, "-m", "pytest", "-q", *ring]
    return run_stages([*static_stages(options.fix), Stage("ring 0", lambda: command(tests))])
