"""`install`: packages find the stand-in under the library's name, and a real library is never hidden."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from tests.compat.without_onnxruntime import link_engine

from webinfer import compat
from webinfer.errors import InputError


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with the engine and what it needs, and no onnxruntime beside it."""
    folder = tmp_path_factory.mktemp("packages")
    link_engine(folder)
    return folder


def _python(place: Path, code: str) -> str:
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(place)!r})\n{code}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_packages_find_the_stand_in_under_the_librarys_name(place):
    code = """
from importlib import metadata, util
import webinfer
assert util.find_spec("onnxruntime") is None
webinfer.compat.install("onnxruntime", "tflite_runtime", "ai_edge_litert")
from webinfer.compat.onnxruntime.providers import CPU, checked_providers
webinfer.compat.install("onnxruntime", backend="webgpu")  # a second time
assert list(checked_providers([CPU], None, ())) == ["WebGpuExecutionProvider", CPU]
assert list(checked_providers(["WebNNExecutionProvider"], None, ())) == ["WebNNExecutionProvider", CPU]
webinfer.compat.install("onnxruntime", backend="wasm")
assert list(checked_providers(None, None, ())) == [CPU]
import onnxruntime as ort
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument
from onnxruntime import InferenceSession, SessionOptions
from tflite_runtime.interpreter import Interpreter
import ai_edge_litert.interpreter as litert
assert ort.InferenceSession is webinfer.compat.onnxruntime.InferenceSession is InferenceSession
assert litert.Interpreter is Interpreter
assert metadata.version("onnxruntime") == ort.__version__
assert metadata.version("tflite-runtime") and metadata.version("ai_edge_litert")
assert "onnxruntime" in [found.name for found in metadata.distributions()]
assert util.find_spec("onnxruntime") and not util.find_spec("onnxruntime.quantization")
webinfer.compat.install("tensorflow")
import tensorflow as tf
import tensorflow.lite
assert tf.lite.Interpreter is Interpreter and not hasattr(tf, "keras")
webinfer.compat.uninstall()
assert util.find_spec("onnxruntime") is None and "onnxruntime" not in sys.modules
print("ok")
"""
    assert _python(place, code) == "ok\n"


def test_a_real_library_is_never_hidden(place):
    (place / "real").mkdir()
    (place / "real" / "onnxruntime.py").write_text("real = True\n")
    code = f"""
import webinfer
webinfer.compat.install("onnxruntime")
sys.path.insert(0, {str(place / "real")!r})  # installed later
import onnxruntime
assert onnxruntime.real
webinfer.compat.uninstall()
try:
    webinfer.compat.install("onnxruntime")
except webinfer.InputError as error:
    print(error)
"""
    assert "never takes its place" in _python(place, code)


def test_other_names_are_refused_with_the_nearest():
    with pytest.raises(InputError, match="did you mean 'onnxruntime'"):
        compat.install("onnx_runtime")
    with pytest.raises(InputError, match="wasm, webgpu, webnn"):
        compat.install("tflite_runtime", backend="gpu")


def test_the_stand_ins_say_the_versions_of_their_interfaces():
    for name, stand_in in compat.STAND_INS.items():
        module = importlib.import_module(stand_in.modules[name])
        if name != "ai_edge_litert":  # the same module under a second name
            assert module.__version__ == stand_in.version
        for ours in stand_in.modules.values():
            importlib.import_module(ours)
