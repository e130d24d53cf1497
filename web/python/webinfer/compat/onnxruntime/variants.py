"""Models with sequences or sparse tensors at their ends: the engine's inputs and outputs are tensors, so a run gets a
variant of the file that has only those.

- An input sequence becomes one input for each tensor that the run gives, and a SequenceConstruct behind them.
- An output sequence becomes one SequenceAt for each of its tensors; a variant that answers lengths only is run before.
- A sparse input becomes a dense one, and the SparseToDenseMatMul that reads it a Gemm.
- An initializer that the run gives a value becomes an input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import webinfer
from webinfer.compat.onnxruntime import files
from webinfer.compat.onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented, failure
from webinfer.compat.onnxruntime.types import numpy_name, tensor_type
from webinfer.dtypes import DType
from webinfer.lazy_dataclass import dataclass

MAX_SESSIONS = 4  # of one model; each has the weights once
TENSOR, SEQUENCE, _MAP, SPARSE, _OPTIONAL = 1, 4, 5, 8, 9  # of TypeProto
_INT64 = 7  # of TensorProto.DataType


@dataclass(frozen=True)
class End:
    """An input or output as the file has it; "?" is a size of which it says nothing."""

    name: str
    number: int  # of the element type, in onnx.TensorProto
    shape: tuple[int | str, ...]
    form: int  # TENSOR, SEQUENCE, SPARSE
    is_optional: bool = False
    is_ranked: bool = True  # if not, the file says nothing of its sizes, not even how many there are

    @property
    def is_sequence(self) -> bool:
        """Whether it is a list of tensors."""
        return self.form == SEQUENCE

    @property
    def is_sparse(self) -> bool:
        """Whether it is a sparse tensor."""
        return self.form == SPARSE

    @property
    def dtype(self) -> DType:
        """The type of elements. Raises: NotImplemented."""
        if not numpy_name(self.number):
            raise failure(
                NotImplemented, f"{self.name!r} has elements of type {self.number}, which webinfer does not have"
            )
        return DType(numpy_name(self.number))

    @property
    def type(self) -> str:
        """The type in ONNX Runtime's words."""
        plain = tensor_type(self.dtype)
        told = {SEQUENCE: f"seq({plain})", SPARSE: f"sparse_{plain}"}.get(self.form, plain)
        return f"optional({told})" if self.is_optional else told


@dataclass(frozen=True)
class Ends:
    """The inputs, the outputs, and the initializers that a run may give other values."""

    inputs: tuple[End, ...]
    outputs: tuple[End, ...]
    defaults: tuple[End, ...]

    def __bool__(self) -> bool:
        """Whether some input or output is not a plain tensor."""
        return any(end.form != TENSOR or end.is_optional for end in (*self.inputs, *self.outputs))


def ends(model: bytes) -> Ends:
    """What the file declares; maps are left out.

    Raises:  ValueError if the bytes are not an ONNX model
    """
    view = memoryview(model)
    version = next(files._numbers(view, 1), 0)
    found: dict[int, list[End]] = {files.INPUT: [], files.OUTPUT: []}
    initializers = set()
    for graph in files._inside(view, (files.GRAPH,)):
        for number, _, inside in files._fields(graph):
            if number == files.INITIALIZER:
                initializers.add(files._text(inside, files.TENSOR_NAME))
            elif number in found and (end := _end(inside)):
                found[number].append(end)
    inputs = tuple(end for end in found[files.INPUT] if end.name not in initializers)
    # before version 4 of the format every initializer was listed among the inputs, and none could be given
    defaults = tuple(end for end in found[files.INPUT] if end.name in initializers) if version >= 4 else ()
    return Ends(inputs, tuple(found[files.OUTPUT]), defaults)


