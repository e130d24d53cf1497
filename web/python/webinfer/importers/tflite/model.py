"""A TFLite file as plain records, every index, size and number checked: the verifier at the door.

What leaves this module needs no further range check: indices point at something, constants have the
bytes that their shapes need, scales are positive, each tensor has one writer and is written before
it is read. What an operator makes of it is for the converters.
"""

from __future__ import annotations

import math

from webinfer.dtypes import DType
from webinfer.errors import ModelFormatError
from webinfer.graph.ir import Quantization, Sparsity
from webinfer.graph.printer import safe_name
from webinfer.importers.core.limits import (
    MAX_OPERATORS,
    MAX_RANK,
    MAX_SUBGRAPHS,
    MAX_TENSORS,
    check_bytes,
    check_index,
    check_indices,
    within,
)
from webinfer.importers.readers.flatbuffer import Reader, Table
from webinfer.importers.tflite.schema import (
    BLOCKWISE,
    CUSTOM,
    DTYPES,
    OPERATORS,
    OPTIONS,
    OPTIONS_2,
    SCHEMA,
    TENSOR_TYPES,
)
from webinfer.importers.tflite.storage import read_quantization, read_sparsity, stored_elements
from webinfer.lazy_dataclass import dataclass
from webinfer.packing import file_bytes, spread, to_inner


@dataclass(slots=True)
class TensorInfo:
    """One tensor; `data` is None unless it is a constant, `dtype` is None if we lack the type.

    `kind` is the file's element type, which is computed in `dtype`.
    """

    index: int
    name: str
    shape: tuple[int, ...]
    type_name: str
    dtype: DType | None
    data: memoryview | None
    quant: Quantization | None
    sparsity: Sparsity | None
    signature: tuple[int, ...]
    is_variable: bool
    ranked: bool
    blocks: tuple[int, int] = (-1, 0)  # the tensor of their scales, and how many elements of a row share one
    kind: DType | None = None

    def __str__(self) -> str:
        return f"tensor {self.index} {safe_name(self.name)}"


@dataclass(slots=True)
class OperatorInfo:
    """One operator; an absent optional input is -1. `options` is None if the file has none."""

    index: int
    name: str
    custom: bool
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    intermediates: tuple[int, ...]
    options: Table | None
    custom_options: memoryview

    def __str__(self) -> str:
        return f"operator {self.index} {safe_name(self.name)}"


@dataclass(slots=True)
class SubgraphInfo:
    """One subgraph; inputs and outputs are tensors by number."""

    name: str
    tensors: list[TensorInfo]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: list[OperatorInfo]


@dataclass(frozen=True, slots=True)
class SignatureInfo:
    """One way to run a model: a subgraph, and the names of tensors that are its inputs and outputs."""

    subgraph: int
    inputs: dict[int, str]
    outputs: dict[str, int]


def read_signatures(data: memoryview, name: str) -> dict[str, SignatureInfo]:
    """The signatures of a TFLite file by name; `read_subgraphs` checks that what they point at exists.

    Raises:  ModelFormatError; LimitError
    """
    model = Reader(data, name, SCHEMA).root("Model")
    _within("signatures", model.count("signature_defs"), MAX_SUBGRAPHS)
    found = {}
    for table in model.tables("signature_defs"):
        inputs = {entry.number("tensor_index"): entry.text("name") for entry in table.tables("inputs")}
        outputs = {entry.text("name"): entry.number("tensor_index") for entry in table.tables("outputs")}
        found[table.text("signature_key")] = SignatureInfo(table.number("subgraph_index"), inputs, outputs)
    return found


def signature_names(data: memoryview, name: str) -> tuple[str, ...]:
    """The names of the signatures of a TFLite file.

    Raises:  ModelFormatError; LimitError
    """
    return tuple(read_signatures(data, name))


def read_subgraphs(data: memoryview, name: str) -> list[SubgraphInfo]:
    """The subgraphs of a TFLite file; the first is the one that runs.

    Raises:  ModelFormatError naming the place and what was found; LimitError for absurd sizes.
    """
    model = Reader(data, name, SCHEMA).root("Model")
    if model.number("version") != 3:
        raise ModelFormatError(f"{name}: TFLite schema version {model.number('version')}, only version 3 is supported")
    _within("subgraphs", model.count("subgraphs"), MAX_SUBGRAPHS)
    _within("buffers", model.count("buffers"), MAX_TENSORS)
    _within("operator codes", model.count("operator_codes"), MAX_OPERATORS)
    buffers = model.tables("buffers")
    codes = [_read_code(code) for code in model.tables("operator_codes")]
    tables = model.tables("subgraphs")
    _within("tensors", sum(t.count("tensors") for t in tables), MAX_TENSORS)
    _within("operators", sum(t.count("operators") for t in tables), MAX_OPERATORS)
    if not tables:
        raise ModelFormatError(f"{name}: the model has no subgraph, so there is nothing to run")
    views: dict[int, memoryview] = {}
    subgraphs = [_read_subgraph(table, buffers, views, codes) for table in tables]
    _check_extras(model, subgraphs, len(buffers))
    return subgraphs


