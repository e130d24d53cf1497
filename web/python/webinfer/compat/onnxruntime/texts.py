"""Models that read or answer texts, and maps of them: texts become numbers before the model and texts again behind it.

The engine has no text tensors. Most models only move texts, compare them or look them up, and for that a number does:
every text of the file gets one, texts that only a run brings get the next ones. A model that reads the characters of
texts, or casts them, stays refused. ZipMap's maps are made of its input, a tensor, once the model has run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from webinfer.compat.onnxruntime import files
from webinfer.compat.onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument, failure
from webinfer.compat.onnxruntime.types import tensor_type
from webinfer.lazy_dataclass import dataclass

STRING, INT64, FLOAT = 8, 7, 1  # of TensorProto.DataType
VALUE_INFO = 13  # of GraphProto
_TEXT = "tensor(string)"
# what hands texts on as they are; the first output is text if an input is
_MOVES = {
    "ArrayFeatureExtractor", "Compress", "Concat", "Expand", "Flatten", "Gather", "GatherElements", "GatherND",
    "Identity", "Reshape", "Slice", "Squeeze", "Tile", "Transpose", "Unsqueeze", "Where",
}  # fmt: skip
_LOOK_UPS = {"Equal", "LabelEncoder", "OneHotEncoder", "Shape", "Size", "TfIdfVectorizer"}
_CLASSIFIERS = {"LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier"}
# attributes of texts -> the ones of numbers that do the same
_ATTRIBUTES = {
    "cats_strings": "cats_int64s", "classlabels_strings": "classlabels_ints", "default_string": "default_int64",
    "keys_strings": "keys_int64s", "pool_strings": "pool_int64s", "value_string": "value_int",
    "value_strings": "value_ints", "values_strings": "values_int64s",
}  # fmt: skip
_NAME, _TENSOR, _TEXTS, _ONE = 1, 5, 9, 4  # of AttributeProto
_INTEGER, _INTEGERS, _GRAPHS = 3, 8, (6, 11)


@dataclass
class Texts:
    """What stands for texts in a model: their numbers, and which inputs and outputs are texts or maps."""

    words: list[str] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    inputs: set[str] = field(default_factory=set)
    outputs: set[str] = field(default_factory=set)
    maps: dict[str, list[Any]] = field(default_factory=dict)  # output -> its keys

    def __bool__(self) -> bool:
        return bool(self.words or self.inputs or self.maps)

    def number(self, word: str) -> int:
        """The number of a text of the file."""
        if word not in self.numbers:
            self.numbers[word] = len(self.words)
            self.words.append(word)
        return self.numbers[word]

    def type_of(self, name: str) -> str | None:
        """ONNX Runtime's name for the type of a text or of maps; None for other values."""
        if name in self.maps:
            key = "string" if isinstance(self.maps[name][0], str) else "int64"
            return f"seq(map({key},tensor(float)))"
        return _TEXT if name in self.inputs | self.outputs else None

    def run(self) -> Run:
        """What a run knows of texts."""
        return Run(self, list(self.words), dict(self.numbers))


@dataclass
class Run:
    """The texts of one run: those of the file, and behind them those of its inputs."""

    texts: Texts
    words: list[str]
    numbers: dict[str, int]

    def numbered(self, name: str, value: Any) -> Any:
        """The numbers of an input's texts, as an array; other inputs as they are.

        Raises:  InvalidArgument if a text input is given anything else
        """
        if name not in self.texts.inputs:
            return value
        import numpy as np

        array = value if isinstance(value, np.ndarray) else np.asarray(value)
        if array.dtype.kind not in "USOV":
            given = tensor_type(array.dtype)
            raise failure(InvalidArgument, f"Unexpected input data type. Actual: ({given}) , expected: ({_TEXT})")
        found = np.empty(array.shape, np.int64)
        for place in np.ndindex(array.shape):
            item = array[place]
            found[place] = self._number(bytes(item).decode() if isinstance(item, bytes | np.void) else str(item))
        return found

    def _number(self, word: str) -> int:
        if word not in self.numbers:
            self.numbers[word] = len(self.words)
            self.words.append(word)
        return self.numbers[word]

    def told(self, name: str, array: Any) -> Any:
        """An output as ONNX Runtime gives it: texts in an array of objects, maps in a list, others as they are."""
        if name in self.texts.maps:
            keys = self.texts.maps[name]  # ONNX Runtime's maps are in the order of their keys
            return [dict(sorted(zip(keys, row, strict=True))) for row in array.reshape(-1, len(keys)).tolist()]
        if name not in self.texts.outputs:
            return array
        import numpy as np

        found = np.empty(array.shape, object)
        for place in np.ndindex(array.shape):
            found[place] = self.words[int(array[place])]
        return found


