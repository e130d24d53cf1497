"""One TFLite operator: inputs are tensors by number, options are fields of a table, results have declared types."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from webinfer.dtypes import DType
from webinfer.graph.ir import Constant, Quantization, TensorType, Value
from webinfer.importers.core.geometry import check_window, image_pads
from webinfer.importers.core.limits import check_index
from webinfer.importers.core.operation import BaseOperation
from webinfer.importers.core.operation import Convert as ConvertAny
from webinfer.importers.core.spectral import Complex
from webinfer.importers.core.steps import CLAMPS, QUANTIZED
from webinfer.importers.core.writer import GraphWriter
from webinfer.importers.tflite.model import OperatorInfo, SubgraphInfo, TensorInfo
from webinfer.importers.tflite.schema import ACTIVATIONS, PADDINGS, SCHEMA
from webinfer.lazy_dataclass import dataclass
from webinfer.ops import movement as mv
from webinfer.ops.activation import Activation
from webinfer.ops.dynamic_range import ROUND_ROWS, RoundRowsAttrs

_ACTIVATIONS = {
    "NONE": Activation.NONE, "RELU": Activation.RELU, "RELU6": Activation.RELU6,
    "RELU_N1_TO_1": Activation.RELU_N1_TO_1, "TANH": Activation.TANH,
}  # fmt: skip


_INT32 = 2  # of the schema's TensorType
_TAKE_HANDLES = ("READ_VARIABLE", "ASSIGN_VARIABLE", "WHILE", "IF", "STABLEHLO_COMPOSITE", "output")

_TAKE_COMPLEX = ("COMPLEX_ABS", "EXPAND_DIMS", "IMAG", "REAL", "RESHAPE", "SQUEEZE")


class Handle(Value):
    """Stands for a resource variable, whose name it has, where operators pass it on."""

    def __init__(self, name: str) -> None:
        super().__init__(name, TensorType((), DType.INT32), Constant(memoryview(bytes(4)), DType.INT32))


@dataclass(slots=True)
class Model:
    """What is shared while one model is read: its subgraphs, the graph so far, and its resource variables."""

    subgraphs: list[SubgraphInfo]
    writer: GraphWriter
    run: Callable[[Model, int, list[Value]], list[Value]]  # converts a subgraph with these inputs
    constants: dict[int, dict[int, Value]] = field(default_factory=dict)  # by subgraph and tensor
    assigned: frozenset[str] = frozenset()  # resource variables that runs may change
    initial: dict[str, Value] = field(default_factory=dict)  # what variables hold before the first run
    initializing: bool = False  # whether what is converted runs once only
    tensor_variables: dict[tuple[int, int], str] = field(default_factory=dict)  # names, by subgraph and tensor


@dataclass(slots=True)
class Conversion:
    """One subgraph on its way into the graph, with the values of its tensors so far."""

    model: Model
    number: int
    values: dict[int, Value] = field(default_factory=dict)

    @property
    def subgraph(self) -> SubgraphInfo:
        """What the file says."""
        return self.model.subgraphs[self.number]


class Operation(BaseOperation):
    """A TFLite operator with its inputs as values; `kind` is the table of its options, "" if it has none."""

    __slots__ = ("_conversion", "_kind", "info", "tensors")

    def __init__(self, info: OperatorInfo, conversion: Conversion, kind: str) -> None:
        writer = conversion.model.writer
        super().__init__(writer, conversion.values, info.name, info.index, info.inputs, info.outputs)
        self.info, self.tensors = info, conversion.subgraph.tensors
        self._conversion, self._kind = conversion, kind

    # ---- inputs

    @property
    def count(self) -> int:
        """How many inputs are listed, absent ones included."""
        return len(self.info.inputs)

    def optional(self, key: int) -> Value | None:
        """Input number `key`, or None if it is absent."""
        if key >= self.count or self.info.inputs[key] < 0:
            return None
        index = self.info.inputs[key]
        tensor = self.tensors[index]
        if isinstance(held := self.scope.get(index), Handle):
            if self.name not in _TAKE_HANDLES:
                self.fail(f"input {key} is a variable's handle, needs a tensor")
            return held
        if isinstance(held, Complex) and self.name in _TAKE_COMPLEX:
            return held
        if tensor.dtype is None:
            self.refuse(f"input {key} has type {tensor.type_name}")
        if tensor.is_variable:
            return self._tensor_variable(tensor, tensor.dtype, tensor.shape)
        if index not in self.scope:
            self.scope[index] = self._constant(tensor, tensor.dtype)
        return self.scope[index]

    def _constant(self, tensor: TensorInfo, dtype: DType) -> Value:
        """A constant of the file: one value, however often its subgraph is converted."""
        known = self._conversion.model.constants.setdefault(self._conversion.number, {})
        if tensor.index not in known:
            data = tensor.data if tensor.data is not None else memoryview(b"")
            kind = TensorType(tensor.shape, dtype, tensor.quant)
            known[tensor.index] = Value(tensor.name, kind, Constant(data, dtype, tensor.sparsity))
        return known[tensor.index]

    # ---- variables

    @property
    def model(self) -> Model:
        """What is shared while this model is read."""
        return self._conversion.model

    def state(self, key: int, shape: Sequence[int]) -> Value | None:
        """What input number `key` holds from run to run, in a shape that suits the layer; None if it keeps no state."""
        index = self.info.inputs[key] if key < self.count else -1
        if index < 0:
            return None
        tensor = self.tensors[index]
        if not tensor.is_variable or tensor.dtype is None:
            self.refuse(f"a state (input {key}) that is given from outside")
        return self._tensor_variable(tensor, tensor.dtype, tuple(shape))

    def _tensor_variable(self, tensor: TensorInfo, dtype: DType, shape: tuple[int, ...]) -> Value:
        """What a tensor holds that operators of one subgraph keep from run to run; zeros before the first."""
        if tensor.data is not None:
            self.refuse(f"{tensor}, a variable with data")
        kind = TensorType(shape, dtype, tensor.quant)
        zero = tensor.quant.zero_points[0] if dtype is DType.INT8 and tensor.quant is not None else 0
        data = memoryview(bytes([zero & 255]) * kind.nbytes)
        return self.writer.variables.read(self._variable_name(tensor), kind, data)

    def _variable_name(self, tensor: TensorInfo) -> str:
        known, key = self.model.tensor_variables, (self._conversion.number, tensor.index)
        if key not in known:
            name = tensor.name or f"variable {tensor.index}"
            known[key] = f"{name} {key}" if name in known.values() or key[0] else name
        return known[key]

    def keep(self, key: int, value: Value) -> None:
        """Makes a value the next one of input number `key`, whose `state` was asked for before; else does nothing."""
        index = self.info.inputs[key] if key < self.count else -1
        if index < 0:
            return
        name = self._variable_name(self.tensors[index])
        kind = self.writer.variables.type(name)
        if kind is None or (value.type.shape, value.type.dtype) != (kind.shape, kind.dtype):
            self.fail(f"its state is {kind}, the next one {value.type}")
        self.writer.variables.write(name, value, None)

    # ---- options

    def number(self, name: str) -> int:
        """An integer option; its default if the file has no options for this operator."""
        table = self._options()
        return int(SCHEMA[self._kind][name].default) if table is None else int(table.number(name))

    def positive(self, *names: str) -> tuple[int, ...]:
        """Options of a window: strides, dilations, sizes."""
        return check_window(self, {name: self.number(name) for name in names})

    def real(self, name: str) -> float:
        """A float option, which must be finite."""
        table = self._options()
        return self.finite(name, float(SCHEMA[self._kind][name].default) if table is None else table.real(name))

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
        """The fused activation; refuses those that the operator of the graph does not carry."""
        code = self.number("fused_activation_function")
        name = ACTIVATIONS[code] if 0 <= code < len(ACTIVATIONS) else f"number {code}"
        activation = _ACTIVATIONS.get(name)
        if activation is None or (allowed is not None and activation not in allowed):
            self.refuse(f"fused activation {name}")
        return activation

    def fused_clamp(self) -> Activation:
        """The fused activation of an operator whose kernels clamp alone: LiteRT leaves TANH and SIGN_BIT out there."""
        code = self.number("fused_activation_function")
        return (
            Activation.NONE if ACTIVATIONS[code : code + 1] in (("TANH",), ("SIGN_BIT",)) else self.activation(CLAMPS)
        )

    # ---- outputs

    @property
    def output_count(self) -> int:
        """How many outputs are listed."""
        return len(self.info.outputs)

    def name_of(self, key: int) -> str:
        """The name of a tensor."""
        return self.tensors[key].name

    def declared(self, i: int = 0) -> TensorType:
        """The type that the file gives output i. Its shape is only a hint."""
        if i >= self.output_count:
            self.fail(f"output {i} is missing; {self.output_count} are listed")
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
            self.fail(f"output {i} is {declared.dtype} and has no scale")
        return declared.dtype, declared.quant

    def accept(self, i: int, value: Value) -> None:
        """Nothing, if the value has output i's type; operators that only move elements must not change the scale."""
        if isinstance(value, (Complex, Handle)):
            return
        declared = self.declared(i)
        if value.type.dtype is not declared.dtype:
            self.fail(f"output {i} is declared {declared.dtype}, its inputs make {value.type.dtype}")
        mine, theirs = value.type.quant, declared.quant
        if declared.dtype not in QUANTIZED or mine is None or theirs is None or mine == theirs:
            return
        same = len(mine.scales) == len(theirs.scales) and mine.zero_points == theirs.zero_points
        if not same or not all(
            math.isclose(p, q, rel_tol=1e-5) for p, q in zip(mine.scales, theirs.scales, strict=True)
        ):
            self.refuse("an output whose scale differs from its input's")

    def stand_in(self, key: int) -> Value:
        """A value of a tensor's declared type."""
        return declared_value(self.tensors[key])

    # ---- what several families read alike

    def weights(self, key: int, x: Value) -> Value:
        """Weights in the type that x needs: beside a float x, quantised or float16 weights become float."""
        w = self.value(key)
        if x.type.dtype is DType.FLOAT32:
            return self.float_weights(key)
        if not self.quantized(x):
            self.refuse(f"x of type {x.type.dtype}")
        self.quantized(w)
        return w

    def float_weights(self, key: int) -> Value:
        """Weights in float32."""
        return self.as_float(_signed(self.value(key)))

    def rounded(self, x: Value, key: int, axes: int, symmetric: bool = False) -> Value:
        """x in levels of 8 bits a row, if it is float beside 8-bit weights; the first `axes` axes number the rows.

        Files of before 2019, whose weights are declared uint8, mean symmetric levels.
        """
        levels = self.levels(x, key, symmetric)
        return x if levels is None else self.emit(ROUND_ROWS, [x], RoundRowsAttrs(axes, levels))

    def levels(self, x: Value, key: int, symmetric: bool) -> bool | None:
        """Whether the levels that x is rounded to beside weights number `key` are symmetric; None if it is not."""
        w = self.value(key)
        if x.type.dtype is not DType.FLOAT32 or w.constant is None or w.type.dtype not in (DType.INT8, DType.UINT8):
            return None
        return symmetric or w.type.dtype is DType.UINT8

    def bias(self, key: int, x: Value, channels: int = 0) -> Value | None:
        """The bias as one row, in the type that x needs.

        Beside 16-bit data zeros of int32 stand for none where the file asks for sums of 32 bits.
        """
        bias = self.optional(key)
        if bias is None:
            narrow = "quantized_bias_type" in SCHEMA[self._kind] and self.number("quantized_bias_type") == _INT32
            return self.zeros((channels,), DType.INT32) if narrow and x.type.dtype is DType.INT16 else None
        if x.type.dtype is DType.FLOAT32:
            bias = self.as_float(bias)
        elif bias.type.dtype not in (DType.INT32, DType.INT64):
            self.fail(f"bias is {bias.type.dtype}, needs int32 or int64 beside {x.type.dtype}")
        return self.reshape(bias, (bias.type.size,))

    def same(self) -> bool:
        """Whether the option `padding` says SAME, not VALID."""
        code = self.number("padding")
        if not 0 <= code < len(PADDINGS):
            self.fail(f"padding is {code}, must be 0 (SAME) or 1 (VALID)")
        return PADDINGS[code] == "SAME"

    def pads(
        self, x: Value, window: Sequence[int], stride: Sequence[int], dilation: Sequence[int] = (1, 1)
    ) -> tuple[int, int, int, int]:
        """Padding above, below, left and right of x."""
        if x.type.rank != 4:
            self.fail(f"x has shape {x.type.shape}, needs rank 4")
        return image_pads(x.type.shape, window, stride, dilation) if self.same() else (0, 0, 0, 0)

    def without_windows(
        self, x: Value, window: Sequence[int], stride: Sequence[int], dilation: Sequence[int] = (), channels: int = 0
    ) -> Value | None:
        """The empty result of VALID windows that do not fit into x; None where they do. Pools have no `channels`.

        Source:  tensorflow v2.18.0, lite/kernels/padding.h, ComputeOutSize
        """
        if self.same() or x.type.rank != len(window) + 2:
            return None
        reaches = [(k - 1) * d + 1 for k, d in zip(window, dilation or (1,) * len(window), strict=True)]
        beyond = [size - reach for size, reach in zip(x.type.shape[1:-1], reaches, strict=True)]
        if min(beyond) >= 0:
            return None
        if channels and any(more <= -2 * step for more, step in zip(beyond, stride, strict=True)):
            self.fail(f"windows of {tuple(window)} do not fit x {x.type.shape}")
        sizes = [max(more // step + 1, 0) for more, step in zip(beyond, stride, strict=True)]
        dtype, quant = self.out_type() or (x.type.dtype, x.type.quant)
        return self.empty((x.type.shape[0], *sizes, channels or x.type.shape[-1]), dtype, quant)

    def in_shape(self, x: Value, shape: tuple[int, ...]) -> Value:
        """x in another shape, complex or not, as a new node."""
        if isinstance(x, Complex):
            return Complex(self.in_shape(x.real, shape), self.in_shape(x.imaginary, shape))
        return self.emit(mv.RESHAPE, [x], mv.ReshapeAttrs(shape))

    # ---- subgraphs

    def run(self, option: str, inputs: list[Value]) -> list[Value]:
        """The outputs of the subgraph that an option names, with these inputs."""
        model, number = self._conversion.model, self.number(option)
        check_index(number, len(model.subgraphs), f"{self.what}: {option}")
        wanted = len(model.subgraphs[number].inputs)
        if len(inputs) != wanted:
            self.fail(f"{len(inputs)} values, subgraph {number} has {wanted} inputs")
        with self.writer.nested(self.what):
            return model.run(model, number, inputs)


def declared_value(tensor: TensorInfo) -> Value:
    """A new value of the type that the file gives a tensor; float32 if we lack its type."""
    kind = TensorType(tensor.shape) if tensor.dtype is None else TensorType(tensor.shape, tensor.dtype, tensor.quant)
    return Value(tensor.name, kind)


def _signed(weights: Value) -> Value:
    """Weights beside a float x, where files of before 2019 write uint8 and mean int8 with zero point 0.

    Source:  tensorflow v2.18.0, lite/kernels/conv.cc and internal/kernel_utils: hybrid kernels read the bytes as int8
    """
    constant, quant = weights.constant, weights.type.quant
    if weights.type.dtype is not DType.UINT8 or constant is None or quant is None:
        return weights
    kind = TensorType(weights.type.shape, DType.INT8, Quantization(quant.scales, (0,) * len(quant.scales), quant.axis))
    return Value(weights.name, kind, Constant(constant.data, DType.INT8, constant.sparsity))


Convert = ConvertAny[Operation]
Row = tuple[Convert, str]  # the converter and the name of its options' table, "" if it has none
