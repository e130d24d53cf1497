"""For each kernel the operators' cases whose plans use it; nothing here names a kernel.

The cases come from `ops/`. Where no plan of theirs reaches a kernel, they are varied: other element types, weights
stored sparsely, other register tiles. What even so is not reached stands in `DECLARED`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain, product, zip_longest
from typing import Any

import numpy as np
from tests.ops.case_graphs import Array, Problem, case_node, dense, draw

from webinfer.backends.reference.executor import compute
from webinfer.backends.wasm.builder import Builder
from webinfer.backends.wasm.executor import WasmExecutor, lower_graph
from webinfer.backends.wasm.kernel_table import KERNELS
from webinfer.backends.wasm.lowerings import LOWERINGS, winograd
from webinfer.backends.wasm.lowerings.constants import narrow_output
from webinfer.backends.wasm.lowerings.conv import DEEP_TILES, TILES, TRANSPOSE_TILES, tuning_key
from webinfer.dtypes import DType
from webinfer.errors import WebinferError
from webinfer.graph.ir import Case, Constant, Graph, Node, Op, Quantization, Sparsity, TensorType
from webinfer.host.interface import Kernels
from webinfer.host.native import NativeHost
from webinfer.kernel_constants import BORDER_REPEAT, SAMPLING_EXACT
from webinfer.ops import conv
from webinfer.ops.conv import Conv2dAttrs, quantized_conv_case
from webinfer.tasks.workspace import Workspace

INNER = [dtype for dtype in DType if dtype.inner is dtype]  # the types that graphs compute in
PLANNED_FOR = "relaxed"  # the build with most kernels to choose from; every build runs its plans
# Called by tasks, part of no plan.
TASKS_ONLY = {"u8_picture_to_f32", "u8_cut_quad", "u8_resize_to_planes", "f32_mask_to_picture"}
PAIRS_ONLY = {
    "b8_skip",
    "f32_scaled_add",
    "f32_scaled_add_channels",
    "f32_scale_sums",
    "i8_quantize_by",
    "u8_quantize_by",
}  # in plans of two nodes and more: test_scaled_sums.py, test_dynamic_quantize.py, test_loops_on_data.py of web/python
CASES_EACH = 4  # the one with most work, and some of the others


def _image(label: str, *shapes: tuple[int, ...], **attrs: Any) -> Case:
    return Case(label, tuple(map(TensorType, shapes)), Conv2dAttrs(**attrs), constant=(1, 2))


DECLARED: tuple[tuple[Op, Case], ...] = (
    (conv.CONV2D, _image("RGB, 3x3 stride 2", (1, 13, 12, 3), (16, 3, 3, 3), (16,), stride=(2, 2), pads=(0, 1, 1, 0))),
    (
        conv.CONV2D,
        dataclasses.replace(
            _image("two images in tiles of 4x4", (2, 13, 18, 20), (21, 3, 3, 20), (21,), pads=(1, 1, 2, 0)),
            low=-1.0,
            high=1.0,
        ),
    ),
    *(
        (conv.CONV2D, dataclasses.replace(_image(f"two images in {label}", *shapes), low=-1.0, high=1.0))
        for label, *shapes in (
            ("lines across", (2, 9, 14, 48), (21, 1, 3, 48), (21,)),
            ("lines down", (2, 14, 9, 48), (21, 3, 1, 48), (21,)),
        )
    ),
    (
        conv.CONV2D,
        quantized_conv_case(
            "int8, tiles of 4x4", (2, 18, 15, 24), (37, 3, 3, 24), DType.INT8, 0, 37, pads=(1, 1, 2, 0)
        ),
    ),
    (conv.CONV2D, _image("27 pixels", (1, 9, 3, 64), (24, 1, 1, 64), (24,))),
    (conv.CONV2D, _image("31 pixels", (1, 31, 1, 64), (22, 1, 1, 64), (22,))),
    (conv.CONV2D, _image("47 pixels", (1, 47, 1, 64), (21, 1, 1, 64), (21,))),
    (conv.DEPTHWISE_CONV2D, _image("7x7 window", (1, 11, 13, 12), (1, 7, 7, 12), (12,), pads=(3, 3, 3, 3))),
    (
        conv.DEPTHWISE_CONV2D,
        quantized_conv_case(
            "int8, 5x4 window", (1, 9, 8, 12), (1, 5, 4, 12), DType.INT8, 3, 12, pads=(2, 2, 1, 2), dilation=(1, 2)
        ),
    ),
)
SPARSE: tuple[tuple[Op, Case], ...] = (
    (conv.CONV2D, _image("two rounds of channels", (1, 55, 1, 301), (6, 1, 1, 301), (6,))),
)


@dataclass(frozen=True, eq=False)
class Variant:
    """One case, perhaps with sparsely stored constants, or with a register tile that is not the default."""

    op: Op
    case: Case
    sparse: bool = False
    tile: str = ""

    def arrays(self) -> list[Array | None]:
        """The inputs; constants that are stored sparsely are mostly zero."""
        arrays = draw(self.op, self.case)
        if not self.sparse:
            return arrays
        rng = np.random.default_rng(11)
        kept = [rng.random(a.shape) < 0.1 if a is not None else None for a in arrays]
        return [
            (a * k).astype(a.dtype) if a is not None and i in self.case.constant and a.ndim > 1 else a
            for i, (a, k) in enumerate(zip(arrays, kept, strict=True))
        ]

    def node(self, arrays: list[Array | None]) -> Node:
        """The case as a node."""
        return case_node(self.op, self.case, arrays, _sparse if self.sparse else dense)

    def problem(self) -> Problem:
        """The case with what the reference makes of it."""
        arrays = self.arrays()
        node = self.node(arrays)
        return Problem(self.case, node, arrays, compute(node, arrays))

    def tuned(self, node: Node) -> dict[str, str]:
        """What a tuner would have found."""
        return {tuning_key(node): self.tile} if self.tile else {}

    def enlarged(self, kernel: str, elements: int) -> Variant:
        """The case with so many more of its first dimension that there is something to time, where that fits."""
        case, first = self.case, self.case.inputs[0]
        if first is None or not first.shape or not first.size:
            return self
        size, times = first.shape[0], max(1, elements // first.size)
        inputs = tuple(
            t if t is None or i in case.constant or t.shape[:1] != (size,)
            else dataclasses.replace(t, shape=(size * times, *t.shape[1:]))
            for i, t in enumerate(case.inputs)
        )  # fmt: skip
        larger = dataclasses.replace(self, case=dataclasses.replace(case, inputs=inputs))
        try:
            return larger if kernel in larger.kernels() else self
        except ValueError:  # the case gives its values, and there are too few now
            return self

    def executor(
        self, node: Node, kernels: Kernels, kind: type[WasmExecutor] = WasmExecutor
    ) -> tuple[WasmExecutor, Builder]:
        """The plan that reaches the kernels, loaded into an instance of any build; and the steps that it has."""
        inputs = [v for v in node.inputs if v is not None and not v.is_constant]
        graph = Graph("case", inputs, node.outputs, [node])
        builder = lower_graph(graph, PLANNED_FOR, self.tuned(node))
        return kind(graph, NativeHost(), kernels, builder), builder

    def kernels(self) -> dict[str, int]:
        """The kernels of the plan, with the units of their largest step; none if the plan is refused."""
        try:
            node = self.node(self.arrays())
            inputs = [v for v in node.inputs if v is not None and not v.is_constant]
            builder = lower_graph(Graph("case", inputs, node.outputs, [node]), PLANNED_FOR, self.tuned(node))
            for value in node.outputs:
                narrow_output(builder, value)
        except WebinferError:
            return {}
        found: dict[str, int] = {}
        for step in (*builder.prepare_part.steps, *builder.run_part.steps):
            found[step.kernel] = max(found.get(step.kernel, 0), step.units)
        return found


def _sparse(array: Array, type: TensorType) -> Constant:
    """The array in TFLite's sparse storage: what is not zero of each line along the last axis."""
    if array.ndim < 2:
        return dense(array, type)
    lines = array.reshape(-1, array.shape[-1])
    segments, indices = np.cumsum([0, *np.count_nonzero(lines, axis=1)]), np.nonzero(lines)[1]
    leading = [("dense", size) for size in array.shape[:-1]]
    last = ("csr", tuple(map(int, segments)), tuple(map(int, indices)))
    sparsity = Sparsity(tuple(range(array.ndim)), (), (*leading, last))
    return Constant(memoryview(lines[lines != 0].tobytes()), type.dtype, sparsity)