def numbered(model: bytes) -> tuple[bytes, Texts] | None:
    """The model with numbers for texts and tensors for maps; None if it has neither, or reads characters.

    Raises:  ValueError if the bytes are not an ONNX model
    """
    texts, parts = Texts(), []
    for number, whole, inside in files._fields(memoryview(model)):
        if number == files.GRAPH:
            graph = _graph(inside, texts)
            if graph is None:
                return None
            parts.append(files._field(number, graph))
        else:
            parts.append(bytes(whole))
    return (b"".join(parts), texts) if texts else None


def _graph(graph: memoryview, texts: Texts) -> bytes | None:
    """The graph, with `texts` filled; None if a node reads characters."""
    rows = list(files._fields(graph))
    known = _sources(rows, texts)
    parts = []
    for node in (inside for number, _, inside in rows if number == files.NODE):  # they fill `known` and the maps
        changed = _node(node, known, texts)
        if changed is None:
            return None
        parts.append(files._field(files.NODE, changed))
    for number, whole, inside in rows:
        if number == files.INITIALIZER and _kind(inside) == STRING:
            parts.append(files._field(number, _tensor(inside, texts)))
        elif number in (files.INPUT, files.OUTPUT, VALUE_INFO):
            name = files._text(inside, 1)
            texts.outputs.update({name} & known if number == files.OUTPUT else ())
            parts.append(files._field(number, _value_info(inside, name, texts)))
        elif number != files.NODE:
            parts.append(bytes(whole))
    return b"".join(parts)


def _sources(rows: Sequence[tuple[int, memoryview, memoryview]], texts: Texts) -> set[str]:
    """The names of inputs and initializers of texts; the inputs are added to `texts`."""
    known = set()
    for number, _, inside in rows:
        if number == files.INITIALIZER and _kind(inside) == STRING:
            known.add(files._text(inside, files.TENSOR_NAME))
        elif number == files.INPUT and _element(inside) == STRING:
            texts.inputs.add(files._text(inside, 1))
    return known | texts.inputs


def _node(node: memoryview, known: set[str], texts: Texts) -> bytes | None:
    """A node that computes with numbers; its text outputs join the `known` ones. None if it reads characters."""
    kind = files._text(node, 4)
    inputs, outputs = ([str(bytes(one), "utf-8") for one in files._inside(node, (n,))] for n in (1, 2))
    attributes = list(files._inside(node, (5,)))
    named = {files._text(one, _NAME): one for one in attributes}
    if any(_reads(body, known) for body in _bodies(node)):
        return None
    read = any(name in known for name in inputs)
    if kind == "ZipMap":
        labels = _strings(named.get("classlabels_strings")) or _integers(named.get("classlabels_int64s"))
        texts.maps[outputs[0]] = list(labels)
        return _renamed(node, "Identity")
    if kind == "Cast" and next(files._numbers(named["to"], _INTEGER), 0) == STRING:
        known.add(outputs[0])
        return _renamed(node, "Identity") if read else None
    if read and kind not in _MOVES | _LOOK_UPS:
        return None
    if (read and kind in _MOVES) or _of_texts(kind, named):
        known.add(outputs[0])
    if kind == "LabelEncoder" and "values_strings" in named and "default_string" not in named:
        attributes.append(memoryview(files._field(_NAME, b"default_string") + files._field(_ONE, b"_Unused")))
    parts = [bytes(whole) for number, whole, _ in files._fields(node) if number != 5]
    return b"".join([*parts, *(files._field(5, _attribute(kind, one, texts)) for one in attributes)])


def _bodies(node: memoryview) -> Iterator[memoryview]:
    """The graphs in a node's attributes."""
    for attribute in files._inside(node, (5,)):
        for number in _GRAPHS:
            yield from files._inside(attribute, (number,))


