"""One TFLite operator on its way into the graph: what converters see and say."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from webinfer.dtypes import DType
from webinfer.errors import LimitError, ModelFormatError
from webinfer.graph.ir import Constant, Graph, Node, Op, Quantization, TensorType, Value, apply
from webinfer.graph.printer import safe_name
from webinfer.importers.tflite.folding import fold
from webinfer.importers.tflite.model import OperatorInfo, SubgraphInfo, check_bytes, check_index
from webinfer.importers.tflite.schema import ACTIVATIONS, SCHEMA
from webinfer.ops import elementwise as ew
from webinfer.ops import movement
from webinfer.ops.activation import Activation

MAX_NODES = 200_000
MAX_CONVERTED = 200_000  # operators, each turn of a loop counted
MAX_DEPTH = 8  # of loops and branches
MAX_FOLDED = 200_000  # elements that may be computed while importing one model
QUANTIZED = (DType.INT8, DType.UINT8, DType.INT16)
_ACTIVATIONS = {
    "NONE": Activation.NONE, "RELU": Activation.RELU, "RELU6": Activation.RELU6,
    "RELU_N1_TO_1": Activation.RELU_N1_TO_1, "TANH": Activation.TANH,
}  # fmt: skip


class Refusal(Exception):
    """A converter cannot say this operator in the IR; `reasons` says why."""

    def __init__(self, *reasons: str) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = reasons


@dataclass(slots=True)
class Model:
    """What is shared while one model is read: its subgraphs, the graph so far, and what may still be done."""

    subgraphs: list[SubgraphInfo]
    graph: Graph
    run: Callable[[Model, int, list[Value]], list[Value]]  # converts a subgraph with these inputs
    folding_left: int = MAX_FOLDED
    operators_left: int = MAX_CONVERTED
    depth: int = 0
    constants: dict[int, dict[int, Value]] = field(default_factory=dict)  # by subgraph and tensor


@dataclass(slots=True)
class Conversion:
    """One subgraph on its way into the graph, with the value of each of its tensors."""

    model: Model
    number: int
    values: list[Value | None]

    @property
    def subgraph(self) -> SubgraphInfo:
        return self.model.subgraphs[self.number]


class Operation:
    """An operator with its inputs as values. Converters build nodes with `emit` and return the outputs."""

    __slots__ = ("_conversion", "_first", "_kind", "_values", "info", "tensors")

    def __init__(self, info: OperatorInfo, conversion: Conversion, kind: str) -> None:
        self.info, self.tensors = info, conversion.subgraph.tensors
        self._conversion, self._values, self._kind = conversion, conversion.values, kind
        self._first = len(conversion.model.graph.nodes)

    # ---- inputs

    @property
    def count(self) -> int:
        """How many inputs are listed, absent ones included."""
        return len(self.info.inputs)

    def optional(self, i: int) -> Value | None:
        """Input i, or None if it is absent."""
        if i >= self.count or self.info.inputs[i] < 0:
            return None
        index = self.info.inputs[i]
        tensor = self.tensors[index]
        if tensor.dtype is None:
            self.refuse(f"input {i} has type {tensor.type_name}")
        value = self._values[index]
        if value is None:
            if tensor.is_variable:
                self.refuse(f"input {i} is a variable that lives from run to run")
            data = tensor.data if tensor.data is not None else memoryview(b"")
            known = self._conversion.model.constants.setdefault(self._conversion.number, {})
            if index not in known:
                kind = TensorType(tensor.shape, tensor.dtype, tensor.quant)
                known[index] = Value(tensor.name, kind, Constant(data, tensor.dtype, tensor.sparsity))
            value = self._values[index] = known[index]
        return value

    def value(self, i: int) -> Value:
        """Input i, which must be there."""
        value = self.optional(i)
        if value is None:
            raise ModelFormatError(f"{self.info}: input {i} is missing; {self.count} are listed")
        return value

    def values(self) -> list[Value]:
        """All inputs."""
        return [self.value(i) for i in range(self.count)]

    def integers(self, i: int) -> tuple[int, ...]:
        """The numbers of input i, which must be known now, small and whole: a shape, axes, sizes."""
        numbers = self._constants(i)
        dtype = self.value(i).type.dtype
        if dtype.is_float or dtype is DType.BOOL:
            raise ModelFormatError(f"{self.info}: input {i} is {dtype}, needs integers")
        return numbers

    def integer(self, i: int) -> int:
        """The only number of input i, a whole one."""
        return int(self._single(i, self.integers(i)))

    def scalar(self, i: int) -> int | float | bool:
        """The only number of input i, of any type."""
        number: int | float | bool = self._single(i, self._constants(i))
        return number

    def _single(self, i: int, numbers: tuple[Any, ...]) -> Any:
        if len(numbers) != 1:
            raise ModelFormatError(f"{self.info}: input {i} holds {len(numbers)} numbers, needs one")
        return numbers[0]

    def _constants(self, i: int) -> tuple[Any, ...]:
        value = self.value(i)
        if value.constant is None:
            self.refuse(f"input {i} is computed at run time; shapes, axes and sizes must be constants")
        if value.type.size > 65536 or value.constant.sparsity is not None:
            self.refuse(f"input {i} of {value.type} is too large for a shape, an axis or a size")
        return value.numbers()

    def axes(self, i: int, rank: int) -> tuple[int, ...]:
        """The numbers of input i as axes from 0, each once."""
        return tuple(dict.fromkeys(self.axis(a, rank) for a in self.integers(i)))

    def axis(self, axis: int, rank: int) -> int:
        """An axis counted from 0, as -1 is the last."""
        if not -rank <= axis < rank:
            raise ModelFormatError(f"{self.info}: axis {axis} is not one of {rank} axes")
        return axis % rank

    # ---- options

    def number(self, name: str) -> int:
        """An integer option; its default if the file has no options for this operator."""
        table = self._options()
        return int(SCHEMA[self._kind][name].default) if table is None else int(table.number(name))

    def real(self, name: str) -> float:
        """A float option, which must be finite."""
        table = self._options()
        value = float(SCHEMA[self._kind][name].default) if table is None else float(table.real(name))
        if not math.isfinite(value):
            raise ModelFormatError(f"{self.info}: {name} is {value}, must be a finite number")
        return value

    def flag(self, name: str) -> bool:
        """A boolean option."""
        table = self._options()
        return bool(SCHEMA[self._kind][name].default) if table is None else bool(table.flag(name))

    def vector(self, name: str) -> tuple[int, ...]:
        """A vector option."""
        table = self._options()
        return () if table is None else table.numbers(name)

    def _options(self) -> Any:
        table = self.info.options
        return table if table is not None and table.kind == self._kind else None

    def activation(self, allowed: Sequence[Activation] | None = None) -> Activation:
        """The fused activation; refuses those that the operator of the IR does not carry."""
        code = self.number("fused_activation_function")
        name = ACTIVATIONS[code] if 0 <= code < len(ACTIVATIONS) else f"number {code}"
        activation = _ACTIVATIONS.get(name)
        if activation is None or (allowed is not None and activation not in allowed):
            self.refuse(f"fused activation {name}")
        return activation

    # ---- outputs

    @property
    def output_count(self) -> int:
        return len(self.info.outputs)

    def declared(self, i: int = 0) -> TensorType:
        """The type that the file gives output i. Its shape is only a hint."""
        if i >= self.output_count:
            raise ModelFormatError(f"{self.info}: output {i} is missing; {self.output_count} are listed")
        tensor = self.tensors[self.info.outputs[i]]
        if tensor.dtype is None:
            self.refuse(f"output {i} has type {tensor.type_name}")
        return TensorType(tensor.shape, tensor.dtype, tensor.quant)

    def out_type(self, i: int = 0) -> tuple[DType, Quantization | None] | None:
        """What `out_type` of the attributes must say: None unless output i is quantised."""
        declared = self.declared(i)
        if declared.dtype not in QUANTIZED:
            return None
        if declared.quant is None:
            raise ModelFormatError(f"{self.info}: output {i} is {declared.dtype} and has no scale")
        return declared.dtype, declared.quant

    def quantized(self, value: Value) -> bool:
        """Whether the value is quantised; an int8, uint8 or int16 operand without a scale is an error."""
        if value.type.dtype not in QUANTIZED:
            return False
        if value.type.quant is None:
            raise ModelFormatError(f"{self.info}: {safe_name(value.name)} is {value.type.dtype} and has no scale")
        return True

    def emit(self, op: Op, inputs: Sequence[Value | None], attrs: Any) -> Value:
        """The only result of a new node."""
        (value,) = self.emit_all(op, inputs, attrs)
        return value

    def emit_all(self, op: Op, inputs: Sequence[Value | None], attrs: Any) -> list[Value]:
        """The results of a new node; small integer work on constants is done at once."""
        stem = self.tensors[self.info.outputs[0]].name if self.info.outputs else self.info.name
        # `_bind` renames what becomes a tensor of the file; the names of steps in between stay as they are here
        node: Node = apply(op, inputs, attrs, label=safe_name(stem), name=f"{stem}/{op.name}")
        for value in node.outputs:
            check_bytes(value.type.shape, value.type.dtype, f"{self.info}: result")
        model = self._conversion.model
        if model.folding_left > 0:
            folded = fold(node)
            if folded is not None:
                model.folding_left -= folded.type.size + 1
                return [folded]
        if len(model.graph.nodes) >= MAX_NODES:
            raise LimitError(f"{self.info}: nodes of the graph", MAX_NODES + 1, MAX_NODES, "use a smaller model")
        model.graph.nodes.append(node)
        return node.outputs

    def made(self) -> set[Value]:
        """The results of all nodes that this operator emitted."""
        return {value for node in self._conversion.model.graph.nodes[self._first :] for value in node.outputs}

    def run(self, option: str, inputs: list[Value]) -> list[Value]:
        """The outputs of the subgraph that an option names, with these inputs."""
        model, number = self._conversion.model, self.number(option)
        check_index(number, len(model.subgraphs), f"{self.info}: {option}")
        if len(inputs) != len(model.subgraphs[number].inputs):
            raise ModelFormatError(
                f"{self.info}: {len(inputs)} values, subgraph {number} has {len(model.subgraphs[number].inputs)} inputs"
            )
        if model.depth >= MAX_DEPTH:
            raise LimitError(
                f"{self.info}: depth of loops and branches", MAX_DEPTH + 1, MAX_DEPTH, "use a simpler model"
            )
        model.depth += 1
        try:
            return model.run(model, number, inputs)
        finally:
            model.depth -= 1

    def refuse(self, reason: str) -> NoReturn:
        """Ends the conversion of this operator."""
        raise Refusal(reason)

    # ---- building blocks

    def constant(self, numbers: Sequence[float], dtype: DType, shape: tuple[int, ...] | None = None) -> Value:
        """A new constant, of rank 1 unless a shape is given."""
        shape = (len(numbers),) if shape is None else shape
        packed = struct.pack(f"<{len(numbers)}{dtype.letter}", *numbers)
        return Value("constant", TensorType(shape, dtype), Constant(memoryview(packed), dtype))

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        """x with another shape; x itself if it has it already."""
        if x.type.shape == tuple(shape):
            return x
        return self.emit(movement.RESHAPE, [x], movement.ReshapeAttrs(tuple(shape)))

    def as_float(self, x: Value) -> Value:
        """x in float32: float16 and quantised values pass through DEQUANTIZE."""
        if x.type.dtype is DType.FLOAT32:
            return x
        if x.type.dtype is not DType.FLOAT16:
            self.quantized(x)
        return self.emit(ew.DEQUANTIZE, [x], ew.CastAttrs(DType.FLOAT32))

    def in_float(self, compute: Callable[[list[Value]], Value], inputs: list[Value]) -> Value:
        """`compute` on the inputs in float32, brought back to the declared type if that is quantised."""
        y = compute([self.as_float(x) if x.type.dtype in QUANTIZED else x for x in inputs])
        out = self.out_type()
        return y if out is None else self.emit(ew.QUANTIZE, [y], ew.CastAttrs(*out))


Convert = Callable[[Operation], Value | Sequence[Value]]
Row = tuple[Convert, str]  # the converter and the name of its options' table, "" if it has none
