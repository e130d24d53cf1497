"""What every case of every operator becomes, without a device."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.ops.case_graphs import draw
from tests.webgpu.devices import HARDWARE, LIMITS, MODERN, SOFTWARE
from tests.webgpu.extra_cases import EXTRA

from webinfer.backends.webgpu.dispatch import Target
from webinfer.backends.webgpu.lowerings import LOWERINGS, UNSUPPORTED
from webinfer.backends.webgpu.memory import Home
from webinfer.backends.webgpu.schedule import Schedule, Step, make_schedule
from webinfer.codegen.prelude import Access, prelude
from webinfer.codegen.templates import render, shader_folder
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Case, Constant, Graph, Op, TensorType, Value, apply
from webinfer.ops import OPS
from webinfer.ops.dynamic_range import RoundRowsAttrs
from webinfer.ops.elementwise import BinaryAttrs, UnaryAttrs
from webinfer.ops.scan import CumulativeSumAttrs

STEP_BY_STEP = ("recurrent_product", "recurrent_step")  # of layers that no workgroup holds: test_device
GOLDEN = Path(__file__).parent / "golden"


def is_refused(op: Op, case: Case) -> bool:
    """Whether another backend computes this case."""
    several = op.name == "detection_postprocess" and (case.attrs.regular or case.attrs.per_box > 1)
    whole = op.name == "cached_attention" and any(t is not None and t.dtype is DType.INT16 for t in case.inputs)
    return op in UNSUPPORTED or several or whole


EVERY = [(op, case) for op in OPS.values() for case in op.cases] + list(EXTRA)
ALL = [(op, case) for op, case in EVERY if not is_refused(op, case)]
REFUSED = [(op, case) for op, case in EVERY if is_refused(op, case)]
CASES = [pytest.param(op, case, id=f"{op.name}-{case.label}") for op, case in ALL]
# Shader -> the case whose rendering is kept: each shows another part of the generator.
GOLDEN_CASES = {
    "conv2d_1x1_4x8": ("conv2d", "many pixels, uint8"),
    "conv2d_1x1_vec4": ("conv2d", "residual, relu"),
    "conv2d_vec4": ("conv2d", "relu6, both bounds"),
    "conv2d_any": ("conv2d", "3x3, odd channels"),
    "conv2d_gemv": ("conv2d", "a pixel, odd channels"),
    "depthwise_4x1": ("depthwise_conv2d", "many pixels"),
    "depthwise_vec4": ("depthwise_conv2d", "prelu"),
    "described": ("average_pool2d", "uint8"),
    "elementwise_binary": ("add", "channels b float32"),
    "reduce_workgroup": ("reduce_log_sum_exp", "a workgroup a row, float32"),
    "softmax_workgroup": ("softmax", "vector"),
}


def schedule_of(op: Op, case: Case, target: Target = HARDWARE) -> Schedule:
    """The case as a scheduled graph of one node."""
    values: list[Value | None] = []
    for i, (type, array) in enumerate(zip(case.inputs, draw(op, case), strict=True)):
        if type is None or array is None:
            values.append(None)
            continue
        data = Constant(memoryview(array.tobytes()), type.dtype) if i in case.constant else None
        values.append(Value(f"input {i}", type, data))
    node = apply(op, values, case.attrs, op.name)
    inputs = [v for v in values if v is not None and not v.is_constant]
    return make_schedule(Graph(op.name, inputs, node.outputs, [node]), target)


def steps_of(schedule: Schedule) -> Iterator[Step]:
    yield from schedule.prepare
    yield from schedule.run


def text_of(step: Step) -> str:
    dispatch = step.dispatch
    slots = [b.slot for b in dispatch.bindings]
    return render(dispatch.shader, dispatch.variables, slots, dispatch.params).code


@pytest.mark.parametrize(("op", "case"), REFUSED, ids=lambda x: getattr(x, "label", str(x)))
def test_what_has_no_shader_is_refused(op: Op, case: Case) -> None:
    with pytest.raises(UnsupportedOpError, match="on webgpu: "):
        schedule_of(op, case)


@pytest.mark.parametrize(("op", "case"), CASES)
def test_every_dispatch_keeps_the_rules(op: Op, case: Case) -> None:
    """All rules at once: scheduling a case costs more than looking at what came out."""
    schedule = schedule_of(op, case)
    for step in steps_of(schedule):
        no_buffer_is_read_and_written(step)
        limits_of_every_device_are_kept(step)
        every_binding_is_used_and_no_template_left(step)
    constants_are_prepared_once_and_never_at_run_time(schedule, case)


def no_buffer_is_read_and_written(step: Step) -> None:
    pairs = list(zip(step.dispatch.bindings, step.regions, strict=True))
    written = {region.block for b, region in pairs if b.slot.access is not Access.READ}
    assert not written & {region.block for b, region in pairs if b.slot.access is Access.READ}


def limits_of_every_device_are_kept(step: Step) -> None:
    assert len(step.regions) <= LIMITS["maxStorageBuffersPerShaderStage"]
    assert all(1 <= n <= LIMITS["maxComputeWorkgroupsPerDimension"] for n in step.dispatch.groups)
    assert all(r.offset % LIMITS["minStorageBufferOffsetAlignment"] == 0 for r in step.regions)


def every_binding_is_used_and_no_template_left(step: Step) -> None:
    text = text_of(step)
    assert not re.search(r"\{\{|\$\$|\{\$", text)
    head = prelude([b.slot for b in step.dispatch.bindings], step.dispatch.params)
    body = text.replace(head, "")
    for binding in step.dispatch.bindings:
        assert re.search(rf"\b(load|load4|fetch4|store|store4)_{binding.slot.name}\(", body), binding.slot.name


def constants_are_prepared_once_and_never_at_run_time(schedule: Schedule, case: Case) -> None:
    for step in schedule.run:
        assert step.dispatch.shader not in ("center_weights", "densify")
    if all(i in case.constant for i, t in enumerate(case.inputs) if t is not None):
        assert not schedule.run


def test_every_shader_is_used_by_some_case() -> None:
    used = {
        step.dispatch.shader
        for op, case in ALL
        for target in (HARDWARE, SOFTWARE, MODERN)
        for step in steps_of(schedule_of(op, case, target))
    }
    names = {path.stem for path in shader_folder().rglob("*.wgsl") if not path.name.startswith("_")}
    # No case has sparse constants, custom operators, pictures or as many pixels as conv2d_rows wants (test_conv_rows).
    # Only graphs of several nodes are fused; no case asks for float16 on a device with subgroup matrices.
    pictures = {path.stem for path in (shader_folder() / "image").iterdir()}
    fused = {"depthwise_pointwise", "elementwise_chain", "group_moments", "group_norm", "moments", "squeeze"}
    assert names - used <= {"conv2d_rows", "conv2d_1x1_matrices", "custom", "densify", *fused, *pictures, *STEP_BY_STEP}


@pytest.mark.parametrize("shader", sorted(GOLDEN_CASES))
def test_golden_renderings_change_only_on_purpose(shader: str) -> None:
    """Set WEBINFER_UPDATE_GOLDEN=1 to write them anew, then read the difference."""
    name, label = GOLDEN_CASES[shader]
    case = next(c for op, c in ALL if op.name == name and c.label == label)
    steps = (s for target in (MODERN, HARDWARE, SOFTWARE) for s in steps_of(schedule_of(OPS[name], case, target)))
    step = next(s for s in steps if s.dispatch.shader == shader)
    path, text = GOLDEN / f"{shader}.wgsl", text_of(step)
    if os.environ.get("WEBINFER_UPDATE_GOLDEN") == "1":
        path.write_text(text)
    assert path.read_text() == text


def test_reshape_costs_nothing() -> None:
    op = OPS["reshape"]
    assert not schedule_of(op, op.cases[0]).run


def test_results_live_in_pooled_buffers() -> None:
    op = OPS["relu"]
    schedule = schedule_of(op, op.cases[0])
    assert [region.block.home for _, region in schedule.outputs] == [Home.POOLED]


def test_loops_that_an_adapter_on_the_processor_would_end_early_are_refused_there() -> None:
    op, case = OPS["cumulative_sum"], Case("long", (TensorType((1, 70_000)),), CumulativeSumAttrs(1))
    assert len(schedule_of(op, case).run) == 1
    with pytest.raises(UnsupportedOpError, match="running sums of 70000; adapters on the processor end loops"):
        schedule_of(op, case, SOFTWARE)


@pytest.mark.parametrize(("shape", "access"), [((2, 3, 5, 7), "flat"), ((1, 1, 1, 7), "each"), ((2, 1, 5, 7), "each")])
def test_operands_of_one_shape_are_read_as_one_line(shape: tuple[int, ...], access: str) -> None:
    case = Case("sum", (TensorType((2, 3, 5, 7)), TensorType(shape)), BinaryAttrs())
    (step,) = schedule_of(OPS["add"], case).run
    assert step.dispatch.variables["access"] == access


def test_rows_that_a_workgroup_would_walk_too_long_are_reduced_by_many() -> None:
    node = apply(OPS["round_rows"], [Value("x", TensorType((1, 1 << 23)))], RoundRowsAttrs(1))
    shaders = [dispatch.shader for dispatch in LOWERINGS[node.op](node, SOFTWARE)]
    assert shaders[-1] == "round_long_rows"
    assert "reduce_part" in shaders


def test_curves_of_integers_are_refused() -> None:
    case = Case("whole numbers", (TensorType((4,), DType.INT32),), UnaryAttrs())
    with pytest.raises(UnsupportedOpError, match="sigmoid of int32; it is defined for floats"):
        schedule_of(OPS["sigmoid"], case)
