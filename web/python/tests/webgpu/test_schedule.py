"""Graphs as schedules: what is prepared, what shares bytes, what is refused."""

from __future__ import annotations

import random
import struct
from dataclasses import replace

import pytest
from tests.webgpu.devices import HARDWARE, LIMITS, SOFTWARE

from webinfer.backends.webgpu.dispatch import Target, groups_for
from webinfer.backends.webgpu.memory import Block, Home, assign_pooled, busiest
from webinfer.backends.webgpu.schedule import give_ends, make_schedule, release_after_load
from webinfer.codegen.prelude import Access
from webinfer.dtypes import DType
from webinfer.errors import LimitError, UnsupportedOpError
from webinfer.graph.ir import Constant, Graph, Node, Quantization, Sparsity, TensorType, Value, apply
from webinfer.ops import OPS
from webinfer.ops.conv import Conv2dAttrs
from webinfer.ops.elementwise import BinaryAttrs, UnaryAttrs
from webinfer.ops.movement import ConcatAttrs, ReshapeAttrs
from webinfer.ops.pool import Pool2dAttrs
from webinfer.ops.softmax import SoftmaxAttrs


def weights(name: str, shape: tuple[int, ...], stored: DType = DType.FLOAT32) -> Value:
    size = TensorType(shape).size
    data = struct.pack(f"<{size}{stored.letter}", *(i % 2048 for i in range(size)))
    return Value(name, TensorType(shape), Constant(memoryview(data), stored))


def relu(x: Value, name: str = "relu") -> Node:
    return apply(OPS["relu"], [x], UnaryAttrs(), name)


def shaders(steps: list) -> list[str]:  # type: ignore[type-arg]
    return [step.dispatch.shader for step in steps]


def test_weights_are_expanded_packed_and_released_once() -> None:
    x = Value("x", TensorType((1, 32, 32, 256)))
    w = weights("w", (256, 1, 1, 256), DType.FLOAT16)
    first = apply(OPS["conv2d"], [x, w], Conv2dAttrs(), "first")
    second = apply(OPS["conv2d"], [first.output, w], Conv2dAttrs(), "second")
    graph = Graph("g", [x], second.outputs, [first, second])
    schedule = make_schedule(graph, SOFTWARE)
    assert shaders(schedule.prepare) == ["cast", "strided_copy"]
    release_after_load(schedule)
    resident = [b for b in schedule.blocks if b.home is Home.RESIDENT]
    assert [b.nbytes for b in resident] == [256 * 256 * 4], "only the packed weights stay"
    assert {b.nbytes for b in schedule.blocks if b.home is Home.STAGED} == {256 * 256 * 2, 256 * 256 * 4}
    schedule = make_schedule(graph, HARDWARE)
    assert shaders(schedule.prepare) == ["strided_copy"]
    assert shaders(schedule.run) == ["conv2d_tiled", "conv2d_tiled"]
    release_after_load(schedule)
    resident = [b for b in schedule.blocks if b.home is Home.RESIDENT]
    assert [b.nbytes for b in resident] == [256 * 256 * 2], "hardware keeps float16 weights"


def test_shaders_that_compile_longest_are_handed_over_first_and_once() -> None:
    x = Value("x", TensorType((1, 32, 32, 256)))
    pooled = apply(OPS["max_pool2d"], [x], Pool2dAttrs((3, 3), (1, 1), (1, 1, 1, 1)), "pool")
    last = apply(OPS["conv2d"], [pooled.output, weights("w", (256, 1, 1, 256))], Conv2dAttrs(), "last")
    found: list[str] = []
    schedule = make_schedule(
        Graph("g", [x], last.outputs, [pooled, last]), HARDWARE, lambda spec: found.append(spec.label)
    )
    assert shaders(schedule.run) == ["described", "conv2d_tiled"]
    assert list(dict.fromkeys(found)) == ["conv2d_tiled", "max_pool2d", "strided_copy"]


def test_nodes_of_constants_run_at_load() -> None:
    x = Value("x", TensorType((4,)))
    bias = relu(weights("w", (4,)))
    total = apply(OPS["add"], [x, bias.output], BinaryAttrs(), "add")
    schedule = make_schedule(Graph("g", [x], total.outputs, [bias, total]), HARDWARE)
    assert shaders(schedule.prepare) == ["elementwise_unary"]
    assert shaders(schedule.run) == ["elementwise_binary"]


