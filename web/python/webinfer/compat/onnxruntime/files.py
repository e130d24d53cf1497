"""What ONNX Runtime changes or tells of an ONNX file itself: other initializers, fixed sizes, weights beside it, nodes.

The fields of ModelProto and GraphProto that hold these are walked; all others are carried over as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from webinfer.compat.onnxruntime.types import type_number
from webinfer.lazy_dataclass import dataclass

# numbers of fields: from ModelProto to the initializers, to the sizes of inputs, to nodes
GRAPH, NODE, INITIALIZER, INPUT, OUTPUT = 7, 1, 5, 11, 12
DIMENSION = (2, 1, 2, 1)  # of a ValueInfoProto: type, tensor_type, shape, dim
TENSOR_NAME, RAW_DATA, EXTERNAL_DATA, DATA_LOCATION = 8, 9, 13, 14

Change = Callable[[memoryview], bytes | None]


@dataclass(frozen=True)
class Node:
    """A node of the file."""

    name: str
    op_type: str
    domain: str


@dataclass(frozen=True)
class AssignedSubgraph:
    """Nodes of the file that a provider runs."""

    ep_name: str
    nodes: tuple[Node, ...]

    def get_nodes(self) -> list[Node]:
        """The nodes."""
        return list(self.nodes)


def with_initializers(model: bytes, values: Mapping[str, Any]) -> bytes:
    """The model with these arrays as the initializers of these names.

    Raises:  ValueError if the bytes are not an ONNX model
    """

    def left(tensor: memoryview) -> bytes | None:
        return None if _text(tensor, TENSOR_NAME) in values else bytes(tensor)

    added = b"".join(_field(INITIALIZER, _tensor(name, array)) for name, array in values.items())
    cleared = _changed(memoryview(model), (GRAPH, INITIALIZER), left)
    return _changed(memoryview(cleared), (GRAPH,), lambda graph: bytes(graph) + added)


def with_sizes(model: bytes, by_denotation: Mapping[str, int]) -> bytes:
    """The model with the sizes of inputs fixed that carry one of these denotations.

    Raises:  ValueError if the bytes are not an ONNX model
    """

    def fixed(size: memoryview) -> bytes:
        found = by_denotation.get(_text(size, 3))
        return bytes(size) if found is None else b"\x08" + _varint(found)

    return _changed(memoryview(model), (GRAPH, INPUT, *DIMENSION), fixed)


def size_names(model: bytes) -> dict[str, list[str]]:
    """The names of the sizes of each input and output, as the file writes them; "" where it gives none."""
    found = {}
    for graph in _inside(memoryview(model), (GRAPH,)):
        for number in (INPUT, OUTPUT):
            for value in _inside(graph, (number,)):
                found[_text(value, 1)] = [_text(size, 2) for size in _inside(value, DIMENSION)]
    return found


def nodes(model: bytes) -> list[Node]:
    """The nodes of the file's graph."""
    return [Node(_text(one, 3), _text(one, 4), _text(one, 7)) for one in _inside(memoryview(model), (GRAPH, NODE))]


def written(model: bytes, path: Path, weights: str, least: int, beside: Mapping[str, bytes]) -> None:
    """Writes the model; weights of at least so many bytes go into the file of this name beside it, if there is a name.

    `beside`: files that the model refers to. Raises: ValueError if the bytes are not an ONNX model
    """
    blob = bytearray()

    def moved(tensor: memoryview) -> bytes:
        entries = {_text(one, 1): _text(one, 2) for one in _inside(tensor, (EXTERNAL_DATA,))}
        if entries:
            data, at = beside.get(entries["location"]), int(entries.get("offset", 0))
            raw = None if data is None else data[at : at + int(entries.get("length", len(data) - at))]
        else:
            raw = next((bytes(one) for one in _inside(tensor, (RAW_DATA,))), None)
        if raw is None:  # its numbers lie in fields of their types, or in a file that is not there
            return bytes(tensor)
        gone = (RAW_DATA, EXTERNAL_DATA, DATA_LOCATION)
        kept = b"".join(bytes(whole) for number, whole, _ in _fields(tensor) if number not in gone)
        if not weights or len(raw) < least:
            return kept + _field(RAW_DATA, raw)
        place = {"location": weights, "offset": str(len(blob)), "length": str(len(raw))}
        blob.extend(raw)
        pairs = b"".join(
            _field(EXTERNAL_DATA, _field(1, key.encode()) + _field(2, value.encode())) for key, value in place.items()
        )
        return kept + pairs + bytes([DATA_LOCATION << 3, 1])

    path.write_bytes(_changed(memoryview(model), (GRAPH, INITIALIZER), moved))
    if weights:
        path.with_name(weights).write_bytes(blob)


# ----- protocol buffers


def _changed(data: memoryview, path: tuple[int, ...], change: Change) -> bytes:
    """A message in which the fields at the end of the path are changed, or left out where the change gives None."""
    parts = []
    for number, whole, inside in _fields(data):
        if number != path[0]:
            parts.append(bytes(whole))
            continue
        found = change(inside) if len(path) == 1 else _changed(inside, path[1:], change)
        parts.append(b"" if found is None else _field(number, found))
    return b"".join(parts)


def _inside(data: memoryview, path: tuple[int, ...]) -> Iterator[memoryview]:
    """What the fields at the end of the path hold."""
    for number, _, inside in _fields(data):
        if number == path[0]:
            yield from (inside,) if len(path) == 1 else _inside(inside, path[1:])


def _text(data: memoryview, number: int) -> str:
    return next((str(bytes(one), "utf-8", "replace") for one in _inside(data, (number,))), "")


def _fields(data: memoryview) -> Iterator[tuple[int, memoryview, memoryview]]:
    """The number of each field of a message, its bytes, and what it holds if that has a length."""
    at = 0
    while at < len(data):
        start = at
        key, at = _read_varint(data, at)
        kind, inside = key & 7, data[:0]
        if kind == 0:
            _, at = _read_varint(data, at)
        elif kind == 2:
            size, at = _read_varint(data, at)
            inside, at = data[at : at + size], at + size
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            raise ValueError(f"byte {start} begins no field of an ONNX model")
        if at > len(data):
            raise ValueError(f"the field at byte {start} is longer than the ONNX model")
        yield key >> 3, data[start:at], inside


def _numbers(message: memoryview, number: int) -> Iterator[int]:
    """The integers in fields of this number, packed or one by one."""
    for found, whole, inside in _fields(message):
        if found == number and len(inside):
            at = 0
            while at < len(inside):
                value, at = _read_varint(inside, at)
                yield value
        elif found == number:
            yield _read_varint(whole, _read_varint(whole, 0)[1])[0]


def _read_varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        value, at, shift = value | (byte & 127) << shift, at + 1, shift + 7
        if byte < 128:
            return value, at
    raise ValueError("a number of the ONNX model has no end")


def _tensor(name: str, array: Any) -> bytes:
    """A TensorProto: dims, data_type, name, raw_data."""
    head = b"".join(b"\x08" + _varint(size) for size in array.shape) + b"\x10" + _varint(type_number(array.dtype))
    return head + _field(TENSOR_NAME, name.encode()) + _field(RAW_DATA, array.tobytes())


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _integer(name: str, value: int) -> bytes:
    """An AttributeProto of one integer: name, i, and INT as its type."""
    return _field(1, name.encode()) + b"\x18" + _varint(value) + b"\xa0\x01\x02"


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data
