"""Element types as ONNX Runtime writes them, and the small records that sessions answer with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from webinfer.dtypes import DType
from webinfer.lazy_dataclass import dataclass

# NumPy's name, the name in "tensor(…)", and the number in onnx.TensorProto
_TYPES = (
    (DType.FLOAT32, "float", 1), (DType.UINT8, "uint8", 2), (DType.INT8, "int8", 3), (DType.UINT16, "uint16", 4),
    (DType.INT16, "int16", 5), (DType.INT32, "int32", 6), (DType.INT64, "int64", 7), (DType.BOOL, "bool", 9),
    (DType.FLOAT16, "float16", 10), (DType.FLOAT64, "double", 11), (DType.UINT32, "uint32", 12),
    (DType.UINT64, "uint64", 13), (DType.BFLOAT16, "bfloat16", 16), (DType.FLOAT8_E4M3FN, "float8e4m3fn", 17),
    (DType.FLOAT8_E4M3FNUZ, "float8e4m3fnuz", 18), (DType.FLOAT8_E5M2, "float8e5m2", 19),
    (DType.FLOAT8_E5M2FNUZ, "float8e5m2fnuz", 20), (DType.UINT4, "uint4", 21), (DType.INT4, "int4", 22),
    (DType.FLOAT4_E2M1FN, "float4e2m1", 23), (DType.UINT2, "uint2", 25), (DType.INT2, "int2", 26),
)  # fmt: skip
_NAMES = {dtype: name for dtype, name, _ in _TYPES}
_NUMBERS = {dtype: number for dtype, _, number in _TYPES}


def tensor_type(dtype: Any) -> str:
    """A type as in `NodeArg.type`: "tensor(float)" for float32."""
    return f"tensor({_NAMES.get(_known(dtype), str(dtype))})"


def type_number(dtype: Any) -> int:
    """A type's number in onnx.TensorProto; 0 if it has none."""
    return _NUMBERS.get(_known(dtype), 0)


def number_in(kind: str) -> int:
    """The number in onnx.TensorProto of the elements of a type such as "seq(tensor(float))"; 0 if it has none."""
    name = kind.rpartition("(")[2].rstrip(")")
    return next((number for _, known, number in _TYPES if known == name), 0)


def numpy_name(element_type: Any) -> str:
    """NumPy's name of a type that is given as a NumPy type, its name, or its number in onnx.TensorProto."""
    if isinstance(element_type, int):
        return next((dtype.value for dtype, number in _NUMBERS.items() if number == element_type), "")
    return str(getattr(element_type, "__name__", None) or getattr(element_type, "name", element_type))


def _known(dtype: Any) -> DType:
    try:
        return DType(str(dtype))
    except ValueError:
        return None  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class NodeArg:
    """An input or output: name, type as "tensor(float)", and sizes: numbers, names, None where nothing is said."""

    name: str
    type: str
    shape: list[int | str | None]

    def __str__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape!r})"

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class ModelMetadata:
    """What the model's file says of itself; `custom_metadata_map` has its `metadata_props`."""

    custom_metadata_map: Mapping[str, str] = field(default_factory=dict)
    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = 0