def test_sparse_constants_are_spread_at_load() -> None:
    sparsity = Sparsity((0, 1), (), (("dense", 2), ("csr", (0, 1, 3), (2, 0, 3))))
    data = struct.pack("<3f", 1, 2, 3)
    w = Value("w", TensorType((2, 4)), Constant(memoryview(data), DType.FLOAT32, sparsity))
    x = Value("x", TensorType((2, 4)))
    total = apply(OPS["add"], [x, w], BinaryAttrs(), "add")
    schedule = make_schedule(Graph("g", [x], total.outputs, [total]), HARDWARE)
    assert shaders(schedule.prepare) == ["densify"]
    params = {p.name: p.value for p in schedule.prepare[0].dispatch.params}
    assert params["step"] == (4, 1, 0, 0, 0, 0, 0, 0)
    assert params["segments"] == (0, 3, 0, 0, 0, 0, 0, 0)


def concat(*parts: Value) -> Node:
    return apply(OPS["concat"], list(parts), ConcatAttrs(1), "concat")


def test_parts_of_a_concat_are_computed_in_place() -> None:
    x = Value("x", TensorType((1, 64, 4)))
    a, b = relu(x, "a"), relu(x, "b")
    whole = concat(a.output, b.output)
    schedule = make_schedule(Graph("g", [x], whole.outputs, [a, b, whole]), HARDWARE)
    assert shaders(schedule.run) == ["elementwise_unary", "elementwise_unary"]
    (_, owner), (place_a, place_b) = schedule.outputs[0], [s.regions[1] for s in schedule.run]
    assert place_a.block is place_b.block is owner.block
    assert (place_a.offset, place_b.offset) == (0, 64 * 4 * 4)


def test_a_part_that_is_computed_from_another_part_is_copied() -> None:
    x = Value("x", TensorType((1, 64, 4)))
    a = relu(x, "a")
    b = relu(a.output, "b")
    whole = concat(a.output, b.output)
    schedule = make_schedule(Graph("g", [x], whole.outputs, [a, b, whole]), HARDWARE)
    for step in schedule.run:
        blocks = [r.block for r in step.regions]
        assert len(set(blocks)) == len(blocks)
    assert "strided_copy_vec4" in shaders(schedule.run)


def test_parts_off_the_alignment_are_copied() -> None:
    x = Value("x", TensorType((1, 3, 4)))
    a, b = relu(x, "a"), relu(x, "b")
    whole = concat(a.output, b.output)
    schedule = make_schedule(Graph("g", [x], whole.outputs, [a, b, whole]), HARDWARE)
    assert shaders(schedule.run)[-1] == "strided_copy_vec4"
    assert len(schedule.run) == 3, "the first part lies in place, the second is copied"


def test_an_input_may_be_an_output_through_a_reshape() -> None:
    x = Value("x", TensorType((2, 3)))
    flat = apply(OPS["reshape"], [x], ReshapeAttrs((6,)), "flat")
    schedule = make_schedule(Graph("g", [x], flat.outputs, [flat]), HARDWARE)
    assert not schedule.run
    assert schedule.outputs[0][1].block is schedule.inputs["x"].block


def test_a_value_needed_late_is_not_overwritten() -> None:
    x = Value("x", TensorType((64,)))
    nodes = [relu(x, "0")]
    for i in range(1, 6):
        nodes.append(apply(OPS["softmax"], nodes[-1].outputs, SoftmaxAttrs(0), str(i)))
    last = apply(OPS["add"], [nodes[0].output, nodes[-1].output], BinaryAttrs(), "add")
    schedule = make_schedule(Graph("g", [x], last.outputs, [*nodes, last]), HARDWARE)
    assign_pooled([b for b in schedule.blocks if b.home is Home.POOLED], 0)
    kept = schedule.values[nodes[0].output].block
    for step in schedule.run[1:-1]:
        assert step.regions[-1].block.buffer != kept.buffer


def test_every_unsupported_node_is_named() -> None:
    quantized = TensorType((1, 4, 4, 4), DType.INT16, Quantization((0.1,), (0,)))
    x = Value("x", quantized)
    nodes = [apply(OPS["l2_pool2d"], [x], Pool2dAttrs((2, 2)), f"pool {i}") for i in range(3)]
    graph = Graph("g", [x], [n.output for n in nodes], nodes)
    with pytest.raises(UnsupportedOpError) as caught:
        make_schedule(graph, HARDWARE)
    assert [p.split(":")[0] for p in caught.value.problems] == ["pool 0", "pool 1", "pool 2"]