def _reads(body: memoryview, known: set[str]) -> bool:
    """Whether a body has texts, its own or the outer graph's: what it does with them is not followed."""
    if any(_kind(tensor) == STRING for tensor in files._inside(body, (files.INITIALIZER,))):
        return True
    for node in files._inside(body, (files.NODE,)):
        inputs = {str(bytes(one), "utf-8") for one in files._inside(node, (1,))}
        named = {files._text(one, _NAME): one for one in files._inside(node, (5,))}
        if inputs & known or _of_texts(files._text(node, 4), named) or any(_reads(one, known) for one in _bodies(node)):
            return True
    return False


def _of_texts(kind: str, named: Mapping[str, memoryview]) -> bool:
    """Whether a node's first output is text, whatever it reads."""
    if kind in _CLASSIFIERS:
        return "classlabels_strings" in named
    if kind == "Constant":
        return not named.keys().isdisjoint(("value_string", "value_strings")) or any(
            _kind(tensor) == STRING for one in named.values() for tensor in files._inside(one, (_TENSOR,))
        )
    return kind == "LabelEncoder" and "values_strings" in named


def _renamed(node: memoryview, kind: str) -> bytes:
    """The node as an operator of ONNX itself, without attributes."""
    kept = [bytes(whole) for number, whole, _ in files._fields(node) if number not in (4, 5, 7)]
    return b"".join([*kept, files._field(4, kind.encode())])


def _attribute(kind: str, attribute: memoryview, texts: Texts) -> bytes:
    """An attribute with numbers for texts; those that are not texts of the model's, such as modes, as they are."""
    name = files._text(attribute, _NAME)
    tensor = next(files._inside(attribute, (_TENSOR,)), None)
    if tensor is not None and _kind(tensor) == STRING:
        return files._changed(attribute, (_TENSOR,), lambda one: _tensor(one, texts))
    if name not in _ATTRIBUTES:
        return bytes(attribute)
    trees = kind == "TreeEnsembleClassifier"  # whose labels have another name
    own = "classlabels_int64s" if trees and name == "classlabels_strings" else _ATTRIBUTES[name]
    if name in ("default_string", "value_string"):
        return files._integer(own, texts.number(files._text(attribute, _ONE)))
    head = files._field(_NAME, own.encode())
    numbers = [files._varint(texts.number(word)) for word in _strings(attribute)]
    return head + b"".join(b"\x40" + number for number in numbers) + b"\xa0\x01\x07"  # ints; the type is INTS


def _tensor(tensor: memoryview, texts: Texts) -> bytes:
    """A tensor of texts as one of their numbers."""
    kept = [bytes(whole) for number, whole, _ in files._fields(tensor) if number not in (2, 6)]
    words = [str(bytes(one), "utf-8") for one in files._inside(tensor, (6,))]
    raw = b"".join(texts.number(word).to_bytes(8, "little") for word in words)
    return b"".join([*kept, b"\x10", files._varint(INT64), files._field(files.RAW_DATA, raw)])


def _value_info(value: memoryview, name: str, texts: Texts) -> bytes:
    """The type and sizes of a value: numbers for texts, a tensor of unknown sizes for maps."""
    if name in texts.maps:
        return files._field(1, name.encode()) + files._field(2, files._field(1, bytes([8, FLOAT])))
    if _element(value) != STRING:
        return bytes(value)

    def changed(kind: memoryview) -> bytes:
        kept = [bytes(whole) for number, whole, _ in files._fields(kind) if number != 1]
        return b"".join([bytes([8, INT64]), *kept])

    return files._changed(value, (2, 1), changed)


def _element(value: memoryview) -> int:
    """The element type of a ValueInfoProto; 0 if it is not a tensor."""
    return next((number for one in files._inside(value, (2, 1)) for number in files._numbers(one, 1)), 0)


def _kind(tensor: memoryview) -> int:
    return next(files._numbers(tensor, 2), 0)


def _strings(attribute: memoryview | None) -> Sequence[str]:
    return [] if attribute is None else [str(bytes(one), "utf-8") for one in files._inside(attribute, (_TEXTS,))]


def _integers(attribute: memoryview | None) -> Sequence[int]:
    found = [] if attribute is None else list(files._numbers(attribute, _INTEGERS))
    return [value - 2**64 if value >= 2**63 else value for value in found]
