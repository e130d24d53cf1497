"""Errors under ONNX Runtime's names, and which of them an error of webinfer is.

Each carries the error of webinfer as `__cause__`, where there is one; that says what to do.
"""

from __future__ import annotations

from webinfer import errors


class Fail(Exception):
    """The model or the request is wrong in a way that has no class of its own."""

    code = 1


class InvalidArgument(Exception):
    """An input or output has the wrong name, type, rank or size."""

    code = 2


class NoSuchFile(Exception):
    """No model file has this path."""

    code = 3


class NoModel(Exception):
    """No model is loaded."""

    code = 4


class EngineError(Exception):
    """The engine failed."""

    code = 5


class RuntimeException(Exception):
    """A run failed: memory, limits, or a bug."""

    code = 6


class InvalidProtobuf(Exception):
    """The bytes are not an ONNX model."""

    code = 7


class ModelLoaded(Exception):
    """A model was loaded already."""

    code = 8


class NotImplemented(Exception):
    """The model needs operators, types or options that webinfer does not have."""

    code = 9


class InvalidGraph(Exception):
    """The model breaks a rule of ONNX."""

    code = 10


class EPFail(Exception):
    """The device failed: it was lost, or cannot be used."""

    code = 11


class ModelLoadCanceled(Exception):
    """Loading was cancelled."""

    code = 12


class ModelRequiresCompilation(Exception):
    """The model has to be compiled first."""

    code = 13


class NotFound(Exception):
    """Something asked for by name does not exist."""

    code = 14


class DeviceReset(Exception):
    """The device was reset."""

    code = 15


_WORDS = {
    Fail: "FAIL", InvalidArgument: "INVALID_ARGUMENT", NoSuchFile: "NO_SUCHFILE", NoModel: "NO_MODEL",
    EngineError: "ENGINE_ERROR", RuntimeException: "RUNTIME_EXCEPTION", InvalidProtobuf: "INVALID_PROTOBUF",
    NotImplemented: "NOT_IMPLEMENTED", InvalidGraph: "INVALID_GRAPH", EPFail: "EP_FAIL", NotFound: "NOT_FOUND",
}  # fmt: skip
# the first that fits counts
_KINDS: tuple[tuple[type[errors.WebinferError], type[Exception]], ...] = (
    (errors.InputError, InvalidArgument),
    (errors.UnsupportedOpError, NotImplemented),
    (errors.ModelFormatError, InvalidGraph),
    (errors.ShapeError, InvalidGraph),
    (errors.CompilerError, EngineError),
    (errors.BackendUnavailableError, EPFail),
    (errors.DeviceLostError, EPFail),
    (errors.GpuError, EPFail),
    (errors.WebinferError, RuntimeException),
)


def failure(kind: type[Exception], text: str) -> Exception:
    """An error of this class, its message in ONNX Runtime's form: "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : …"."""
    return kind(f"[ONNXRuntimeError] : {kind.code} : {_WORDS[kind]} : {text}")  # type: ignore[attr-defined]


def translated(error: errors.WebinferError, known_format: bool = True) -> Exception:
    """The error of ONNX Runtime that says the same; `known_format`: whether the bytes were an ONNX model at all."""
    if isinstance(error, errors.ModelFormatError) and not known_format:
        return failure(InvalidProtobuf, str(error))
    return failure(next(theirs for ours, theirs in _KINDS if isinstance(error, ours)), str(error))
