"""Copies of the checkout, one a worker, and pytest in them."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from build_scripts.mutants.model import FOLDER
from build_scripts.paths import BUILD, ROOT

LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", ".carry", "build", "node_modules", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"
)
COPIED = ("kernels", "generated")  # a mutant changes these
MAX_DATA_BYTES = 12 << 30  # of one process: a mutant may ask for anything
RED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.M)


@dataclass(frozen=True)
class Outcome:
    """How a run of pytest ended: its exit status (None: the deadline passed), the first red test, and the time."""

    status: int | None
    red: str
    seconds: float
    said: str

    @property
    def green(self) -> bool:
        """Whether every test passed, or there was none (5)."""
        return self.status in (0, 5)


@dataclass(frozen=True)
class Tree:
    """A copy of the checkout, with the checkout's built files."""

    folder: Path

    @classmethod
    def make(cls, index: int) -> Tree:
        """A fresh copy; what no mutant changes of `build` is linked."""
        folder = FOLDER / "trees" / str(index)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(ROOT, folder, ignore=LEFT_OUT, symlinks=True)
        (folder / "build").mkdir()
        for child in BUILD.iterdir():
            if child.name in COPIED:
                shutil.copytree(child, folder / "build" / child.name)
            elif child.name != FOLDER.name:
                (folder / "build" / child.name).symlink_to(child)
        for name in (".venv", "web/node_modules"):
            if (ROOT / name).exists():
                (folder / name).symlink_to((ROOT / name).absolute())
        return cls(folder)

    def pytest(self, tests: Sequence[str], deadline_s: float, *options: str, **variables: str) -> Outcome:
        """Runs these tests; at the deadline the processes are ended."""
        listed = self.folder / "build" / "tests.txt"
        listed.write_text("\n".join(tests) + "\n")
        command = [
            sys.executable, "-m", "pytest", "-q", "--tb=line", "-p", "no:cacheprovider", *options, f"@{listed}",
        ]  # fmt: skip
        return self.run(command, deadline_s, **variables)

    def run(self, command: Iterable[str], deadline_s: float, **variables: str) -> Outcome:
        """Runs a command in this tree; at the deadline its processes are ended."""
        environment = {**os.environ, "PYTHONPATH": os.environ.get("PYTHONPATH", ""), **variables}
        environment.pop("WEBINFER_CI", None)  # a test that lacks something is skipped here as it was when recorded
        begin = time.monotonic()
        process = subprocess.Popen(
            [*command], cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", start_new_session=True, preexec_fn=_limited,
        )  # fmt: skip
        try:
            said, _ = process.communicate(timeout=deadline_s)
            status: int | None = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            said, status = process.communicate()[0], None
        found = RED.search(said)
        return Outcome(status, found[1] if found else "", time.monotonic() - begin, said)


def _limited() -> None:
    import resource  # not on Windows

    resource.setrlimit(resource.RLIMIT_DATA, (MAX_DATA_BYTES, MAX_DATA_BYTES))