@pytest.mark.parametrize("limit", ["maxStorageBufferBindingSize", "maxBufferSize"])
def test_nodes_of_tensors_that_the_device_has_no_place_for_are_refused(limit: str) -> None:
    x, z = Value("x", TensorType((1 << 12,))), Value("z", TensorType((16,)))
    large, small = relu(x), relu(z)
    small.output.name = "another"
    graph = Graph("g", [x, z], [*large.outputs, *small.outputs], [large, small])
    with pytest.raises(UnsupportedOpError, match=r"'x' has 16384 bytes, a b.* of this device at most 8192") as caught:
        make_schedule(graph, Target({**LIMITS, limit: 1 << 13}))
    assert caught.value.nodes == [large]


def test_empty_tensors_need_no_dispatch() -> None:
    x = Value("x", TensorType((0, 4)))
    node = relu(x)
    assert not make_schedule(Graph("g", [x], node.outputs, [node]), HARDWARE).run


FOLDED = {0: (1, 1, 1), 1: (1, 1, 1), 64: (1, 1, 1), 65: (2, 1, 1), 576: (9, 1, 1), 640: (5, 2, 1), 5184: (9, 9, 1)}


@pytest.mark.parametrize(("invocations", "wanted"), FOLDED.items())
def test_long_dispatches_fold_into_two_dimensions(invocations: int, wanted: tuple[int, int, int]) -> None:
    assert groups_for(invocations, Target({"maxComputeWorkgroupsPerDimension": 9})) == wanted


def test_dispatches_beyond_two_dimensions_are_refused() -> None:
    with pytest.raises(LimitError, match="workgroups"):
        groups_for(64 * 82, Target({"maxComputeWorkgroupsPerDimension": 9}))


def test_pooled_blocks_that_live_together_never_share_a_buffer() -> None:
    rng = random.Random(7)
    for _ in range(50):
        blocks = []
        for i in range(40):
            first = rng.randrange(60)
            block = Block(str(i), 16 * rng.randrange(1, 50), Home.POOLED, first=first, last=first + rng.randrange(8))
            blocks.append(block)
        sizes = assign_pooled(blocks, 5)
        for a in blocks:
            assert sizes[a.buffer - 5] >= a.nbytes
            for b in blocks:
                if a is not b and a.first <= b.last and b.first <= a.last:
                    assert a.buffer != b.buffer
        assert sum(sizes) >= busiest(blocks)


@pytest.mark.parametrize("name", ["reduce_l2", "reduce_log_sum", "reduce_log_sum_exp"])
def test_a_root_or_logarithm_of_integers_is_refused(name: str) -> None:
    x = Value("x", TensorType((4, 8), DType.INT32))
    node = Node(OPS[name], (x,), (Value("y", TensorType((4, 1), DType.INT32)),), OPS[name].cases[0].attrs, "node")
    with pytest.raises(UnsupportedOpError, match=f"{name} of int32; cast to float32 first"):
        make_schedule(Graph("g", [x], node.outputs, [node]), HARDWARE)


def test_ends_are_given_where_a_buffer_can_take_their_place_in_every_step() -> None:
    x, y = Value("x", TensorType((1, 64))), Value("y", TensorType((1, 64)))
    part, other = relu(x, "part"), relu(y, "other")
    whole = concat(part.output, other.output)
    flat = apply(OPS["reshape"], [y], ReshapeAttrs((64,)))
    free = relu(whole.output, "free")
    outputs = [part.output, whole.output, flat.output, free.output]
    schedule = make_schedule(Graph("g", [x, y], outputs, [part, other, whole, flat, free]), HARDWARE)
    give_ends(schedule)
    given = {value.name: region.block.home is Home.GIVEN for value, region in schedule.outputs}
    assert given == {
        part.output.name: False,  # lies inside of the next
        whole.output.name: False,  # holds another output
        flat.output.name: False,  # is an input as well
        free.output.name: True,
    }
    assert {name: region.block.home for name, region in schedule.inputs.items()} == {"x": Home.GIVEN, "y": Home.POOLED}


def test_an_input_that_a_step_changes_stays_the_plans_own() -> None:
    x = Value("x", TensorType((64,)))
    schedule = make_schedule(Graph("g", [x], [(node := relu(x)).output], [node]), HARDWARE)
    (step,) = schedule.run
    first = step.dispatch.bindings[0]
    update = first._replace(slot=first.slot._replace(access=Access.UPDATE))
    bindings = (update, *step.dispatch.bindings[1:])
    schedule.run = [replace(step, dispatch=replace(step.dispatch, bindings=bindings))]
    give_ends(schedule)
    assert schedule.inputs["x"].block.home is Home.POOLED
    assert schedule.outputs[0][1].block.home is Home.GIVEN
