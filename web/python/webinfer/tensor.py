"""Tensors that cross the API: a typed, shaped view of bytes. No NumPy needed, none refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webinfer.dtypes import DType
from webinfer.errors import InputError
from webinfer.packing import to_inner

if TYPE_CHECKING:
    import numpy as np

    from webinfer.graph.ir import Quantization

_NATIVE_FORMAT = {"e": "float16", "f": "float32", "d": "float64", "b": "int8", "B": "uint8", "h": "int16",
                  "H": "uint16", "i": "int32",
                  "I": "uint32", "l": "int64", "q": "int64", "L": "uint64", "Q": "uint64", "?": "bool"}  # fmt: skip


class Tensor:
    """Elements in row-major order.

    Supports the buffer protocol (`memoryview(tensor)`, Python 3.12 and later) and NumPy's `__array__`.
    """

    __slots__ = ("_bytes", "dtype", "quant", "shape")

    def __init__(self, data: Any, shape: tuple[int, ...], dtype: DType, quant: Quantization | None = None) -> None:
        self._bytes = memoryview(data).cast("B")
        self.shape, self.dtype, self.quant = shape, dtype, quant
        count = 1
        for size in shape:
            count *= size
        if len(self._bytes) != count * dtype.itemsize:
            raise InputError(f"{len(self._bytes)} bytes do not make a {dtype} tensor of shape {shape}")

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return len(self._bytes)

    def tobytes(self) -> bytes:
        """The elements as little-endian bytes."""
        return self._bytes.tobytes()

    def flat(self) -> memoryview:
        """The elements, flat and typed (float16 comes as bytes where Python cannot cast to it)."""
        try:
            return self._bytes.cast(self._letter())  # type: ignore[call-overload,no-any-return]
        except ValueError:
            return self._bytes

    def tolist(self) -> list[Any]:
        """The elements as one flat list."""
        import struct

        if self.dtype is DType.FLOAT64:
            return list(struct.unpack(f"<{self.nbytes // 8}d", self._bytes))
        inner = self.dtype.inner
        return list(
            struct.unpack(f"<{self.nbytes // self.dtype.itemsize}{inner.letter}", to_inner(self._bytes, self.dtype))
        )

    def _letter(self) -> str:
        """The format of a view of the elements; plain bytes where Python has no such type."""
        return "d" if self.dtype is DType.FLOAT64 else self.dtype.letter if self.dtype.inner is self.dtype else ""

    def numpy(self) -> np.ndarray[Any, Any]:
        """A NumPy array over the same bytes; NumPy must be installed.

        For types that NumPy does not have, and no package has added, it is a copy in the type used for computing.
        """
        import numpy as np

        try:
            np.dtype(self.dtype.value)
        except TypeError:
            inner = self.dtype.inner
            return np.frombuffer(to_inner(self._bytes, self.dtype), dtype=inner.value).reshape(self.shape)
        return np.frombuffer(self._bytes, dtype=self.dtype.value).reshape(self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __buffer__(self, flags: int, /) -> memoryview:
        return self.flat() if not self.shape or 0 in self.shape else self._shaped()

    def _shaped(self) -> memoryview:
        try:
            return self._bytes.cast(self._letter(), self.shape)  # type: ignore[call-overload,no-any-return]
        except ValueError:
            return self._bytes

    def __repr__(self) -> str:
        return f"Tensor({self.dtype}, shape={self.shape})"


def buffer_of(value: Any, shape: tuple[int, ...], dtype: DType, name: str) -> memoryview:
    """The bytes of anything array-like, its type, shape and length checked.

    A flat buffer without a type of its own (bytes, array.array, memoryview) is taken as it lies.

    Raises:  InputError naming the input, what was found and what is needed.
    """
    if isinstance(value, Tensor) and value.dtype is dtype and value.shape == shape:
        return value._bytes
    found_dtype, found_shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if found_dtype is not None and str(found_dtype) != dtype.value:
        raise InputError(f"input {name!r} has type {found_dtype}, needs {dtype}; convert it first")
    flat_buffer = found_dtype is None and len(found_shape or ()) == 1
    if found_shape is not None and not flat_buffer and tuple(found_shape) != shape:
        raise InputError(f"input {name!r} has shape {tuple(found_shape)}, needs {shape}")
    try:
        view = memoryview(value.tobytes() if dtype.inner is not dtype and found_dtype is not None else value)
    except (TypeError, AttributeError):
        raise InputError(f"input {name!r} is a {type(value).__name__}; give an array, a buffer or a Tensor") from None
    if found_dtype is None and view.format not in ("B", "b", "c"):
        found = _NATIVE_FORMAT.get(view.format.lstrip("<=@"))
        if found != dtype.value:
            raise InputError(f"input {name!r} holds {found or view.format}, needs {dtype}; convert it first")
    if not view.c_contiguous:
        view = memoryview(view.tobytes())
    flat = view.cast("B") if view.nbytes else memoryview(b"")
    needed = dtype.itemsize
    for size in shape:
        needed *= size
    if flat.nbytes != needed:
        raise InputError(f"input {name!r} has {flat.nbytes} bytes, needs {needed} for {dtype} {shape}")
    return flat
