"""Custom operators: the user's WGSL between generated accessors, on the same buffers as every other operator."""

from __future__ import annotations

from typing import Any

from webinfer.backends.webgpu.dispatch import WORKGROUP, Dispatch, Target, groups_for, read, write
from webinfer.codegen.prelude import Param, f32, i32, i32x8, u32
from webinfer.codegen.templates import Variable
from webinfer.errors import LimitError, ShapeError, UnsupportedOpError
from webinfer.graph.ir import Node, TensorType
from webinfer.ops.custom import CustomOp, Form, arguments, call

_HEADS = {Form.ELEMENT: "fn element(i: u32) -> y_t {", Form.QUAD: "fn quad(q: u32) -> y_v {"}


def custom(node: Node, target: Target) -> list[Dispatch]:
    """custom.wgsl with the operator's own WGSL in it, one dispatch.

    Raises:  UnsupportedOpError if the operator has no WGSL; ShapeError or LimitError for impossible workgroups
    """
    op = node.op
    assert isinstance(op, CustomOp)
    if not op.wgsl:
        raise UnsupportedOpError(["it was registered without wgsl"])
    bindings = [read(name, node.required_input(i)) for i, name in enumerate(op.inputs)]
    for name, value in zip(op.outputs, node.outputs, strict=True):
        single = op.form is Form.SHADER and value.type.dtype.itemsize == 4
        bindings.append(write(name, value, single=single))
    types = [node.required_input(i).type for i in range(len(op.inputs))]
    params = tuple(p for name, value in arguments(node.attrs).items() for p in _param(name, value))
    if op.form is Form.SHADER:
        groups = _groups(op, call(op, op.workgroups, types, node.attrs) if op.workgroups else (), target)
    else:
        groups = groups_for(-(-node.outputs[0].type.size // 4), target)
    named = zip((*op.inputs, *op.outputs), (*types, *(v.type for v in node.outputs)), strict=True)
    text = _own(op) + "".join(_shape_text(name, type) for name, type in named)
    variables: dict[str, Variable] = {"workgroup": WORKGROUP, "form": op.form}
    return [Dispatch("custom", variables, tuple(bindings), params, groups, "registered", text, op.name)]


def _own(op: CustomOp) -> str:
    """The user's text as a function; its lines keep their numbers."""
    if op.form is Form.SHADER:
        return f"{op.wgsl}\n"
    returns = "return" in op.wgsl
    return f"{_HEADS[op.form]} {op.wgsl}\n}}\n" if returns else f"{_HEADS[op.form]} return ({op.wgsl}\n); }}\n"


def _param(name: str, value: Any) -> tuple[Param, ...]:
    if isinstance(value, tuple):
        return i32x8(**{name: value})
    if isinstance(value, float):
        return f32(**{name: value})
    return u32(**{name: int(value)}) if isinstance(value, bool) else i32(**{name: value})


def _shape_text(name: str, type: TensorType) -> str:
    """Constants and index functions of one tensor."""
    shape = type.shape or (1,)
    rank = len(shape)
    steps = "".join(f" at[{d}] = rest % {shape[d]}u; rest /= {shape[d]}u;" for d in range(rank - 1, -1, -1))
    index = "at[0]"
    for d in range(1, rank):
        index = f"({index}) * {shape[d]}u + at[{d}]"
    kind = f"array<u32, {rank}>"
    return (
        f"const {name}_shape = {kind}({', '.join(f'{size}u' for size in shape)});\n"
        f"const {name}_count = {type.size}u;\n"
        f"fn place_{name}(i: u32) -> {kind} {{ var at: {kind}; var rest = i;{steps} return at; }}\n"
        f"fn index_{name}(at: {kind}) -> u32 {{ return {index}; }}\n"
    )


def _groups(op: CustomOp, found: Any, target: Target) -> tuple[int, int, int]:
    counts = list(found) if isinstance(found, list | tuple) else [found]
    if not 1 <= len(counts) <= 3 or not all(type(n) is int and n > 0 for n in counts):
        raise ShapeError(f"{op.name}: its workgroups are {found!r}, needs 1 to 3 whole numbers from 1")
    limit = target.limits["maxComputeWorkgroupsPerDimension"]
    if max(counts) > limit:
        raise LimitError(f"{op.name}: workgroups", max(counts), limit, "spread them over more dimensions")
    x, y, z = (*counts, 1, 1)[:3]
    return (x, y, z)
