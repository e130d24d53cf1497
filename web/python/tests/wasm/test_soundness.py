"""Plans whose tensors are not written in full, or lie on each other, are refused when they are loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import Target as RingTarget
from tests.plan.stacks import SHAPE, Stacks, all_forms, random_stacks

from webinfer.backends import reference, wasm
from webinfer.backends.wasm import builder as building
from webinfer.backends.wasm.builder import Builder
from webinfer.backends.wasm.executor import lower_graph
from webinfer.backends.wasm.lowerings.constants import narrow_output, widen_input
from webinfer.backends.wasm.soundness import check_plan
from webinfer.errors import CompilerError
from webinfer.graph.ir import Graph, TensorType, Value, apply
from webinfer.host.native import NativeHost
from webinfer.lowering.aliasing import find_aliases
from webinfer.ops.movement import CONCAT, PAD, ConcatAttrs, PadAttrs
from webinfer.plan import arena
from webinfer.plan.blocks import Block, Kind


def _check(graph: Graph, change: Callable[[Builder], None] = lambda builder: None) -> None:
    """Lowers a graph, changes the steps and checks the plan."""
    builder = lower_graph(graph, "simd128", None)
    change(builder)
    inputs = [widen_input(builder, value) for value in graph.inputs]
    outputs = [(value, narrow_output(builder, value)) for value in graph.outputs]
    for _, ref in outputs:
        builder.keep_alive(ref, len(builder.run_part.steps))
    check_plan(builder, inputs, outputs)
    blocks = [block for block in builder.run_part.blocks if block.kind is Kind.ARENA]
    arena.assign(blocks)
    arena.check(blocks)


def test_a_value_in_several_places_of_a_stack_is_in_all_of_them() -> None:
    RingTarget("wasm", (("isa", "simd128"),)).demand()
    graph, host = all_forms(), NativeHost()
    data = np.random.default_rng(3).uniform(-2, 2, SHAPE).astype(np.float32)
    found = []
    for backend in (reference, wasm):
        executor = run(backend.build(graph, host))
        found.append(run(executor.run({"x": memoryview(data.tobytes())})))
        executor.close()
    for name, tensor in found[0].items():
        np.testing.assert_array_equal(found[1][name].numpy(), tensor.numpy(), name)


@pytest.mark.parametrize("mode", ["reflect", "edge", "symmetric"])
def test_images_that_are_padded_on_all_sides_are_written_in_full(mode: str) -> None:
    """Several of them: rows of their middles have gaps of two kinds."""
    x = Value("x", TensorType((2, 3, 5, 4)))
    pad = apply(PAD, [x], PadAttrs((0, 0, 2, 1), (0, 0, 1, 2), mode=mode), "pad")
    _check(Graph("padded", [x], list(pad.outputs), [pad]))


def test_random_views_and_stacks_are_written_in_full() -> None:
    for seed in range(200):
        _check(random_stacks(seed))


def test_parts_in_one_place_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def at_the_start(*args: Any) -> Any:
        return {value: (owner, 0) for value, (owner, _) in find_aliases(*args).items()}

    monkeypatch.setattr(building, "find_aliases", at_the_start)
    s = Stacks()
    s.output(s.joined(s.computed(), s.computed(s.x)))
    with pytest.raises(CompilerError, match="a1 and a0 on wasm write the same bytes of 'c2'"):
        _check(s.graph)


def _columns() -> Graph:
    """Two values side by side: both are moved into the result."""
    s = Stacks()
    node = apply(CONCAT, [s.computed(), s.computed()], ConcatAttrs(1), "c2")
    s.graph.nodes.append(node)
    s.output(node.output)
    return s.graph


def _leave_out(builder: Builder, step: int) -> None:
    del builder.run_part.steps[step], builder.run_part.writes[step]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (0, "c2: concat on wasm: b32_copy reads byte 0 of 'a0', which nothing writes before"),
        (2, "output 'c2' on wasm: byte 0 is never written"),
        (3, "output 'c2' on wasm: byte 64 is never written"),
    ],
)
def test_a_step_that_is_missing_is_found(step: int, message: str) -> None:
    with pytest.raises(CompilerError, match=message):
        _check(_columns(), lambda builder: _leave_out(builder, step))


def test_blocks_that_lie_on_each_other_are_found() -> None:
    blocks = [Block(name, 64, Kind.ARENA, first, last) for name, first, last in (("a", 0, 2), ("b", 1, 3), ("c", 3, 4))]
    arena.assign(blocks)
    arena.check(blocks)
    blocks[1].address = blocks[0].address + 64
    with pytest.raises(CompilerError, match="blocks 'b' and 'a' lie on each other"):
        arena.check(blocks)
    blocks[1].address, blocks[2].address = 160, 80
    arena.check(blocks)
    blocks[2].address = 112
    with pytest.raises(CompilerError, match="blocks 'c' and 'b' lie on each other"):
        arena.check(blocks)


@pytest.mark.parametrize("mode", ["reflect", "edge", "symmetric"])
def test_mirrored_edges_of_several_axes_are_written_in_full(mode: str) -> None:
    s = Stacks()
    image = s.view(s.computed(), 2, 4, 4, 4)
    s.graph.nodes.append(apply(PAD, [image], PadAttrs((1, 0, 2, 1), (0, 3, 1, 2), mode=mode), "padded"))
    s.output(s.graph.nodes[-1].output)
    _check(s.graph)
