"""STRIDED_SLICE with its five masks, said as a slice and a reshape."""

from __future__ import annotations

from dataclasses import dataclass, field

from webinfer.errors import ModelFormatError
from webinfer.graph.ir import Value
from webinfer.importers.tflite.operation import Operation
from webinfer.ops import movement as mv


@dataclass(slots=True)
class _Cut:
    """The slice of each axis of x, and the shape that is left when axes are dropped or added."""

    starts: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    shape: list[int] = field(default_factory=list)

    def whole(self, size: int) -> None:
        self.add(0, size, 1)
        self.shape.append(size)

    def add(self, start: int, size: int, step: int) -> None:
        self.starts.append(start if size else 0)
        self.sizes.append(size)
        self.steps.append(step)


def strided_slice(op: Operation) -> Value:
    """x[begin:end:step, ...] with masks.

    Source:  tensorflow v2.18, lite/kernels/internal/strided_slice_logic.h
    """
    x, begin, end, steps = op.value(0), op.integers(1), op.integers(2), op.integers(3)
    if not len(begin) == len(end) == len(steps) or 0 in steps:
        raise ModelFormatError(f"{op.info}: begin {begin}, end {end}, strides {steps} do not belong together")
    ellipsis, new_axis = op.number("ellipsis_mask"), op.number("new_axis_mask")
    if ellipsis.bit_count() > 1:
        raise ModelFormatError(f"{op.info}: ellipsis_mask {ellipsis:#x} names more than one position")
    named = sum(1 for i in range(len(begin)) if not (new_axis | ellipsis) >> i & 1)
    if named > x.type.rank:
        raise ModelFormatError(f"{op.info}: {named} positions for the {x.type.rank} axes of {x.type.shape}")
    cut, axis = _Cut(), 0
    for i in range(len(begin)):
        if ellipsis >> i & 1:
            for size in x.type.shape[axis : axis + x.type.rank - named]:
                cut.whole(size)
            axis += x.type.rank - named
        elif new_axis >> i & 1:
            cut.shape.append(1)
        else:
            _cut_axis(op, cut, x.type.shape[axis], (begin[i], end[i], steps[i]), i)
            axis += 1
    for size in x.type.shape[axis:]:
        cut.whole(size)
    y = op.emit(mv.SLICE, [x], mv.SliceAttrs(tuple(cut.starts), tuple(cut.sizes), tuple(cut.steps)))
    return op.reshape(y, cut.shape)


def _cut_axis(op: Operation, cut: _Cut, size: int, numbers: tuple[int, int, int], i: int) -> None:
    begin, end, step = numbers
    begin_masked, end_masked = op.number("begin_mask") >> i & 1, op.number("end_mask") >> i & 1
    if op.number("shrink_axis_mask") >> i & 1:
        start = 0 if begin_masked else begin + size if begin < 0 else begin
        if not 0 <= start < size or step < 0:
            raise ModelFormatError(f"{op.info}: position {begin} with step {step} is not on an axis of {size}")
        cut.add(start, 1, 1)
        return
    if op.flag("offset"):  # end counts from begin
        end = end + begin
    wanted = slice(None if begin_masked else begin, None if end_masked else end, step)
    start, stop, step = wanted.indices(size)
    count = len(range(start, stop, step))
    cut.add(start, count, step)
    cut.shape.append(count)
