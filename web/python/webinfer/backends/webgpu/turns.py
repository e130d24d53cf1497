"""A loop's turns on a GPU: several are submitted before the first one's condition is waited for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from typing import Any

from webinfer.graph.ir import Graph
from webinfer.host.gpu import Arrival, Span

Start = Callable[[Sequence[Span], Sequence[tuple[int, Any]]], Awaitable[Arrival]]  # reads, inputs: submits a turn
Read = Callable[[Span], Awaitable[memoryview]]

MOST = 64  # turns that are submitted before one is waited for: a loop of 64 took 23 ms for 31 (Mesa, 2026-11-28)
READ_BYTES = 1 << 16  # of the states that are read with each turn which may be the last


class QueuedTurns:
    """The turns of a loop on the program of its turn. Nothing else may run there before the last one.

    A turn's inputs stay as they are during it, but for those that are `changed`. What turns carry is copied on the GPU.
    Where data ends the loop, turns behind its last one have run for nothing, so the states come with the conditions.
    """

    def __init__(
        self, graph: Graph, buffers: Mapping[str, int], spans: Mapping[str, Span], start: Start, read: Read,
        inputs: Mapping[str, Any], carried: Mapping[str, str], shown: Sequence[str], changed: Set[str],
    ) -> None:  # fmt: skip
        """`buffers` hold the graph's inputs, `spans` are where outputs lie that have elements.

        `carried` maps outputs to the inputs that they are in the next turn; `shown` are outputs to read each turn.
        """
        self._spans, self._start, self._read, self._shown = spans, start, read, list(shown)
        number, *others = (value.name for value in graph.inputs)
        self._number, self._turn, self._at_once = buffers[number], 0, 1
        self._first = [(buffers[name], inputs[name]) for name in others]
        self._states = {name: end for end, name in carried.items() if end in spans}
        self._next: list[tuple[int, Any]] = [(buffers[name], spans[end]) for name, end in self._states.items()]
        self._next += [(buffers[name], inputs[name]) for name in others if name in changed - {*carried.values()}]
        is_counted = graph.outputs[0] in graph.fixed_values()
        is_small = sum(spans[end].nbytes for end in self._states.values()) <= READ_BYTES
        self._room = MOST if is_counted or is_small else 1
        reads = [*shown, *(() if is_counted or not is_small else self._states.values())]
        self._reads = [name for name in dict.fromkeys(reads) if name in spans]
        self._last: Mapping[str, memoryview] = {}

    async def turns(self, most: int) -> tuple[int, bool, list[list[memoryview]]]:
        """Runs the next turns, at most so many: how many ran, whether the loop goes on, what each output listed."""
        count, lists = min(most, self._at_once), [list[memoryview]() for _ in self._shown[1:]]
        self._at_once = min(self._at_once * 2, self._room)
        done = 0
        for arrived in [await self._submit() for _ in range(count)]:
            self._last = dict(zip(self._reads, await arrived(), strict=True))
            done += 1
            for listed, name in zip(lists, self._shown[1:], strict=True):
                listed.append(self._last.get(name, memoryview(b"")))
            if not any(self._last[self._shown[0]]):
                return done, False, lists
        return done, True, lists

    async def _submit(self) -> Arrival:
        given = [(self._number, memoryview(self._turn.to_bytes(8, "little")))]
        given += self._next if self._turn else self._first
        self._turn += 1
        return await self._start([self._spans[name] for name in self._reads], given)

    async def held(self, name: str) -> memoryview:
        """What an input that is carried is in the next turn."""
        end = self._states.get(name)
        if end is None or end in self._last:
            return self._last[end] if end else memoryview(b"")
        return await self._read(self._spans[end])


def can_queue(buffers: Mapping[str, int], spans: Mapping[str, Span], carried: Mapping[str, str]) -> bool:
    """Whether copies of whole buffers bring each state to the next turn."""
    ends = [span for name, span in spans.items() if name in carried]
    return not any(span.offset for span in ends) and {span.buffer for span in ends}.isdisjoint(buffers.values())
