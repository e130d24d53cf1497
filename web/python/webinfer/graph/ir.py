"""Values, nodes, graphs: NHWC, static shapes, one writer per value, nodes in topological order."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import Any

from webinfer.dtypes import DType
from webinfer.errors import ShapeError
from webinfer.graph.dims import has_size, hint_of, tracing
from webinfer.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Quantization:
    """Affine quantisation: real = scale * (stored - zero_point).

    `axis` is None for one scale, else the dimension that the scales run along.
    """

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int | None = None


@dataclass(frozen=True, slots=True)
class TensorType:
    """Shape, element type and, for quantised tensors, the scale."""

    shape: tuple[int, ...]
    dtype: DType = DType.FLOAT32
    quant: Quantization | None = None

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of a dense tensor of this type."""
        return self.size * self.dtype.itemsize

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def __str__(self) -> str:
        dims = "x".join(map(str, self.shape)) or "scalar"
        if self.quant is None:
            return f"{self.dtype}[{dims}]"
        scales = self.quant.scales
        scale = f"{scales[0]:.6g}" if len(scales) == 1 else f"{len(scales)} scales"
        return f"{self.dtype}[{dims}]*{scale}"


@dataclass(frozen=True, slots=True)
class Sparsity:
    """TFLite's sparse storage of a constant: how `data` spreads over the dense shape.

    `formats` per traversed dimension: ("dense", size) or ("csr", segments, indices).
    """

    traversal_order: tuple[int, ...]
    block_map: tuple[int, ...]
    formats: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """Bytes of a constant as the model file holds them (a view, not a copy; or a spans.FileSpan, which stands for one).

    `stored` may be narrower than the value's own type: float16 weights of a float32 value stay
    float16 until a backend packs them.
    """

    data: memoryview
    stored: DType
    sparsity: Sparsity | None = None


class SizeConstant(Constant):
    """A constant whose elements follow the sizes of inputs: `elements` are numbers, or sizes of the trace.

    Who reads `data` gets the bytes at the trace's hint, and the trace holds for no other sizes then.
    """

    __slots__ = ("elements",)
    elements: tuple[Any, ...]

    def __init__(self, elements: Sequence[Any], stored: DType) -> None:
        for name, value in (("elements", tuple(elements)), ("stored", stored), ("sparsity", None)):
            object.__setattr__(self, name, value)

    @property
    def data(self) -> memoryview:
        """The elements' bytes; pins the sizes in them."""
        kind = float if self.stored.is_float else int
        return memoryview(struct.pack(self.layout, *map(kind, self.elements)))

    @property
    def layout(self) -> str:
        """The elements as `struct` has them."""
        return f"<{len(self.elements)}{self.stored.letter}"

    @property
    def hint_data(self) -> memoryview:
        """The elements' bytes at the hint, for who replaces them when sizes are bound."""
        return memoryview(struct.pack(self.layout, *map(hint_of, self.elements)))


class Value:
    """One tensor of a graph. Compared by identity; the name is for people only."""

    __slots__ = ("constant", "name", "type")

    def __init__(self, name: str, type: TensorType, constant: Constant | None = None) -> None:
        self.name, self.type, self.constant = name, type, constant

    @property
    def is_constant(self) -> bool:
        """Whether its elements are known when the model is loaded."""
        return self.constant is not None

    def numbers(self) -> tuple[Any, ...]:
        """The elements of a small dense constant, in row-major order (shapes, axes, paddings)."""
        if self.constant is None or self.constant.sparsity is not None:
            raise ShapeError(f"{self.name!r} must be a dense constant to be read at load time")
        if isinstance(self.constant, SizeConstant):
            return self.constant.elements
        count = self.type.size
        if count > 65536:
            raise ShapeError(f"{self.name!r} has {count} elements, too many to read at load time")
        return struct.unpack(f"<{count}{self.constant.stored.letter}", self.constant.data)

    def __repr__(self) -> str:
        return f"Value({self.name!r}, {self.type})"


