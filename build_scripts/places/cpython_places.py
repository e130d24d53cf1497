"""CPython: the wheel by pip in an empty environment, its command, models by name, the examples of the documentation."""

import json
import os
import shutil
import subprocess
import tempfile
import urllib.request
from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.paths import ROOT, WEB, WHEELS
from build_scripts.places.probe import MODEL, judged, probe
from build_scripts.setup.environment import pip
from build_scripts.site.wheel import wheel_name

SERIES = ("3.11", "3.12", "3.13")
LIMIT_S = 300
# With the extra `native` and nothing else: a known model by name comes with progress, once, and the second time not.
BY_NAME = """
import sys, webinfer
told = []
with webinfer.load_sync("blazeface_short_range", backend="wasm", progress=told.append) as session:
    outputs = session.run(session.noise())
    assert {{n: o.shape[1:] for n, o in outputs.items()}} == {{"regressors": (896, 16), "classificators": (896, 1)}}
    assert session.profile().run_ms > 0
fetched = [event for event in told if event.stage == "model"]
assert len(fetched) > 1 and fetched[-1].done == fetched[-1].total, fetched
told.clear()
webinfer.load_sync("blazeface_short_range", backend="wasm", progress=told.append).close()
assert len([event for event in told if event.stage == "model"]) == 1, told
assert "numpy" not in sys.modules
from importlib.resources import files
assert (files("webinfer") / "py.typed").is_file()
async def main():
{body}
    print({last})
webinfer.run_sync(main())
"""
EXAMPLE = """
import asyncio, sys
from pathlib import Path
from tests.docs.pages import run_program
asyncio.run(run_program(Path(sys.argv[1])))
"""


def interpreter(series: str) -> str | None:
    """The command of this Python, if the machine has it."""
    candidates = [
        shutil.which(f"python{series}"),
        *map(str, Path.home().glob(f".pyenv/versions/{series}.*/bin/python")),
    ]
    for candidate in candidates:
        if candidate and subprocess.run([candidate, "--version"], capture_output=True).returncode == 0:
            return candidate
    return None


def in_cpython(series: str) -> str:
    """How the wheel works in an empty environment of this Python.

    Raises: BuildError if there is no such Python, or at the first thing that does not
    """
    command = interpreter(series)
    if command is None:
        raise BuildError(f"this machine has no Python {series}")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        subprocess.run([command, "-m", "venv", str(place / "env")], check=True, capture_output=True)
        python = place / "env" / "bin" / "python"
        wheel = str(WHEELS / wheel_name())
        pip("install", "--quiet", f"{wheel}[native]", python=python)
        lines = probe(str(MODEL), ["wasm", "webgpu"]).strip().splitlines()
        body = "\n".join(f"    {line}" for line in lines[:-1])
        answer = judged(_run(python, place, BY_NAME.format(body=body, last=lines[-1])).splitlines()[-1])
        _command_without_numpy(python, place)
        _served_package(python, place)
        pip("install", "--quiet", f"{wheel}[native,numpy,pillow]", "markdown-it-py", python=python)
        shown = _examples(python, place)
    return f"{answer}; model by name; a package's page served; {len(shown)} pages of examples"


def _command_without_numpy(python: Path, place: Path) -> None:
    """The command `webinfer` where no NumPy is: what needs it says so."""
    tool, environment = str(python.parent / "webinfer"), _environment(place)
    for arguments, status, words in (
        (["inspect", str(MODEL)], 0, "classificators"),
        (["run", str(MODEL), "--output", str(place / "out")], 0, "classificators"),
    ):
        done = subprocess.run([tool, *arguments], env=environment, cwd=place, capture_output=True, text=True)
        said = done.stdout + done.stderr
        if done.returncode != status or words not in said or "Traceback" in said:
            raise BuildError(f"webinfer {' '.join(arguments)} ends with {done.returncode}: {said[-600:]}")
    if not (place / "out" / "classificators.npy").is_file():
        raise BuildError("webinfer run --output wrote no classificators.npy")


def _served_package(python: Path, place: Path) -> None:
    """A page for a compiled package: written and served by the command."""
    tool, package, site = str(python.parent / "webinfer"), str(place / "face.webinfer"), str(place / "site")
    environment = _environment(place)
    compiled = ["compile", str(MODEL), "-o", package, "--backend", "wasm", "--task", "face-detector"]
    for arguments in (compiled, ["export", site, "--package", package]):
        done = subprocess.run([tool, *arguments], env=environment, cwd=place, capture_output=True, text=True)
        if done.returncode:
            raise BuildError(f"webinfer {arguments[0]} fails: {(done.stdout + done.stderr)[-600:]}")
    command = [tool, "serve", "--site", site, "--port", "0"]
    with subprocess.Popen(command, env=environment, cwd=place, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            for name in ("", "model.webinfer"):
                with urllib.request.urlopen(address + name, timeout=LIMIT_S) as answer:
                    if not answer.read() or answer.headers["Cross-Origin-Opener-Policy"] != "same-origin":
                        raise BuildError(f"webinfer serve --site answers {dict(answer.headers)} to /{name}")
        except OSError as error:
            raise BuildError(f"webinfer serve --site does not answer at {address!r}: {error}") from error
        finally:
            server.terminate()


def _examples(python: Path, place: Path) -> list[str]:
    """The pages whose examples ran: README and documentation; those that add to the engine's files need a checkout."""
    (place / "tests").symlink_to(WEB / "python" / "tests")
    pages = [
        ROOT / "README.md",
        *sorted(path for path in (WEB / "docs").glob("*.md") if "python add" not in path.read_text()),
    ]
    pages = [page for page in pages if "```python run" in page.read_text()]
    for page in pages:
        _run(python, place, EXAMPLE, str(page))
    return [page.name for page in pages]


def _environment(place: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "WEBINFER"))}
    return {**kept, "XDG_CACHE_HOME": str(place / "cache")}


def _run(python: Path, place: Path, program: str, *arguments: str) -> str:
    command = [str(python), "-c", program, *arguments]
    done = subprocess.run(command, env=_environment(place), cwd=place, capture_output=True, text=True, timeout=LIMIT_S)
    if done.returncode:
        raise BuildError(f"{json.dumps(program[:60])} … fails: {(done.stdout + done.stderr)[-1500:]}")
    return done.stdout
