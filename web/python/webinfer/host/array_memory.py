"""The memory that an array lies in, whatever its strides: memoryview gives bytes without gaps only."""

from __future__ import annotations

import contextlib
import ctypes

STRIDED_READ_ONLY = 0x18  # PyBUF_STRIDED_RO


class _Buffer(ctypes.Structure):
    """Py_buffer of Python's C interface."""

    _fields_ = (
        ("buf", ctypes.c_void_p), ("obj", ctypes.c_void_p), ("len", ctypes.c_ssize_t), ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int), ("ndim", ctypes.c_int), ("format", ctypes.c_void_p), ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p), ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p),
    )  # fmt: skip


def memory_of(view: memoryview, below: int, above: int) -> memoryview | None:
    """The memory that an array lies in, from so many bytes before its first element; None where it cannot be found."""
    api, found = getattr(ctypes, "pythonapi", None), _Buffer()
    if api is None:
        return None
    with contextlib.suppress(BufferError, AttributeError):
        if api.PyObject_GetBuffer(ctypes.py_object(view), ctypes.byref(found), STRIDED_READ_ONLY) == 0:
            address = int(found.buf or 0)
            api.PyBuffer_Release(ctypes.byref(found))  # `view` still holds it
            data = (ctypes.c_ubyte * (above - below)).from_address(address + below)
            data.owner = view  # type: ignore[attr-defined]
            return memoryview(data).cast("B")
    return None
