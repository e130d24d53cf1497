"""ONNX Runtime's Python interface over webinfer's sessions: `InferenceSession("model.onnx").run(None, {"x": array})`.

Written after its public documentation; `__version__` is the interface's. Calls are synchronous: with WebGPU in a page
the browser suspends Python meanwhile. `webinfer.compat.install("onnxruntime")` lets packages import it by that name.
"""

from webinfer.compat.onnxruntime.adapters import AdapterFormat, LoraAdapter
from webinfer.compat.onnxruntime.binding import IOBinding
from webinfer.compat.onnxruntime.logs import (
    set_default_logger_callback,
    set_default_logger_severity,
    set_default_logger_verbosity,
)
from webinfer.compat.onnxruntime.memory import (
    OrtAllocatorType,
    OrtArenaCfg,
    OrtDeviceMemoryType,
    OrtDeviceVendorId,
    OrtMemoryInfo,
    OrtMemoryInfoDeviceType,
    OrtMemType,
    create_and_register_allocator,
    create_and_register_allocator_v2,
)
from webinfer.compat.onnxruntime.options import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    RunOptions,
    SessionOptions,
)
from webinfer.compat.onnxruntime.providers import get_all_providers, get_available_providers, get_device
from webinfer.compat.onnxruntime.session import InferenceSession
from webinfer.compat.onnxruntime.sparse import OrtSparseFormat, SparseTensor
from webinfer.compat.onnxruntime.types import ModelMetadata, NodeArg
from webinfer.compat.onnxruntime.values import OrtDevice, OrtValue
from webinfer.version import VERSION

__version__ = "1.31.1"
__all__ = [
    "AdapterFormat",
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "LoraAdapter",
    "ModelMetadata",
    "NodeArg",
    "OrtAllocatorType",
    "OrtArenaCfg",
    "OrtDevice",
    "OrtDeviceMemoryType",
    "OrtDeviceVendorId",
    "OrtMemType",
    "OrtMemoryInfo",
    "OrtMemoryInfoDeviceType",
    "OrtSparseFormat",
    "OrtValue",
    "RunOptions",
    "SessionOptions",
    "SparseTensor",
    "create_and_register_allocator",
    "create_and_register_allocator_v2",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_version_string",
    "set_default_logger_callback",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_seed",
]


def get_version_string() -> str:
    """The version of the interface."""
    return __version__


def get_build_info() -> str:
    """That this is webinfer."""
    return f"ORT Build Info: webinfer {VERSION}, with the interface of ONNX Runtime {__version__}"


def set_seed(seed: int) -> None:
    """Nothing: random operators draw by the engine's own seeds."""


def enable_telemetry_events() -> None:
    """Nothing: webinfer has no telemetry."""


def disable_telemetry_events() -> None:
    """Nothing: webinfer has no telemetry."""
