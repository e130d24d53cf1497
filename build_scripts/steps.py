"""Set-up steps: what one does, how long it took, and whether it is needed at all."""

import hashlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.files import digest_of
from build_scripts.locks import one_at_a_time
from build_scripts.paths import BUILD, ROOT


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


def run_steps(steps: Iterable[Step]) -> None:
    """Runs what is needed, in order, and says so."""
    with one_at_a_time(BUILD, "build_scripts command"):  # a step may run steps of its own
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
