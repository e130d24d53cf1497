"""Values in several places of a concatenation, and schedules whose tensors are not written in full."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import Target as RingTarget
from tests.plan.stacks import SHAPE, SIZE, Stacks, all_forms, random_stacks
from tests.webgpu.devices import HARDWARE
from tests.webgpu.disguised import disguised

from webinfer.backends import reference, webgpu
from webinfer.backends.webgpu import schedule as scheduling
from webinfer.backends.webgpu.aliasing import bindable_aliases
from webinfer.backends.webgpu.executor import _recipe
from webinfer.backends.webgpu.schedule import Schedule, make_schedule
from webinfer.backends.webgpu.soundness import check_schedule
from webinfer.errors import CompilerError
from webinfer.graph.ir import Graph, apply
from webinfer.lowering.aliasing import Aliases
from webinfer.ops.movement import CONCAT, ConcatAttrs


def test_a_value_in_several_places_of_a_stack_is_in_all_of_them() -> None:
    RingTarget("webgpu").demand()
    graph, host = all_forms(), disguised()
    data = np.random.default_rng(3).uniform(-2, 2, SHAPE).astype(np.float32)
    found = []
    for backend in (reference, webgpu):
        executor = run(backend.build(graph, host))
        found.append(run(executor.run({"x": memoryview(data.tobytes())})))
        executor.close()
    want, got = found
    for name, tensor in want.items():
        np.testing.assert_array_equal(got[name].numpy(), tensor.numpy(), name)


def _planned(graph: Graph) -> Schedule:
    schedule = make_schedule(graph, HARDWARE)
    _recipe(schedule, 256)
    return schedule


def test_random_views_and_stacks_are_written_in_full() -> None:
    for seed in range(300):
        check_schedule(_planned(random_stacks(seed)))


def _all_at_the_start(graph: Graph, *args: object) -> Aliases:
    return {value: (owner, 0) for value, (owner, _) in bindable_aliases(graph, *args).items()}  # type: ignore[arg-type]


def _without(place: int) -> Callable[[Schedule], None]:
    def change(schedule: Schedule) -> None:
        del schedule.run[place]

    return change


def _in_one_buffer(schedule: Schedule) -> None:
    for block in schedule.blocks:
        block.buffer = 0


def _two_in_one_buffer(schedule: Schedule) -> None:
    a, b = (schedule.values[node.output].block for node in schedule.graph.nodes[:2])
    b.buffer = a.buffer


def _ends_early(schedule: Schedule) -> None:
    schedule.values[schedule.graph.nodes[0].output].block.last = 1


def test_parts_in_one_place_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduling, "bindable_aliases", _all_at_the_start)
    s = Stacks()
    s.output(s.joined(s.computed(), s.computed(s.x)))
    with pytest.raises(CompilerError, match=f"output 'c2' on webgpu: byte {4 * SIZE} is never written"):
        check_schedule(_planned(s.graph))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_without(0), "c2: concat on webgpu: concat_parts reads byte 0 of 'a0' as x0, which nothing writes before"),
        (_without(2), "output 'c2' on webgpu: byte 0 is never written"),
        (_in_one_buffer, "a0: abs on webgpu: elementwise_unary reads and writes the buffer of 'a0'"),
        (_two_in_one_buffer, "'a1' and 'a0' lie in one buffer on webgpu"),
        (_ends_early, "c2: concat on webgpu: concat_parts uses 'a0' when that is over"),
    ],
)
def test_what_is_not_written_is_found(change: Callable[[Schedule], None], message: str) -> None:
    s = Stacks()
    node = apply(CONCAT, [s.computed(), s.computed()], ConcatAttrs(1), "c2")  # of columns: moved, not in place
    s.graph.nodes.append(node)
    s.output(node.output)
    schedule = _planned(s.graph)
    check_schedule(schedule)
    change(schedule)
    with pytest.raises(CompilerError, match=message):
        check_schedule(schedule)