def _within(what: str, found: int, limit: int) -> None:
    within(f"the model's number of {what}", found, limit)


def _read_code(code: Table) -> tuple[str, bool, int]:
    # Old writers use the int8 field, new ones the int32 field: the larger one counts.
    number = max(code.number("deprecated_builtin_code"), code.number("builtin_code"))
    if number == CUSTOM:
        return code.text("custom_code") or "(unnamed)", True, code.number("version")
    known = 0 <= number < len(OPERATORS)
    return OPERATORS[number] if known else f"BUILTIN_{number}", False, code.number("version")


def _read_subgraph(
    table: Table, buffers: list[Table], views: dict[int, memoryview], codes: list[tuple[str, bool, int]]
) -> SubgraphInfo:
    tensors = [_read_tensor(i, t, buffers, views) for i, t in enumerate(table.tables("tensors"))]
    count = len(tensors)
    inputs = check_indices(table.numbers("inputs"), count, "graph", " input")
    outputs = check_indices(table.numbers("outputs"), count, "graph", " output")
    operators = [_read_operator(i, t, codes, count) for i, t in enumerate(table.tables("operators"))]
    subgraph = SubgraphInfo(table.text("name"), tensors, inputs, outputs, operators)
    _check_order(subgraph)
    return subgraph


def _read_blocks(scales: Table | None) -> tuple[int, int]:
    """The tensor that holds the scales of blocks, and the size of a block; -1 and 0 where there are none."""
    if scales is None or scales.number("details_type") != BLOCKWISE:
        return -1, 0
    details = scales.table("details", "BlockwiseQuantization")
    return (-1, 0) if details is None else (details.number("scales"), details.number("block_size"))


@dataclass(frozen=True, slots=True)
class _Named:
    """A tensor or an operator in error messages, which are few."""

    kind: str
    index: int
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.index} {safe_name(self.name)}"


def _read_tensor(index: int, table: Table, buffers: list[Table], views: dict[int, memoryview]) -> TensorInfo:
    name = table.text("name")
    what = _Named("tensor", index, name)
    code = table.number("type")
    type_name = TENSOR_TYPES[code] if 0 <= code < len(TENSOR_TYPES) else f"type {code}"
    kind = DTYPES.get(code)
    shape = _read_shape(table, what, kind)
    buffer = _checked_buffer(table.number("buffer"), len(buffers), what) if buffers else 0
    data: memoryview | None = None
    if buffers:
        if buffer not in views:
            views[buffer] = _buffer_bytes(buffers[buffer], buffer)
        data = views[buffer] if len(views[buffer]) else None
    scheme = table.table("sparsity")
    layout = read_sparsity(scheme, shape, str(what)) if scheme is not None and data is not None else None
    scales = table.table("quantization")
    if data is None and kind is not None and kind.inner is not kind and kind is not DType.FLOAT64:
        kind = None  # results are not rounded to so few bits
    dtype = None if kind is None else kind.inner
    if data is not None and kind is not None:
        count = stored_elements(layout) if layout else math.prod(shape)
        if len(data) != (needed := file_bytes(kind, count)):
            raise ModelFormatError(
                f"{what}: {type_name} of shape {shape} needs {needed} bytes, its buffer has {len(data)}"
            )
        data = to_inner(spread(data, kind, count), kind)
    quant = read_quantization(scales, shape, dtype, what)
    signature = table.numbers("shape_signature")
    if (
        signature
        and shape
        and signature != shape
        and (len(signature) != len(shape) or any(s not in (-1, d) for s, d in zip(signature, shape, strict=True)))
    ):
        raise ModelFormatError(f"{what}: shape {shape} contradicts its signature {signature}")
    return TensorInfo(
        index, name, shape, type_name, dtype, data, quant, layout, signature,
        table.flag("is_variable"), bool(shape) or table.flag("has_rank"), _read_blocks(scales), kind,
    )  # fmt: skip


def _checked_buffer(number: int, count: int, what: _Named) -> int:
    return number if number < count else check_index(number, count, f"{what}: buffer")


