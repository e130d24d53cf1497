"""Set-up steps: what one does, how long it took, and whether it is needed at all."""

import contextlib
import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.paths import BUILD, ROOT

_locked = False  # whether this process holds the checkout's lock


@dataclass(frozen=True)
class Step:
    """One step. It is skipped when nothing in `inputs` has changed and all `outputs` are there.

    `inputs` gives paths (a file or folder counts with its content) and strings (which count as
    they are). The stamp lies beside the output, so that deleting the output forgets the stamp.
    """

    name: str
    what: str
    inputs: Callable[[], Iterable[Path | str]]
    outputs: tuple[Path, ...]
    action: Callable[[], None]
    stamp: Path
    version: int = 1

    def key(self) -> str:
        """A digest of the step's version and of everything that it reads."""
        digest = hashlib.sha256(f"{self.name} {self.version}\n".encode())
        for item in self.inputs():
            if isinstance(item, str):
                digest.update(f"text {item}\n".encode())
            else:
                digest.update(f"tree {digest_of(item)}\n".encode())
        return digest.hexdigest()


def files_below(path: Path) -> list[Path]:
    """Every file below a folder, sorted; a file gives itself. Python's caches and stamps are left out."""
    if path.is_file():
        return [path]
    found = [p for p in path.rglob("*") if p.is_file() and "__pycache__" not in p.parts and p.name[0] != "."]
    return sorted(found, key=lambda p: p.relative_to(path).as_posix())


def digest_of(path: Path) -> str:
    """A digest of names and contents."""
    digest = hashlib.sha256()
    for file in files_below(path):
        name = file.relative_to(path).as_posix()
        digest.update(f"{name} {file.stat().st_size}\n".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


def run_steps(steps: Iterable[Step]) -> None:
    """Runs what is needed, in order, and says so."""
    with _one_at_a_time():
        for step in steps:
            _run_step(step)


def _run_step(step: Step) -> None:
    key = step.key()
    if step.stamp.is_file() and step.stamp.read_text() == key and all(p.exists() for p in step.outputs):
        print(f"  {step.name:14} unchanged")
        return
    print(f"  {step.name:14} {step.what} ...", flush=True)
    step.stamp.unlink(missing_ok=True)
    begin = time.monotonic()
    step.action()
    missing = [str(p.relative_to(ROOT)) for p in step.outputs if not p.exists()]
    if missing:
        raise BuildError(f"the step {step.name!r} ended without its output {', '.join(missing)}")
    step.stamp.parent.mkdir(parents=True, exist_ok=True)
    step.stamp.write_text(step.key())
    print(f"  {step.name:14} done in {time.monotonic() - begin:.1f} s")


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Two commands started together must not build into each other's folders."""
    global _locked
    if os.name == "nt" or _locked:  # a step may run steps of its own
        yield
        return
    import fcntl

    BUILD.mkdir(exist_ok=True)
    with (BUILD / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("  waiting for another build_scripts command in this checkout ...")
            fcntl.flock(file, fcntl.LOCK_EX)
        _locked = True
        try:
            yield
        finally:
            _locked = False
