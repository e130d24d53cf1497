"""webinfer: machine-learning inference in the browser, from Python.

    session = await webinfer.load("model.tflite")
    outputs = await session.run({"input": image})

The same package runs in Pyodide and in CPython. Public names are those of `__all__`.
"""

from typing import TYPE_CHECKING

from webinfer.errors import (
    BackendUnavailableError,
    ClosedError,
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

    from webinfer import tasks
    from webinfer.authoring.builder import GraphBuilder
    from webinfer.authoring.registration import operators, register_operator, unregister_operator
    from webinfer.dtypes import DType
    from webinfer.graph.ir import TensorType
    from webinfer.host.gpu import GpuTensor
    from webinfer.host.interface import Capability, ProgressEvent
    from webinfer.session.inputs import TensorInfo
    from webinfer.session.loading import load
    from webinfer.session.session import Session
    from webinfer.tasks import pipeline
    from webinfer.tensor import Tensor

__all__ = [
    "BackendUnavailableError",
    "Capability",
    "ClosedError",
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
    "Tensor",
    "TensorInfo",
    "TensorType",
    "UnsupportedOpError",
    "WebinferError",
    "capabilities",
    "configure",
    "load",
    "operators",
    "pipeline",
    "register_operator",
    "tasks",
    "unregister_operator",
    "use_gpu",
]


def capabilities() -> "list[Capability]":
    """Every feature that matters here: present, or the reason why not and what would help."""
    from webinfer.host import current

    return list(current().capabilities())


def configure(assets: "Mapping[str, str]") -> None:
    """Tells the engine in a browser where its files are: logical names ("kernels/...") and URLs."""
    from webinfer.host import current

    host = current()
    if not hasattr(host, "configure"):
        raise InputError(f"the {host.name} host finds its files itself; configure belongs to a browser")
    host.configure(assets)


def use_gpu(device: object) -> None:
    """Runs later sessions on a GPUDevice of yours, so that they share buffers; None: on one of their own."""
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
    "Tensor": "webinfer.tensor",
    "TensorInfo": "webinfer.session.inputs",
    "TensorType": "webinfer.graph.ir",
    "load": "webinfer.session.loading",
    "operators": "webinfer.authoring.registration",
    "pipeline": "webinfer.tasks",
    "register_operator": "webinfer.authoring.registration",
    "unregister_operator": "webinfer.authoring.registration",
}


def __getattr__(name: str) -> object:
    """Public names are imported on first use, so that the leaves stay cheap to import."""
    import importlib

    if name == "tasks":
        return importlib.import_module("webinfer.tasks")
    if name == "__version__":
        return importlib.import_module("webinfer.version").VERSION
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'webinfer' has no attribute {name!r}")
