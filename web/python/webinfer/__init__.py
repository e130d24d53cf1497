"""Run machine-learning models in the browser, from Python, at the speed of the hardware.

    session = await webinfer.load("model.onnx")        # .tflite, .onnx, model.json; a path, a URL, bytes, a name
    outputs = await session.run({"input": image})      # arrays in, tensors out: outputs["name"].numpy()
    print(session.plan())                              # what runs where, step by step, and why

    session = webinfer.load_sync("model.onnx")         # the same in a script, without await
    outputs = session.run(image)

    faces = await webinfer.pipeline("face-detection")  # tasks: a picture, a recording or text in, what it shows out
    for face in await faces.run(image):
        print(face.box, face.score)

load          a model, ready to run; `help(webinfer.load)` explains its options
Session       a loaded model: run, plan, profile, tune, verify, close
pipeline      a task by its name; `webinfer.tasks` has them all, with options
from_torch    a module of PyTorch as a model; so from_sklearn, from_keras
load_sync     as load, for scripts; run_sync waits for anything else that is awaited
compat        stand-ins for onnxruntime and tflite_runtime, for packages that import them
lab           other devices: a browser that lets itself be driven from here
capabilities  what this machine or browser offers, and what would help
GraphBuilder  a model built in Python; register_operator adds operators of one's own

The same package runs in Pyodide and in CPython. Every error is a WebinferError that says what to do; its kinds are in
webinfer.errors. From a shell: `webinfer --help`.
"""

from typing import TYPE_CHECKING

from webinfer.errors import (
    BackendUnavailableError,
    ClosedError,
    CompilerError,
    DeviceLostError,
    GpuError,
    InputError,
    IntegrityError,
    IsolationError,
    KernelError,
    LimitError,
    ModelFormatError,
    OutOfMemoryError,
    ShapeError,
    UnsupportedOpError,
    WebinferError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webinfer import compat, lab, tasks
    from webinfer.authoring.builder import GraphBuilder
    from webinfer.authoring.registration import operators, register_operator, unregister_operator
    from webinfer.dtypes import DType
    from webinfer.exporters import from_keras, from_sklearn, from_torch
    from webinfer.graph.ir import TensorType
    from webinfer.host.gpu import GpuTensor
    from webinfer.host.interface import Capability, ProgressEvent
    from webinfer.session.inputs import TensorInfo
    from webinfer.session.loading import load
    from webinfer.session.session import Session
    from webinfer.session.waiting import SyncSession, load_sync, run_sync
    from webinfer.tasks import pipeline
    from webinfer.tensor import Tensor

__all__ = [
    "BackendUnavailableError",
    "Capability",
    "ClosedError",
    "CompilerError",
    "DType",
    "DeviceLostError",
    "GpuError",
    "GpuTensor",
    "GraphBuilder",
    "InputError",
    "IntegrityError",
    "IsolationError",
    "KernelError",
    "LimitError",
    "ModelFormatError",
    "OutOfMemoryError",
    "ProgressEvent",
    "Session",
    "ShapeError",
    "SyncSession",
    "Tensor",
    "TensorInfo",
    "TensorType",
    "UnsupportedOpError",
    "WebinferError",
    "capabilities",
    "compat",
    "configure",
    "from_keras",
    "from_sklearn",
    "from_torch",
    "lab",
    "load",
    "load_sync",
    "operators",
    "pipeline",
    "register_operator",
    "run_sync",
    "tasks",
    "unregister_operator",
    "use_gpu",
]


def capabilities() -> "list[Capability]":
    """The relevant features of this machine or browser: supported, or the reason why not and how to enable them."""
    from webinfer.host import current

    return list(current().capabilities())


def configure(assets: "Mapping[str, str]") -> None:
    """Sets the URLs of the engine's files in a browser, by logical name ("kernels/...")."""
    from webinfer.host import current

    host = current()
    if not hasattr(host, "configure"):
        raise InputError(f"the {host.name} host finds its files itself; configure belongs to a browser")
    host.configure(assets)


def use_gpu(device: object) -> None:
    """Makes later sessions use your GPUDevice, so that buffers can be shared; None restores the engine's own device."""
    from webinfer.host import current

    host = current()
    if not hasattr(host, "use_gpu"):
        raise InputError(f"the {host.name} host opens its device itself; use_gpu belongs to a browser")
    host.use_gpu(device)


_HOMES = {
    "Capability": "webinfer.host.interface",
    "DType": "webinfer.dtypes",
    "GpuTensor": "webinfer.host.gpu",
    "GraphBuilder": "webinfer.authoring.builder",
    "ProgressEvent": "webinfer.host.interface",
    "Session": "webinfer.session.session",
    "SyncSession": "webinfer.session.waiting",
    "Tensor": "webinfer.tensor",
    "TensorInfo": "webinfer.session.inputs",
    "TensorType": "webinfer.graph.ir",
    "from_keras": "webinfer.exporters",
    "from_sklearn": "webinfer.exporters",
    "from_torch": "webinfer.exporters",
    "load": "webinfer.session.loading",
    "load_sync": "webinfer.session.waiting",
    "operators": "webinfer.authoring.registration",
    "pipeline": "webinfer.tasks",
    "register_operator": "webinfer.authoring.registration",
    "run_sync": "webinfer.session.waiting",
    "unregister_operator": "webinfer.authoring.registration",
}


def __getattr__(name: str) -> object:
    """Public names are imported on first use, so that the leaves stay cheap to import."""
    import importlib

    if name in ("compat", "lab", "tasks"):
        return importlib.import_module(f"webinfer.{name}")
    if name == "__version__":
        return importlib.import_module("webinfer.version").VERSION
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'webinfer' has no attribute {name!r}")


def __dir__() -> list[str]:
    """What `help` shows: public names but those of data and of kinds of errors, told of where they are used."""
    data = {"Capability", "DType", "GpuTensor", "ProgressEvent", "TensorInfo", "TensorType"}
    kinds = {name for name in __all__ if name.endswith("Error") and name != "WebinferError"}
    return [*(set(__all__) - kinds - data), "__version__", "errors", "__all__", "__doc__", "__name__", "__path__"]
