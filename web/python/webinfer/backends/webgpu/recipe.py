"""What a GPU program is made of, as plain data: all that loading and running need, without a graph's nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webinfer.backends.base import BufferBinding, MemoryReport
from webinfer.host.gpu import PipelineSpec, Span
from webinfer.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Order:
    """One dispatch: its shader, what it binds (the place of its parameters last), and its workgroups."""

    pipeline: PipelineSpec
    bindings: tuple[Span, ...]
    groups: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Recipe:
    """Buffers, dispatches, and where inputs and outputs lie.

    The first `prepare` dispatches run once, at load; then the buffers `staged` are freed. `given` are those in whose
    place others bring their own. The buffer behind the last one of `sizes` holds the `uniforms`.

    Units:  `sizes` are bytes
    """

    sizes: list[int]
    uniforms: bytes
    orders: list[Order]
    prepare: int
    writes: list[tuple[int, Any]]  # what load uploads: a buffer's number, bytes
    staged: list[int]
    given: list[int]
    inputs: Mapping[str, BufferBinding]
    outputs: list[BufferBinding]  # of the graph's outputs, in order
    memory: MemoryReport
