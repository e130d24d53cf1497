"""Values outside of a session: OrtValue, and the devices that they lie on. All lie in the processor's memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from webinfer.compat.onnxruntime.memory import OrtDeviceVendorId
from webinfer.compat.onnxruntime.sparse import SparseTensor
from webinfer.compat.onnxruntime.types import number_in, numpy_name, tensor_type

_DEVICES = ("cpu", "webgpu", "gpu")  # of arrays that webinfer takes
_NUMBERS = {"cpu": 0, "gpu": 1, "cuda": 1, "dml": 1, "webgpu": 1, "webnn": 1, "cann": 3, "npu": 3}
_VENDORS = {"cuda": OrtDeviceVendorId.NVIDIA, "dml": OrtDeviceVendorId.MICROSOFT}


class OrtDevice:
    """A device by its type and number."""

    def __init__(self, device_type: str, device_id: int = 0, vendor_id: int = -1) -> None:
        self._type, self._id, self._vendor = device_type, device_id, vendor_id

    @classmethod
    def make(cls, ort_device_name: str, device_id: int = 0, vendor_id: int = -1) -> OrtDevice:
        """The device of this name: one of ONNX Runtime's, "cpu", "gpu", "cuda", "webgpu" and others.

        Raises:  Exception for names that it does not have
        """
        if ort_device_name.lower() not in _NUMBERS:
            raise Exception(f"Unsupported device type: {ort_device_name}; there are {', '.join(_NUMBERS)}")
        return cls(ort_device_name.lower(), device_id, vendor_id)

    def device_type(self) -> int:
        """The kind of the device: 0 is a CPU, 1 a GPU, 3 an NPU."""
        return _NUMBERS[self._type]

    def device_id(self) -> int:
        """The device's number."""
        return self._id

    def device_mem_type(self) -> int:
        """0: memory of the device."""
        return 0

    def device_vendor_id(self) -> int:
        """The vendor's number: what was given, or that of the name."""
        return self._vendor if self._vendor >= 0 else int(_VENDORS.get(self._type, OrtDeviceVendorId.NONE))


def check_memory(name: str) -> None:
    """Raises Exception unless arrays can be given for this device: their memory is the processor's."""
    if OrtDevice.make(name)._type not in _DEVICES:
        raise Exception(f"Unsupported device type: {name}; webinfer has {', '.join(_DEVICES)}")


class OrtValue:
    """A tensor, a list of them or a sparse one, as ONNX Runtime wraps it. Arrays are shared, not copied."""

    def __init__(self, ortvalue: Any, numpy_obj: Any = None) -> None:
        self._value: Any = ortvalue._value if isinstance(ortvalue, OrtValue) else ortvalue
        self._type: str = ortvalue._type if isinstance(ortvalue, OrtValue) else ""

    @classmethod
    def _typed(cls, value: Any, kind: str) -> OrtValue:
        """A value of this type of a `NodeArg`, which an empty list does not tell."""
        made = cls(value)
        made._type = kind
        return made

    @staticmethod
    def ortvalue_from_numpy(numpy_obj: Any, device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        """A value over an array."""
        check_memory(device_type)
        return OrtValue(numpy_obj)

    @staticmethod
    def ortvalue_from_numpy_with_onnx_type(data: Any, onnx_element_type: int) -> OrtValue:
        """A value over an array whose bytes are of this type of onnx.TensorProto."""
        return OrtValue(data.view(numpy_name(onnx_element_type)))

    @staticmethod
    def ortvalue_from_shape_and_type(
        shape: Sequence[int], element_type: Any = "float32", device_type: str = "cpu", device_id: int = 0
    ) -> OrtValue:
        """A value of zeros; `element_type` is NumPy's type or a number of onnx.TensorProto."""
        import numpy as np

        check_memory(device_type)
        return OrtValue(np.zeros(tuple(shape), numpy_name(element_type)))

    @staticmethod
    def from_dlpack(data: Any) -> OrtValue:
        """A value over what speaks DLPack, or over its capsule; the memory is shared."""
        import numpy as np

        return OrtValue(np.from_dlpack(data if hasattr(data, "__dlpack__") else _Capsule(data)))

    @staticmethod
    def ort_value_from_sparse_tensor(sparse_tensor: Any) -> OrtValue:
        """A value over a sparse tensor."""
        return OrtValue(sparse_tensor)

    def as_sparse_tensor(self) -> SparseTensor:
        """The sparse tensor. Raises: RuntimeError if it is none."""
        if not isinstance(self._value, SparseTensor):
            raise RuntimeError("the OrtValue is not a sparse tensor")
        return self._value

    @property
    def _array(self) -> Any:
        if not self.is_tensor():
            raise RuntimeError(f"Only OrtValues that are Tensors have this; the value is {self.data_type()}")
        return self._value

    def numpy(self) -> Any:
        """The array. Raises: RuntimeError if it is a sequence or sparse."""
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self._array if dtype is None or dtype == self._array.dtype else self._array.astype(dtype)

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()

    def shape(self) -> list[int]:
        """The sizes. Raises: RuntimeError if it is a sequence."""
        return self._value.dense_shape() if self.is_sparse_tensor() else list(self._array.shape)

    def data_type(self) -> str:
        """The type, as "tensor(float)", "seq(tensor(float))", "sparse_tensor(float)"."""
        if self.is_tensor_sequence():
            return self._type or (f"seq({tensor_type(self._value[0].dtype)})" if self._value else "seq(tensor(float))")
        return self._value.data_type() if self.is_sparse_tensor() else tensor_type(self._value.dtype)

    def element_type(self) -> int:
        """The type's number in onnx.TensorProto."""
        return number_in(self.data_type())

    def device_name(self) -> str:
        """The device: "cpu"."""
        return "cpu"

    def data_ptr(self) -> int:
        """The address of the first element."""
        return int(self._array.ctypes.data)

    def tensor_size_in_bytes(self) -> int:
        """The bytes of all elements."""
        return int(self._array.nbytes)

    def has_value(self) -> bool:
        """True."""
        return True

    def is_tensor(self) -> bool:
        """Whether it is a tensor, and no sequence or sparse one."""
        return not isinstance(self._value, list | SparseTensor)

    def is_sparse_tensor(self) -> bool:
        """Whether it is a sparse tensor."""
        return isinstance(self._value, SparseTensor)

    def is_tensor_sequence(self) -> bool:
        """Whether it is a sequence of tensors."""
        return isinstance(self._value, list)

    def update_inplace(self, np_arr: Any) -> None:
        """Copies an array of the same type and shape into this one.

        Raises:  ValueError if they differ
        """
        if np_arr.dtype != self._array.dtype or np_arr.shape != self._array.shape:
            found, needed = (f"{a.dtype} {a.shape}" for a in (np_arr, self._array))
            raise ValueError(f"The new value is {found}, needs {needed}")
        self._array[...] = np_arr


class _Capsule:
    """A capsule of DLPack in the processor's memory, as NumPy takes it."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0