@cache
def kernel_cases() -> dict[str, list[Variant]]:
    """Kernel → its cases. A kernel without any is missing."""
    found: dict[str, list[tuple[int, Variant]]] = {}
    for variant in (*_originals(), *_tiled(), *_sparsely(Variant(op, case) for op, case in SPARSE)):
        _note(found, variant)
    missing = KERNELS.keys() - found.keys() - TASKS_ONLY - PAIRS_ONLY
    for variant in chain(_sparsely(_originals()), _retyped(), _sparsely(_retyped())):
        if not missing:
            break
        if missing & variant.kernels().keys():
            _note(found, variant)
            missing -= found.keys()
    return {kernel: _chosen(variants) for kernel, variants in found.items()}


def _note(found: dict[str, list[tuple[int, Variant]]], variant: Variant) -> None:
    for kernel, units in variant.kernels().items():
        found.setdefault(kernel, []).append((units, variant))


def _chosen(variants: list[tuple[int, Variant]]) -> list[Variant]:
    most = max(variants, key=lambda pair: pair[0])[1]
    others = [variant for _, variant in variants if variant is not most]
    return [most, *others[:: -(-len(others) // (CASES_EACH - 1)) or 1]]


def _originals() -> Iterator[Variant]:
    for op in LOWERINGS:
        yield from (Variant(op, case) for case in op.cases)
    yield from (Variant(op, case) for op, case in DECLARED)


def _tiled() -> Iterator[Variant]:
    """Float convolutions with every tile."""
    for op, tiles in ((conv.CONV2D, (*TILES, *DEEP_TILES, winograd.NAME)), (conv.CONV_TRANSPOSE2D, TRANSPOSE_TILES)):
        plain = [case for case in op.cases if case.inputs[0] is not None and case.inputs[0].dtype.is_float]
        for case in plain:
            for tile in tiles:  # Winograd's sums are exact to the range of a tile, not to what is left of it
                low, high = (-1.0, 1.0) if tile == winograd.NAME else (case.low, case.high)
                tiled = dataclasses.replace(case, label=f"{case.label}, {tile}", low=low, high=high)
                yield Variant(op, tiled, tile=tile)


def _sparsely(variants: Iterable[Variant]) -> Iterator[Variant]:
    """The cases that have constants, or could have one, with these stored sparsely."""
    for variant in variants:
        case = variant.case
        if case.constant or (len(case.inputs) == 2 and case.inputs[1] is not None and len(case.inputs[1].shape) > 1):
            held = dataclasses.replace(case, label=f"{case.label}, sparse", constant=case.constant or (1,))
            yield Variant(variant.op, held, sparse=True)


def _retyped() -> Iterator[Variant]:
    """Every case with other element types; the first case of every operator comes before any second one."""
    rows = [[Variant(op, case) for case in op.cases] for op in LOWERINGS]
    for variants in zip_longest(*rows, [Variant(op, case) for op, case in DECLARED]):
        for variant in variants:
            yield from _other_types(variant) if variant is not None else ()


def _other_types(variant: Variant) -> Iterator[Variant]:
    """The case with another type for the first input, for all inputs of one type, for results, for both."""
    case = variant.case
    held = [t.dtype for t in case.inputs if t is not None]
    for old, new in product(dict.fromkeys(held), INNER):
        if new is old or (new is not DType.FLOAT32 and _has_extremes(case)):
            continue
        inputs = tuple(_typed(t, new) if t is not None and t.dtype is old else t for t in case.inputs)
        attrs = _attrs_typed(case.attrs, new)
        options = {f"{old} inputs": (inputs, case.attrs)}
        if held.count(old) > 1 and held[0] is old:
            options["first input"] = ((inputs[0], *case.inputs[1:]), case.attrs)
        if attrs is not case.attrs:
            options |= {"results": (case.inputs, attrs), f"{old} and results": (inputs, attrs)}
        for what, (types, chosen) in options.items():
            label = f"{case.label}, {what} as {new}"
            yield Variant(variant.op, dataclasses.replace(case, label=label, inputs=types, attrs=chosen))


def _has_extremes(case: Case) -> bool:
    """Whether the case gives values that narrow types cannot hold."""
    return any(not abs(number) <= 60000 for values in case.values.values() for number in values)


def _typed(type: TensorType, dtype: DType) -> TensorType:
    return dataclasses.replace(type, dtype=dtype, quant=None if dtype.is_float else _quant(type.quant, dtype))


def _quant(quant: Quantization | None, dtype: DType) -> Quantization | None:
    """The scales, with zero points that the element type can hold."""
    if quant is None or dtype is DType.BOOL:
        return None
    low, high = dtype.range
    return dataclasses.replace(quant, zero_points=tuple(max(low, min(high, zero)) for zero in quant.zero_points))


def _attrs_typed(attrs: Any, dtype: DType) -> Any:
    """The attributes with another element type wherever they name one."""
    if not dataclasses.is_dataclass(attrs) or isinstance(attrs, type):
        return attrs
    changed: dict[str, Any] = {}
    for field in dataclasses.fields(attrs):
        value = getattr(attrs, field.name)
        if isinstance(value, DType):
            changed[field.name] = dtype
        elif isinstance(value, tuple) and value and isinstance(value[0], DType):
            changed[field.name] = (dtype, None if dtype.is_float else _quant(value[1], dtype))
    return dataclasses.replace(attrs, **changed) if changed else attrs


def picture_call(workspace: Workspace, image: Array) -> tuple[int, tuple[int | float, ...]]:
    """Where u8_picture_to_f32 puts every pixel of an image, times 0.5 less 1; and its arguments before the units."""
    height, width, _ = image.shape
    source = workspace.put("image", image.tobytes(), image.nbytes)
    target = workspace.area("tensor", 12 * height * width)
    matrix = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)
    how = (4 * width, 4, 1, width, BORDER_REPEAT, SAMPLING_EXACT, 0, 0)
    return target, (source, target, width, height, *how, *matrix, 0.5, -1.0)


def task_call(kernel: str, workspace: Workspace, image: Array) -> tuple[int | float, ...]:
    """The arguments before the units with which one of TASKS_ONLY makes as many pixels as an image has."""
    target, args = picture_call(workspace, image)
    (height, width, _), matrix = image.shape, (1.0, 0.0, 0.25, 0.0, 1.0, 0.25)
    picture = (args[0], target, width, height, 4 * width, 4, 1)
    return {
        "u8_picture_to_f32": args,
        "u8_cut_quad": (*picture, width, *matrix, 0.0, 0.0),
        "u8_resize_to_planes": (*picture, width, height, width, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0),
        "f32_mask_to_picture": (args[0], target, width, height, width, *matrix),
    }[kernel]