@dataclass(frozen=True, slots=True)
class Cost:
    """Work of one node: floating-point or integer operations, and bytes read plus written."""

    flops: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Case:
    """One test of an operator: input types, attributes, and how to draw the inputs.

    `low`, `high` bound the uniform draw; `constant` lists the inputs that are weights;
    `values` fixes inputs by position.
    """

    label: str
    inputs: tuple[TensorType | None, ...]
    attrs: Any
    low: float = -3.0
    high: float = 3.0
    constant: tuple[int, ...] = ()
    values: dict[int, Sequence[float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a backend may be from the reference: |got - want| <= absolute + relative * |want|.

    With `summed`, what is added counts in place of |want|: the sum of the magnitudes of all terms. Where that sum is
    no float32, the result may be any number, an infinity or a NaN.
    """

    absolute: float = 0.0
    relative: float = 0.0
    reason: str = ""
    summed: bool = False


TypeRule = Callable[[Sequence[TensorType | None], Sequence[TensorType]], str]  # what breaks the rule, "" if nothing


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """An operator: declared once in `ops/`, looked up by every other room.

    `types` are the rules that element types of inputs and results keep; `ops/registry.py` names them. `kernel` is given
    what `cost` is, and describes the operator as a kernel of `expr/kernel.py`; without it, kernels are written by hand.
    """

    name: str
    attrs: type
    infer: Callable[[Sequence[TensorType | None], Any], tuple[TensorType, ...]]
    cost: Callable[[Sequence[TensorType | None], Sequence[TensorType], Any], Cost]
    tolerance: Tolerance
    cases: tuple[Case, ...] = ()
    types: tuple[TypeRule, ...] = field(default=(), kw_only=True)
    kernel: Callable[[Sequence[Any], Sequence[TensorType], Any], Any] | None = field(default=None, kw_only=True)

    def result_types(self, inputs: Sequence[TensorType | None], attrs: Any) -> tuple[TensorType, ...]:
        """The types of the results, as `infer` makes them.

        Raises:  ShapeError if the inputs do not fit, or the element types break a rule of `types`.
        """
        results = self.infer(inputs, attrs)
        for rule in self.types:
            if problem := rule(inputs, results):
                raise ShapeError(f"{self.name}: {problem}")
        return results

    def __repr__(self) -> str:
        return f"Op({self.name})"


class Node:
    """One application of an operator. `inputs` holds None where an optional input is absent.

    `inferred` are the types of inputs and outputs with which the operator inferred the outputs' types, if it did.
    """

    __slots__ = ("attrs", "inferred", "inputs", "label", "op", "outputs")

    def __init__(
        self, op: Op, inputs: Iterable[Value | None], outputs: Iterable[Value], attrs: Any, label: str = ""
    ) -> None:
        self.op, self.attrs, self.label = op, attrs, label
        self.inferred: tuple[Any, list[TensorType | None], list[TensorType]] | None = None
        self.inputs: list[Value | None] = list(inputs)
        self.outputs: list[Value] = list(outputs)

    @property
    def output(self) -> Value:
        """The only output."""
        (value,) = self.outputs
        return value

    def required_input(self, index: int) -> Value:
        """The input at this position, which the operator's `infer` has already demanded."""
        value = self.inputs[index]
        assert value is not None, f"{self.label}: input {index} is missing"
        return value

    def cost(self) -> Cost:
        """What the operator costs on these types."""
        types = [v.type if v is not None else None for v in self.inputs]
        return self.op.cost(types, [v.type for v in self.outputs], self.attrs)

    def optional_input(self, index: int) -> Value | None:
        """The input at this position; None where it is absent or the list of inputs is shorter."""
        return self.inputs[index] if index < len(self.inputs) else None

    def __repr__(self) -> str:
        return f"Node({self.op.name}, {self.label!r})"


@dataclass(frozen=True, slots=True)
class State:
    """A tensor that lives from run to run. Who runs the graph feeds its value, and takes its next value.

    `input` and `output` are names of an input and an output of the graph; "" where the graph does not read the value,
    or does not change it. `initial` are the bytes before the first run, None where another graph of the same model
    must write them first.
    """

    name: str
    type: TensorType
    initial: memoryview | None
    input: str
    output: str


class Graph:
    """A model: inputs, outputs and nodes in topological order; and which of inputs and outputs are its state.

    `outer` are the element types, by name, of those inputs and outputs that users see in another type than kernels do.
    `resident` values lie in an executor from run to run, and nodes change them in place. `parts` are the numbers of
    nodes at which parts end that run one at a time; without any, all nodes are one. With `clamps_positions` a position
    outside its axis means the nearest element, as WebNN says; else it is an error where it is known before a run. With
    `keeps_inputs` an executor shall leave inputs as they are during a run: the next one, a loop's turn, may read them.
    """

    __slots__ = (
        "clamps_positions", "format", "inputs", "keeps_inputs", "metadata", "name", "nodes", "notes", "outer",
        "outputs", "parts", "resident", "states",
    )  # fmt: skip

    def __init__(self, name: str, inputs: Iterable[Value], outputs: Iterable[Value], nodes: Iterable[Node]) -> None:
        self.name = name
        self.inputs: list[Value] = list(inputs)
        self.outputs: list[Value] = list(outputs)
        self.nodes: list[Node] = list(nodes)
        self.states: list[State] = []
        self.resident: list[Value] = []
        self.parts: list[int] = []
        self.clamps_positions = self.keeps_inputs = False
        self.outer: dict[str, DType] = {}
        self.notes: list[str] = []  # for people: how the model is computed, where there is a choice
        self.format, self.metadata = "", dict[str, str]()  # of the file it was read from, for tasks that extend it

    def producers(self) -> dict[Value, Node]:
        """The node that writes each value."""
        return {value: node for node in self.nodes for value in node.outputs}

    def consumers(self) -> dict[Value, list[Node]]:
        """The nodes that read each value, in order; a node that reads it twice stands twice."""
        readers: dict[Value, list[Node]] = {}
        for node in self.nodes:
            for value in node.inputs:
                if value is not None:
                    readers.setdefault(value, []).append(node)
        return readers

    def fixed_values(self) -> set[Value]:
        """The results that no input of the graph reaches: backends compute them when they load it.

        What follows sizes that are bound later is not among them.
        """
        fixed: set[Value] = set()
        for node in self.nodes:
            for value in node.inputs:
                if value is not None and value.constant is None and value not in fixed:
                    break
            else:
                if not (tracing() and _follows_sizes(node)):
                    fixed.update(node.outputs)
        return fixed

    def replace(self, old: Value, new: Value) -> None:
        """Makes every reader of `old`, the graph's outputs included, read `new`."""
        for node in self.nodes:
            node.inputs = [new if value is old else value for value in node.inputs]
        self.outputs = [new if value is old else value for value in self.outputs]


def _follows_sizes(node: Node) -> bool:
    """Whether other sizes of the model's inputs give a node of constants another result."""
    ends = [value for value in (*node.inputs, *node.outputs) if value is not None]
    return any(isinstance(v.constant, SizeConstant) or has_size(v.type.shape) for v in ends) or has_size(node.attrs)


def apply(op: Op, inputs: Sequence[Value | None], attrs: Any, label: str = "", name: str = "") -> Node:
    """A node with freshly inferred outputs.

    Raises:  ShapeError if the inputs do not fit.
    """
    given = [None if value is None else value.type for value in inputs]
    types = op.result_types(given, attrs)
    stem = name or label or op.name
    outputs = [Value(stem if len(types) == 1 else f"{stem}:{i}", type) for i, type in enumerate(types)]
    node = Node(op, inputs, outputs, attrs, label or stem)
    node.inferred = (attrs, given, list(types))
    return node