def _end(value: memoryview) -> End | None:
    name = files._text(value, 1)
    for kind in files._inside(value, (2,)):
        form, part, is_optional = _form(kind)
        if form in (TENSOR, SEQUENCE, SPARSE):
            sizes = tuple(_size(one) for one in files._inside(part, (2, 1))) if form != SEQUENCE else ()
            is_ranked = any(True for _ in files._inside(part, (2,)))
            return End(name, next(files._numbers(part, 1), 0), sizes, form, is_optional, is_ranked)
    return None


def _form(kind: memoryview) -> tuple[int, memoryview, bool]:
    """The form of a TypeProto without "optional", the type of its tensors, and whether it was optional."""
    for number, _, inside in files._fields(kind):
        if number == _OPTIONAL:
            form, part, _ = next((_form(one) for one in files._inside(inside, (1,))), (0, inside, False))
            return form, part, True
        if number == SEQUENCE:
            return SEQUENCE, next(files._inside(inside, (1, 1)), inside[:0]), False
        if number in (TENSOR, SPARSE):
            return number, inside, False
    return 0, kind, False


def _size(dimension: memoryview) -> int | str:
    return next(files._numbers(dimension, 1), None) or files._text(dimension, 2) or "?"


class Variants:
    """The sessions of one model, by what its runs give; to its user it is one session."""

    def __init__(
        self, name: str, model: bytes, beside: Mapping[str, bytes], known: Ends, load: Callable[[Any], Any]
    ) -> None:
        self._name, self._model, self._beside, self._load = name, model, beside, load
        self._known = known
        self._sessions: dict[Any, Any] = {}
        self.inputs, self.outputs = known.inputs, known.outputs
        self.metadata = {
            files._text(one, 1): files._text(one, 2) for one in files._inside(memoryview(model), (14,))
        }  # fmt: skip

    def run(self, feed: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs: tensors, and lists of tensors."""
        counts = {end.name: len(feed[end.name]) for end in self.inputs if end.is_sequence}
        given = frozenset(end.name for end in self._known.defaults if end.name in feed)
        flat: dict[str, Any] = {}
        for name, value in feed.items():
            flat |= {_part(name, i): one for i, one in enumerate(value)} if name in counts else {name: value}
        lengths: dict[str, int] = {}
        if any(end.is_sequence for end in self.outputs):
            told = self._session(counts, given, None).run(flat)
            lengths = {end.name: int(told[_length(end)].tolist()[0]) for end in self.outputs if end.is_sequence}
        found = {}
        if any(lengths.get(end.name, 1) for end in self.outputs):
            found = self._session(counts, given, lengths).run(flat)
        return {
            end.name: [found[_part(end.name, i)] for i in range(lengths[end.name])]
            if end.is_sequence else found[end.name]
            for end in self.outputs
        }  # fmt: skip

    def _session(self, counts: Mapping[str, int], given: frozenset[str], lengths: Mapping[str, int] | None) -> Any:
        key = (tuple(counts.items()), given, None if lengths is None else tuple(lengths.items()))
        if key not in self._sessions:
            while len(self._sessions) >= MAX_SESSIONS:
                self._sessions.pop(next(iter(self._sessions))).close()
            model = _variant(self._model, self._known, counts, given, lengths)
            self._sessions[key] = self._load({self._name: model, **self._beside} if self._beside else model)
        else:
            self._sessions[key] = self._sessions.pop(key)  # the last is the newest
        return self._sessions[key]

    def profile(self, rounds: int) -> Any:
        """The profile of the variant that ran last.

        Raises:  InputError if none has run
        """
        if not self._sessions:
            raise webinfer.InputError("no run has told how many tensors the model's sequences have")
        return next(reversed(self._sessions.values())).profile(rounds=rounds)

    def close(self) -> None:
        """Closes all sessions."""
        while self._sessions:
            self._sessions.popitem()[1].close()


def _part(name: str, i: int) -> str:
    return f"{name}[{i}]"


def _length(end: End) -> str:
    return f"{end.name}[length]"


def _variant(
    model: bytes, known: Ends, counts: Mapping[str, int], given: frozenset[str], lengths: Mapping[str, int] | None
) -> bytes:
    """The file with tensors for ends; without `lengths` its outputs are the lengths of output sequences."""

    def changed(graph: memoryview) -> bytes:
        parts = [*_heads(known, counts)]
        for number, whole, inside in files._fields(graph):
            if number == files.INPUT:
                parts.extend(_inputs(inside, known, counts))
            elif number == files.NODE:
                parts.append(files._field(number, _node(inside)))
            elif number not in (files.OUTPUT, files.INITIALIZER) or (
                number == files.INITIALIZER and files._text(inside, files.TENSOR_NAME) not in given
            ):
                parts.append(bytes(whole))
        parts.extend(part for end in known.outputs for part in _outputs(end, lengths))
        return b"".join(parts)

    return files._changed(memoryview(model), (files.GRAPH,), changed)


def _heads(known: Ends, counts: Mapping[str, int]) -> Iterator[bytes]:
    """Nodes that make the input sequences."""
    for end in known.inputs:
        if end.is_sequence and counts[end.name]:
            yield _made("SequenceConstruct", [_part(end.name, i) for i in range(counts[end.name])], end.name)
        elif end.is_sequence:
            yield _made("SequenceEmpty", [], end.name, files._integer("dtype", end.number))


def _inputs(value: memoryview, known: Ends, counts: Mapping[str, int]) -> Iterator[bytes]:
    end = next((end for end in (*known.inputs, *known.defaults) if end.name == files._text(value, 1)), None)
    if end is None:
        raise failure(NotImplemented, f"input {files._text(value, 1)!r}: webinfer takes tensors and sequences of them")
    part = next(_form(kind)[1] for kind in files._inside(value, (2,)))
    names = [_part(end.name, i) for i in range(counts[end.name])] if end.is_sequence else [end.name]
    for name in names:
        kind = files._field(TENSOR, bytes(part))
        yield files._field(files.INPUT, files._field(1, name.encode()) + files._field(2, kind))


def _outputs(end: End, lengths: Mapping[str, int] | None) -> Iterator[bytes]:
    """The declarations of an output's tensors, and the nodes that take them out of a sequence."""
    if lengths is None:
        if end.is_sequence:
            yield _made("SequenceLength", [end.name], _length(end))
            yield _declared(_length(end), _INT64)
        return
    if not end.is_sequence:
        yield _declared(end.name, end.number)
        return
    for i in range(lengths[end.name]):
        place = f"{_part(end.name, i)} place"
        number = b"\x10" + files._varint(_INT64) + files._field(files.TENSOR_NAME, place.encode())
        yield files._field(files.INITIALIZER, number + files._field(files.RAW_DATA, i.to_bytes(8, "little")))
        yield _made("SequenceAt", [end.name, place], _part(end.name, i))
        yield _declared(_part(end.name, i), end.number)


def _declared(name: str, number: int) -> bytes:
    kind = files._field(TENSOR, b"\x08" + files._varint(number))
    return files._field(files.OUTPUT, files._field(1, name.encode()) + files._field(2, kind))


def _made(kind: str, inputs: list[str], output: str, attribute: bytes = b"") -> bytes:
    """A node of a graph, with its field."""
    parts = [*(files._field(1, name.encode()) for name in inputs), files._field(2, output.encode())]
    parts += [files._field(4, kind.encode()), *([files._field(5, attribute)] if attribute else [])]
    return files._field(files.NODE, b"".join(parts))


def _node(node: memoryview) -> bytes:
    """A node that reads dense tensors."""
    if files._text(node, 4) != "SparseToDenseMatMul":
        return bytes(node)
    kept = b"".join(bytes(whole) for number, whole, _ in files._fields(node) if number not in (4, 7))
    return kept + files._field(4, b"Gemm")  # alpha, transA and transB have the same names there