def _read_shape(table: Table, what: _Named, dtype: DType | None) -> tuple[int, ...]:
    shape = table.numbers("shape")
    if len(shape) > MAX_RANK:
        within(f"{what}: rank", len(shape), MAX_RANK, "use tensors of fewer dimensions")
    if shape and min(shape) < 0:
        raise ModelFormatError(f"{what}: shape {shape} has a negative size")
    check_bytes(shape, dtype, what)
    return shape


def _buffer_bytes(table: Table, index: int) -> memoryview:
    data = table.blob("data")
    if len(data):
        return data
    # Models over 2 GB keep their buffers behind the flatbuffer: offset and size count from the file's start.
    offset, size = table.number("offset"), table.number("size")
    if offset <= 1 or not size:  # 1 is a writer's placeholder
        return data
    return _file_range(table.reader, offset, size, f"buffer {index}")


def _file_range(reader: Reader, offset: int, size: int, what: str) -> memoryview:
    if size > reader.size or offset > reader.size - size:
        raise ModelFormatError(
            f"{reader.name}: {what} would be bytes {offset} to {offset + size}, the file has {reader.size}"
        )
    return reader.data[offset : offset + size]


def _read_operator(index: int, table: Table, codes: list[tuple[str, bool, int]], tensors: int) -> OperatorInfo:
    code = table.number("opcode_index")
    if code >= len(codes):
        check_index(code, len(codes), f"operator {index}: opcode_index")
    name, custom, version = codes[code]
    what = _Named("operator", index, name)
    inputs = check_indices(table.numbers("inputs"), tensors, what, ": input", optional=True)
    outputs = check_indices(table.numbers("outputs"), tensors, what, ": output")
    intermediates = check_indices(table.numbers("intermediates"), tensors, what, ": intermediate")
    kind = OPTIONS.get(table.number("builtin_options_type"))
    options = table.table("builtin_options", kind) if kind else None
    if kind_2 := OPTIONS_2.get(table.number("builtin_options_2_type")):
        options = table.table("builtin_options_2", kind_2)
    custom_options = table.blob("custom_options")
    offset, size = table.number("large_custom_options_offset"), table.number("large_custom_options_size")
    if offset > 1 and size and not len(custom_options):
        custom_options = _file_range(table.reader, offset, size, f"{what}: large custom options")
    return OperatorInfo(index, name, custom, version, inputs, outputs, intermediates, options, custom_options)


def _check_order(graph: SubgraphInfo) -> None:
    """One writer for each tensor, none for constants and inputs, and nothing read before it is written."""
    written = bytearray(len(graph.tensors))  # what may be read
    seen: set[int] = set()  # what has a writer
    for tensor in graph.tensors:
        written[tensor.index] = tensor.data is not None or tensor.is_variable or 0 in tensor.shape
    for index in graph.inputs:
        _write(graph.tensors[index], "the graph", seen, written)
    for op in graph.operators:
        for index in op.inputs:
            if index >= 0 and not written[index]:
                raise ModelFormatError(f"{op} reads {graph.tensors[index]}, which nothing has written before")
        for index in op.outputs:
            _write(graph.tensors[index], op, seen, written)
    for index in graph.outputs:
        if not written[index]:
            raise ModelFormatError(f"graph output {graph.tensors[index]} is written by no operator")


def _write(tensor: TensorInfo, writer: object, seen: set[int], written: bytearray) -> None:
    if tensor.data is not None:
        raise ModelFormatError(f"{writer} writes {tensor}, which is a constant; the file is damaged; download it again")
    if tensor.index in seen:
        raise ModelFormatError(f"{writer} writes {tensor}, which is written before; each tensor has one writer")
    seen.add(tensor.index)
    written[tensor.index] = True


def _check_extras(model: Table, subgraphs: list[SubgraphInfo], buffers: int) -> None:
    _within("metadata entries", model.count("metadata"), MAX_TENSORS)
    for k, entry in enumerate(model.tables("metadata")):
        check_index(entry.number("buffer"), buffers, f"metadata {k}: buffer")
    for k, index in enumerate(model.numbers("metadata_buffer")):
        check_index(index, buffers, f"metadata_buffer {k}")
    _within("signatures", model.count("signature_defs"), MAX_SUBGRAPHS)
    for k, signature in enumerate(model.tables("signature_defs")):
        graph = check_index(signature.number("subgraph_index"), len(subgraphs), f"signature {k}: subgraph_index")
        for side in ("inputs", "outputs"):
            _within(f"{side} of signature {k}", signature.count(side), MAX_TENSORS)
            for entry in signature.tables(side):
                check_index(entry.number("tensor_index"), len(subgraphs[graph].tensors), f"signature {k}: tensor_index")
