"""The proof that a schedule writes every byte before a dispatch reads it, and that no two blocks that live together
share a buffer. What a dispatch writes is checked in `writes`; here it is followed through memory.

It takes 1 to 3 % of the time of a load (CPython, four models, shaders not counted); stored plans and packages were
proved when they were made.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from webinfer.backends.webgpu.dispatch import Dispatch
from webinfer.backends.webgpu.memory import Block, Home
from webinfer.backends.webgpu.schedule import Schedule, Step
from webinfer.backends.webgpu.writes import IN_PARTS, itemsize, nbytes_of
from webinfer.codegen.prelude import Access
from webinfer.errors import REPORT, CompilerError
from webinfer.graph.ir import Value
from webinfer.plan.coverage import Coverage, Levels, places_of

Place = tuple[int, int, Levels]  # bytes: start, what lies side by side, steps from there


def check_schedule(schedule: Schedule) -> None:
    """Nothing, if every byte of every tensor is written before it is read, and buffers are shared over time only.

    Raises:  CompilerError naming the node, the dispatch and the byte
    """
    written = Coverage()
    for block in schedule.blocks:
        if block.data is not None:
            written.write(block, 0, block.nbytes)
    for region in (schedule.values[value] for value in schedule.graph.resident if value in schedule.values):
        written.write(region.block, 0, region.block.nbytes)
    for step in schedule.prepare:
        _follow(step, written, schedule)
    for region in schedule.inputs.values():
        written.write(region.block, 0, region.block.nbytes)
    for step in schedule.run:
        _follow(step, written, schedule)
    for value, region in schedule.outputs:
        at = written.missing(region.block, region.offset, region.offset + value.type.nbytes)
        if at >= 0:
            raise CompilerError(
                f"output {value.name!r} on webgpu: byte {at - region.offset} is never written; {REPORT}"
            )
    _check_buffers(schedule)


def _follow(step: Step, written: Coverage, schedule: Schedule) -> None:
    """What a dispatch reads is demanded, what it writes is noted."""
    dispatch, found, buffers = step.dispatch, list[tuple[Block, Place]](), dict[int, bool]()
    in_parts = dispatch.shader in IN_PARTS or (dispatch.shader == "strided_copy" and bool(dispatch.variables["update"]))
    for binding, region in zip(dispatch.bindings, step.regions, strict=True):
        access, (block, offset, nbytes) = binding.slot.access, region
        reading = access is Access.READ
        if block.buffer >= 0 and buffers.setdefault(block.buffer, reading) is not reading:
            raise CompilerError(f"{_told(step, schedule)} reads and writes the buffer of {block.label!r}; {REPORT}")
        updated = access is Access.UPDATE and not in_parts and isinstance(binding.source, Value)
        if reading or updated:  # of a node's own scratch its shader knows what it has written
            at = written.missing(block, offset, offset + min(nbytes, nbytes_of(binding.source)))
            if at >= 0:
                raise CompilerError(
                    f"{_told(step, schedule)} reads byte {at} of {block.label!r} as {binding.slot.name}, which nothing "
                    f"writes before; {REPORT}"
                )
        if not reading:
            size = itemsize(binding.slot.element)
            places: Iterable[Place] = _places(dispatch, size) if in_parts else ((0, nbytes, ()),)
            found += [(block, (offset + start, width, levels)) for start, width, levels in places]
    for block, place in found:
        written.write_places(block, *place)


def _places(dispatch: Dispatch, size: int) -> Iterable[Place]:
    """What a dispatch writes that leaves places between for others; `size` are the bytes of an element."""
    p: dict[str, Any] = {param.name: param.value for param in dispatch.params} | dict(dispatch.variables)
    if dispatch.shader == "concat_parts":
        unit = size * (4 if p["quads"] else 1)
        for part in range(p["parts"]):
            rows = p["row"] * unit, p["units"] // p["width"]
            yield p[f"at{part}"] * unit, p[f"size{part}"] * unit, (rows,)
        return
    unit = size * (4 if dispatch.shader == "strided_copy_vec4" else 1)
    width, levels = places_of(p["size"][: p["rank"]], p["target_stride"][: p["rank"]])
    yield p["target_offset"] * unit, width * unit, [(stride * unit, count) for stride, count in levels]


def _check_buffers(schedule: Schedule) -> None:
    """Nothing, if each pooled block has its buffer for itself as long as steps use it."""
    last: dict[int, Block] = {}
    for number, step in enumerate(schedule.run):
        for block, _, _ in step.regions:
            if block.home is Home.POOLED and not block.first <= number <= block.last:
                raise CompilerError(f"{_told(step, schedule)} uses {block.label!r} when that is over; {REPORT}")
    for block in sorted((b for b in schedule.blocks if b.home is Home.POOLED), key=lambda b: b.first):
        before = last.get(block.buffer)
        if before is not None and before.last >= block.first:
            raise CompilerError(f"{block.label!r} and {before.label!r} lie in one buffer on webgpu; {REPORT}")
        last[block.buffer] = block


def _told(step: Step, schedule: Schedule) -> str:
    node = schedule.graph.nodes[step.node] if step.node >= 0 else None
    return (
        f"{node.label}: {node.op.name} on webgpu: {step.dispatch.name}"
        if node is not None
        else f"webgpu: {step.dispatch.name}"
    )
