"""Pyodide where nothing can wait: Node without JSPI, Python called synchronously. Models load and run all the same."""

import json
import subprocess

import pytest
from tests.compat.onnx_files import product

from build_scripts.paths import BROWSER_WHEELS, NODE_MODULES, WHEELS
from build_scripts.places.probe import MODEL
from build_scripts.setup.node import node_commands
from build_scripts.site.wheel import wheel_name

SCRIPT = """
const [pyodideFolder, wheels, model, code] = JSON.parse(process.argv[1]);
const { loadPyodide } = await import(pyodideFolder + "/pyodide.mjs");
const { readFileSync } = await import("node:fs");
const pyodide = await loadPyodide();
await pyodide.loadPackage(wheels, { messageCallback: () => {} });
pyodide.FS.writeFile("/face.tflite", readFileSync(model));
console.log("answer " + pyodide.runPython(code));
process.exit(0);
"""
CODE = """
import asyncio, json, importlib.metadata, webinfer
webinfer.compat.install("onnxruntime")
import onnxruntime
model = open("/face.tflite", "rb").read()
seen = {"version": importlib.metadata.version("onnxruntime"), "providers": onnxruntime.get_available_providers()}
with webinfer.load_sync(model, backend=["webgpu", "wasm"]) as session:
    runs = [session.run(session.noise()) for _ in range(2)]
    seen |= {"backend": session.backend, "choice": session.choice}
    seen["shapes"] = {name: tensor.shape for name, tensor in runs[0].items()}
    seen["same"] = all(runs[0][name].tobytes() == runs[1][name].tobytes() for name in runs[0])
session = onnxruntime.InferenceSession(bytes.fromhex("MODEL"))  # no NumPy here: lists go in, tensors come out
(found,) = session.run(None, {"X": [[1, 2], [3, 4], [5, 6]]})
seen["lists"] = [found.shape, found.tolist(), session.get_providers()]
try:
    webinfer.run_sync(asyncio.sleep(0.01))
except webinfer.InputError as error:
    seen["error"] = str(error)
json.dumps(seen)
""".replace("MODEL", product().hex())


@pytest.fixture(scope="module")
def seen() -> dict:
    pyodide, wheel = NODE_MODULES / "pyodide", WHEELS / wheel_name()
    missing = [str(path) for path in (pyodide, wheel, MODEL) if not path.exists()]
    if missing:
        pytest.skip(f"there is no {', '.join(missing)}")
    wheels = [str(next(BROWSER_WHEELS.glob(f"{name}-*.whl"))) for name in ("jinja2", "markupsafe")]
    job = json.dumps([str(pyodide), [*wheels, str(wheel)], str(MODEL), CODE])
    command = [str(next(iter(node_commands()))), "--input-type=module", "--eval", SCRIPT, job]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    answers = [line.removeprefix("answer ") for line in done.stdout.splitlines() if line.startswith("answer ")]
    assert answers, (done.stdout + done.stderr)[-2000:]
    return json.loads(answers[0])


def test_models_load_and_run_on_wasm(seen) -> None:
    assert seen["backend"] == "wasm"
    assert seen["shapes"] == {"regressors": [1, 896, 16], "classificators": [1, 896, 1]}
    assert seen["same"]
    assert "JSPI" in seen["choice"]


def test_the_stand_in_is_found_and_offers_what_can_be_used(seen) -> None:
    assert seen["version"] == "1.31.1"
    assert seen["providers"] == ["CPUExecutionProvider"]
    assert seen["lists"] == [[3, 2], [1, 4, 9, 16, 25, 36], ["CPUExecutionProvider"]]


def test_what_has_to_wait_is_an_error(seen) -> None:
    assert "blocking is not possible here" in seen["error"]
