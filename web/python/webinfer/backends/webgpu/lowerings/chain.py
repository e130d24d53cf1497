"""The dispatch of a chain of elementwise nodes that backends.webgpu.chains found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from webinfer.backends.webgpu.dispatch import WORKGROUP, Binding, Dispatch, Target, groups_for, read, write
from webinfer.backends.webgpu.lowerings.elementwise import clamp_formula
from webinfer.backends.webgpu.lowerings.geometry import merged
from webinfer.codegen.chains import Chain, Leaf, Move, Reading, Step, attributes
from webinfer.codegen.formulas import FormulaName
from webinfer.codegen.prelude import Param, f32, i32, u32, u32x8
from webinfer.codegen.templates import Variable
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.expr.formula import TRUTHS
from webinfer.graph.ir import Node, Value
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.activation import Activation
from webinfer.ops.conv import Conv2dAttrs
from webinfer.ops.elementwise import ACTIVATIONS, ROWS, BinaryAttrs, UnaryAttrs
from webinfer.ops.resize import nearest_numbers

MOST_STEPS = 64  # formulas of a chain: 52 in one dispatch took 0.64 of the time of halves (H100, 2026-11-28)
Links = Mapping[Value, Node]  # the nodes of a chain by their results
# Formulas that jump: a last bit of what they are given, which another order of instructions may change, is a whole
# step of their result. They read what is stored.
JUMPS = frozenset({"ceil", "floor", "round_even", "sign", "//", "%", *TRUTHS})


@dataclass(frozen=True, slots=True)
class _View:
    """Where the elements of a value lie for those of y: `shape` broadcasts to `whole`, which has as many as y.

    `exact` says that the value has this shape itself, not one with the same elements.
    """

    whole: tuple[int, ...]
    shape: tuple[int, ...]
    exact: bool = True


def is_link(node: Node) -> bool:
    """Whether a chain may compute this node: element by element, of real numbers or truths, to real numbers."""
    if len(node.outputs) != 1 or not all(_plain(v) for v in (*node.inputs, *node.outputs) if v is not None):
        return False
    if not node.output.type.dtype.is_float or not node.output.type.size:
        return False
    if node.op.name == "where":
        return node.required_input(1).type.dtype.is_float
    if any(v is not None and not v.type.dtype.is_float for v in node.inputs):
        return False
    if node.op.name in ("reshape", "cast"):
        return True
    if node.op.name == "depthwise_conv2d":
        return _scales(node)
    row = ROWS.get(node.op.name)
    if row is None or row.formula is None or (node.op.name == "clamp" and _clamp(node) is None):
        return False
    return row.attrs is not BinaryAttrs or node.attrs.activation in (Activation.NONE, *ACTIVATIONS)


def is_step(node: Node) -> bool:
    """Whether a link computes anything."""
    return node.op.name not in ("reshape", "cast", "identity")


def operands_of(node: Node) -> Sequence[Value]:
    """What a link reads that may be computed on the way."""
    row = ROWS.get(node.op.name)
    if row is not None and row.formula is not None and row.formula.uses(*JUMPS) and not _smooth(node):
        return ()
    return [v for v in node.inputs[node.op.name == "where" :] if v is not None and not v.is_constant]


def _smooth(node: Node) -> bool:
    """Whether a formula with comparisons has no jump where they change: its branches meet there."""
    return node.op.name in _MEETING


_MEETING = frozenset({"elu", "erf", "leaky_relu", "prelu", "relu", "relu6", "relu_n1_to_1", "clamp", "softplus"})


def _plain(value: Value) -> bool:
    return value.type.quant is None and (value.type.dtype.is_float or value.type.dtype is DType.BOOL)


def _scales(node: Node) -> bool:
    """Whether a depthwise convolution has windows of one pixel: a factor and a summand a channel."""
    a: Conv2dAttrs = node.attrs
    _, kh, kw, co = node.required_input(1).type.shape
    x, y = node.required_input(0).type.shape, node.output.type.shape
    curve = a.activation in (Activation.NONE, Activation.PRELU, *ACTIVATIONS)
    return (kh, kw) == (1, 1) and x == y and co == x[3] and not any(a.pads) and curve


def _clamp(node: Node) -> tuple[str, tuple[Param, ...]] | None:
    try:
        return clamp_formula((node.attrs.a, node.attrs.b), DType.FLOAT32)
    except UnsupportedOpError:
        return None


def is_move(node: Node) -> bool:
    """Whether a chain may store its result as this node does: an image, mirrored beyond its edge or repeated."""
    if node.op.name not in ("pad", "resize_nearest") or not node.output.type.size or not _plain(node.output):
        return False
    x, a = node.required_input(0).type, node.attrs
    if not x.dtype.is_float or x.rank != 4 or x.shape[3] % 4:
        return False
    return node.op.name != "pad" or (
        a.mode != "constant" and not any(n[i] for n in (a.before, a.after) for i in (0, 3))
    )


def _move(i: int, node: Node) -> tuple[Move, tuple[Param, ...]]:
    """What a mover is, and its numbers, which have its place in their names."""
    (_, ih, iw, _), (_, oh, ow, _) = node.required_input(0).type.shape, node.output.type.shape
    numbers = u32(**{f"ih{i}": ih, f"iw{i}": iw, f"oh{i}": oh, f"ow{i}": ow})
    if node.op.name == "pad":
        top, left = node.attrs.before[1:3]
        scales = f32(**{f"scale_h{i}": 1.0, f"scale_w{i}": 1.0})
        return Move(node.attrs.mode), (*numbers, *i32(**{f"top{i}": top, f"left{i}": left}), *scales)
    numbers_of = nearest_numbers(node.required_input(0).type, node.output.type, node.attrs)
    reals = f32(**{f"{name}{i}": value for name, value in numbers_of.items()})
    return Move.NEAREST, (*numbers, *i32(**{f"top{i}": 0, f"left{i}": 0}), *reals)


def chain_dispatch(value: Value, links: Links, target: Target, movers: Sequence[Node] = ()) -> Dispatch | None:
    """elementwise_chain.wgsl: `value` with the links on the way and the movers behind it; None if that is too much."""
    y = movers[-1].output if movers else value
    writer = _Writer(links, value.type.size)
    try:
        writer.value(value, _View(value.type.shape, value.type.shape))
    except (UnsupportedOpError, _Impossible):
        return None
    most = target.limits["maxStorageBuffersPerShaderStage"] - 1
    if len(writer.sources) > most or len(writer.steps) > MOST_STEPS:
        return None
    bindings: list[Binding] = [read(f"x{i}", source) for i, source in enumerate(writer.sources)]
    moves = [_move(i, node) for i, node in enumerate(movers)]
    numbers = [number for _, given in moves for number in given]
    numbers += u32(channels=y.type.shape[-1] // 4) if moves else ()
    params = (*u32(count=y.type.size), *writer.params(), *numbers)
    names = dict.fromkeys(n.op.name for n in (*links.values(), *movers) if is_step(n))
    chain = writer.chain(tuple(move for move, _ in moves))
    variables: dict[str, Variable] = {"workgroup": WORKGROUP, "op": chain, "integer": False}
    groups = groups_for(-(-y.type.size // 4), target)
    why = f"{len(links) + len(movers)} steps: {', '.join(names)}"
    return Dispatch("elementwise_chain", variables, (*bindings, write("y", y)), params, groups, why)


class _Impossible(Exception):
    """A value whose elements have no place in the chain."""


Place = tuple[bool, int]  # whether it is a step, and its number among the leaves or the steps


@dataclass(slots=True)
class _Writer:
    """Writes the steps of a chain, from what is read to y."""

    links: Links
    count: int
    sources: list[Value] = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)
    steps: list[tuple[FormulaName | None, tuple[Place, ...]]] = field(default_factory=list)
    _params: list[Param] = field(default_factory=list)
    _known: dict[tuple[Value, object], Place] = field(default_factory=dict)

    def chain(self, moves: tuple[Move, ...]) -> Chain:
        """The chain that was written, with what moves behind it."""
        first = len(self.leaves)
        steps = (Step(name, tuple(n + first * is_step for is_step, n in places)) for name, places in self.steps)
        return Chain(tuple(self.leaves), tuple(steps), moves)

    def params(self) -> Sequence[Param]:
        """Its numbers, sizes and strides."""
        return self._params

    def value(self, value: Value, view: _View) -> Place:
        """Where the value is found, which is read or computed once for each way to look at it.

        Raises:  _Impossible; UnsupportedOpError
        """
        walk = self._walk(value, view)
        key = (value, walk)
        if key not in self._known:
            node = self.links.get(value)
            self._known[key] = self._leaf(value, walk) if node is None else self._node(node, view)
        return self._known[key]

    def _walk(self, value: Value, view: _View) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Sizes of y's dimensions and the strides of the value there; none where it lies as y does."""
        if value.type.size == self.count:
            return (), ()
        if value.type.size == 1:
            return (self.count,), (0,)
        sizes, (strides,) = merged(view.whole, view.shape)
        return tuple(sizes), tuple(strides)

    def _leaf(self, value: Value, walk: tuple[tuple[int, ...], tuple[int, ...]]) -> Place:
        i = len(self.leaves)
        number = _number(value)
        if number is not None:
            self._params += f32(**{f"number{i}": number})
            self.leaves.append(Leaf(Reading.NUMBER))
            return False, i
        if value not in self.sources:
            self.sources.append(value)
        sizes, strides = walk
        if sizes:
            self._params += u32x8(**{f"size{i}": sizes, f"stride{i}": strides})
        self.leaves.append(Leaf(_reading(sizes, strides), self.sources.index(value), len(sizes)))
        return False, i

    def _step(self, name: str | None, *places: Place, attrs: UnaryAttrs | None = None) -> Place:
        i = len(self.steps)
        self.steps.append((FormulaName(name) if name else None, places))
        if name:
            given = attrs or UnaryAttrs()
            self._params += f32(**{f"{letter}{i}": getattr(given, letter) for letter in attributes(name)})
        return True, i

    def _operand(self, node: Node, value: Value, view: _View, shape: Sequence[int] | None = None) -> Place:
        """An operand that is broadcast to the node's result, as `shape` if not as its own."""
        own = tuple(value.type.shape if shape is None else shape)
        if node.output.type.size == self.count:
            return self.value(value, _View(node.output.type.shape, own, own == value.type.shape))
        if value.type.size == node.output.type.size:
            exact = view.exact and view.shape == value.type.shape
            return self.value(value, _View(view.whole, view.shape, exact))
        if value.type.size != 1 and not view.exact:
            raise _Impossible
        return self.value(value, _View(view.whole, own, own == value.type.shape))

    def _node(self, node: Node, view: _View) -> Place:
        name = node.op.name
        if name in ("reshape", "cast", "identity"):
            return self._same(node, view)
        if name == "depthwise_conv2d":
            return self._scaled(node, view)
        places = [self._operand(node, v, view) for v in node.inputs if v is not None]
        if name == "where":
            return self._step(None, *places)
        if ROWS[name].attrs is BinaryAttrs:
            return self._curve(node.attrs.activation, self._step(name, *places))
        attrs = node.attrs
        if name == "clamp":
            name, bounds = clamp_formula((attrs.a, attrs.b), DType.FLOAT32)
            numbers = {p.name: p.value for p in bounds}
            attrs = UnaryAttrs(float(numbers["a"]), float(numbers["b"]))  # type: ignore[arg-type]
        return self._step(name, *places, attrs=attrs)

    def _same(self, node: Node, view: _View) -> Place:
        x = node.required_input(0)
        if x.type.size == self.count:
            return self.value(x, _View(x.type.shape, x.type.shape))
        return self.value(x, _View(view.whole, view.shape, view.exact and x.type.shape == view.shape))

    def _scaled(self, node: Node, view: _View) -> Place:
        x, w, bias, residual, slope = (node.optional_input(i) for i in range(5))
        assert x is not None
        assert w is not None
        row = (w.type.size,)
        place = self._step("mul", self._operand(node, x, view), self._operand(node, w, view, row))
        if bias is not None:
            place = self._step("add", place, self._operand(node, bias, view, row))
        if residual is not None:
            if residual.type.shape != node.output.type.shape:
                raise _Impossible
            place = self._step("add", place, self._operand(node, residual, view))
        if node.attrs.activation is Activation.PRELU:
            if slope is None or slope.type.size != w.type.size:
                raise _Impossible
            return self._step("prelu", place, self._operand(node, slope, view, row))
        return self._curve(node.attrs.activation, place)

    def _curve(self, activation: Activation, place: Place) -> Place:
        if activation is Activation.NONE:
            return place
        return self._step(ACTIVATIONS[activation].name, place, attrs=UnaryAttrs(1.0))


def _reading(sizes: Sequence[int], strides: Sequence[int]) -> Reading:
    if not sizes:
        return Reading.FLAT
    aligned = sizes[-1] % 4 == 0 and all(s % 4 == 0 for s in strides[:-1])
    if strides[-1] == 0 and (sizes[-1] % 4 == 0 or len(sizes) == 1):
        return Reading.SPREAD
    return Reading.ROWS if aligned and strides[-1] == 1 else Reading.EACH


def _number(value: Value) -> float | None:
    """The element of a constant that has one and is at hand."""
    constant = value.constant
    if constant is None or value.type.size != 1 or constant.sparsity is not None or not constant.stored.is_float:
        return None
    return float(value.numbers()[0]) if isinstance(constant.data, memoryview) else None
