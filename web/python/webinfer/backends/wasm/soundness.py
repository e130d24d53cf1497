"""The proof that a plan writes every byte before a step reads it. `plan.arena.check` proves that blocks share none.

It takes 1 to 3 % of the time of a load (CPython, four models); stored plans and packages were proved then.
What the steps write is what kernels.toml says of their kernels. Where data decides how much that is (lists of
detections, scatters), it says the most, and the guarded plans of the tests show that the rest is written too.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

from webinfer.backends.wasm.builder import Builder, Part
from webinfer.backends.wasm.kernel_table import KERNELS
from webinfer.errors import REPORT, CompilerError
from webinfer.graph.ir import Node, Value
from webinfer.ops.movement import PAD
from webinfer.plan.blocks import Block, Ref, Step
from webinfer.plan.coverage import Coverage, Levels, places_of, reach

Write = tuple[Ref, int, Levels]  # from where on, bytes side by side, steps from there
_COPIES = {"b8_copy": 1, "b16_copy": 2, "b32_copy": 4, "b64_copy": 8, "b32_transpose": 4}  # kernels that walk a nest


class Proof:
    """What is known of the memory of a builder's plan while its steps are walked."""

    def __init__(self, builder: Builder) -> None:
        self._builder, self._coverage = builder, Coverage()
        self._changed = {builder.ref(value).block for value in builder.graph.resident}
        self._appended = {builder.ref(value).block for value in builder.appended}
        self._nests: dict[Block, tuple[int, ...]] = {}
        for block, data in builder.constants.items():
            if data is not None:
                self._coverage.write(block, 0, block.nbytes)
        for block in builder.staged:
            self._coverage.write(block, 0, block.nbytes)

    def give(self, ref: Ref) -> None:
        """Notes a tensor that lies there before the steps: an input, or what lives from run to run."""
        self._coverage.write(ref.block, ref.offset, ref.offset + ref.room)

    def walk(self, part: Part) -> None:
        """Follows the steps of the load, or of a run.

        Raises:  CompilerError naming the step that reads what nothing has written
        """
        coverage = self._coverage
        for step, writes in zip(part.steps, part.writes, strict=True):
            targets = [ref for ref, _ in writes]
            for i in KERNELS[step.kernel].arrangement.pointers:
                ref = step.args[i]
                if isinstance(ref, Ref) and not any(ref is target for target in targets):
                    end = ref.block.nbytes if ref.end is None else ref.end
                    if (at := coverage.missing(ref.block, ref.offset, end)) >= 0:
                        self._refuse(ref, at, step)
            for ref, width, levels in self._places(step, writes):
                self._claim(ref, reach(width, levels), step)
                if levels:
                    coverage.write_places(ref.block, ref.offset, width, levels)
                else:
                    coverage.write(ref.block, ref.offset, ref.offset + width)

    def _claim(self, ref: Ref, nbytes: int, step: Step) -> None:
        """Raises what `walk` raises, if another node has written a byte that this step writes: one value lay there.

        A cast at the API fills what is appended to whole, and new rows come in the place of what it leaves there.
        """
        if step.node < 0 and ref.block in self._appended:
            return
        other = self._coverage.claim(ref.block, ref.offset, ref.offset + nbytes, step.node)
        if other != step.node and ref.block not in self._changed:
            one, two = (self._builder.graph.nodes[node].label for node in (step.node, other))
            raise CompilerError(f"{one} and {two} on wasm write the same bytes of {ref.block.name!r}; {REPORT}")

    def demand_output(self, name: str, ref: Ref) -> None:
        """Raises what `walk` raises, if the output is not written whole."""
        at = self._coverage.missing(ref.block, ref.offset, ref.offset + ref.room)
        if at >= 0:
            raise CompilerError(f"output {name!r} on wasm: byte {at - ref.offset} is never written; {REPORT}")

    def _refuse(self, ref: Ref, at: int, step: Step) -> None:
        node = self._builder.graph.nodes[step.node] if step.node >= 0 else None
        if node is not None and _mirrors(node, self._builder.ref(node.outputs[0]), ref):
            return
        told = f"{node.label}: {node.op.name}" if node is not None else "a conversion at the API"
        raise CompilerError(
            f"{told} on wasm: {step.kernel} reads byte {at} of {ref.block.name!r}, which nothing writes before; "
            f"{REPORT}"
        )

    def _places(self, step: Step, writes: Sequence[tuple[Ref, int]]) -> Iterator[Write]:
        """Where a step writes."""
        kinds, copied = KERNELS[step.kernel].arrangement.kinds, _COPIES.get(step.kernel)
        args: dict[str, Any] = dict(zip(kinds, step.args, strict=True)) if copied or "y_stride" in kinds else {}
        for ref, nbytes in writes:
            if copied is not None:
                yield self._copied(ref, copied, args)
            elif args and ref is args["y"]:  # channels of pixels, beside those of other groups
                stride = args["y_stride"] * (4 if step.kernel[0] == "f" else 1)
                count = args["n"] * args["oh"] * args["ow"]
                yield ref, nbytes - stride * (count - 1), ((stride, count),)
            else:
                yield ref, nbytes, ()

    def _copied(self, ref: Ref, itemsize: int, args: dict[str, Any]) -> Write:
        nest: Ref = args["nest"]
        words = self._nests.get(nest.block)
        if words is None:
            data = self._builder.data_of(nest.block)
            words = self._nests[nest.block] = struct.unpack(f"<{len(data) // 4}i", data)
        rank = words[0]
        sizes, strides = [*words[1 : 1 + rank]], [*words[1 + 2 * rank : 1 + 3 * rank]]
        if "y_step" in args:
            sizes += [args["rows"], args["columns"]]
            strides += [args["y_step"], 1]
        if low := sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True) if stride < 0):
            ref, strides = ref + low * itemsize, [abs(stride) for stride in strides]  # written downwards
        width, levels = places_of(sizes, strides)
        return ref, width * itemsize, [(stride * itemsize, count) for stride, count in levels]


def _mirrors(node: Node, result: Ref, ref: Ref) -> bool:
    """Whether a step reads the part of its own result that is there: mirrored edges are made axis by axis."""
    return node.op is PAD and node.attrs.mode != "constant" and ref.block is result.block and ref.end == result.end


def check_plan(builder: Builder, inputs: Sequence[Ref], outputs: Sequence[tuple[Value, Ref]]) -> None:
    """Nothing, if every byte of every tensor is written before it is read, also when memory is shared over time.

    Raises:  CompilerError naming the node, the step and the byte
    """
    proof = Proof(builder)
    for value in builder.graph.resident:
        proof.give(builder.ref(value))
    proof.walk(builder.prepare_part)
    for ref in inputs:
        proof.give(ref)
    proof.walk(builder.run_part)
    for value, ref in outputs:
        if value.type.size:
            proof.demand_output(value.name, ref)
