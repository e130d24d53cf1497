"""The classes of JavaScript's typed arrays and what they hold. Imports nothing of ours."""

from __future__ import annotations

ARRAY_TYPES = {
    f"{name}Array": dtype
    for name, dtype in {
        "Float16": "float16", "Float32": "float32", "Float64": "float64", "Int8": "int8", "Int16": "int16",
        "Int32": "int32", "BigInt64": "int64", "Uint16": "uint16", "Uint32": "uint32", "BigUint64": "uint64",
    }.items()
}  # fmt: skip
ARRAY_CLASSES = {dtype: name for name, dtype in ARRAY_TYPES.items()}
