"""Models whose sizes are open: for which sizes plans are made, so that a package holds for all that occur.

A plan with symbols holds while its guards do: its regime. Sizes of several kinds are tried one after the other, and
what no plan holds for yet gets one.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from webinfer.backends.base import Executor
from webinfer.errors import InputError, UnsupportedOpError
from webinfer.session.inputs import TensorInfo
from webinfer.session.open_plans import OpenPlan
from webinfer.session.session import Session

Sample = dict[str, tuple[int, ...]]
# Sizes to try first: pictures in multiples of 32, the strides of most networks; a single one and a few, which are kinds
# of their own for many kernels. Then drawn ones, evenly by their logarithm.
PICTURES = (96, 161, 640)
LENGTHS = (24, 1, 7, 150, 2)
BATCHES = (1, 2)
DRAWN, MOST_BATCH = 300, 8
PICTURE_SPAN, LENGTH_SPAN = (32, 1280), (1, 512)
MAX_FAILURES = 12  # samples that no plan can be made for: a model has limits, and reading it takes time


def open_axes(inputs: Sequence[TensorInfo]) -> list[tuple[str, int]]:
    """The axes whose sizes are open: the input's name and the axis."""
    return [(info.name, i) for info in inputs for i, size in enumerate(info.shape) if not isinstance(size, int)]


def samples(inputs: Sequence[TensorInfo], grown: Collection[tuple[str, int]] = ()) -> Iterator[Sample]:
    """Sizes of all inputs to make plans for: what the file gives one name has one size.

    `grown` are axes of caches, an input's name and the axis, which begin with 0.
    """
    names = {axis: _name(inputs, *axis) for axis in open_axes(inputs)}
    symbols = list(dict.fromkeys(names.values()))
    ranks = {info.name: len(info.shape) for info in inputs}
    batches = [s for s in symbols if all(axis == 0 < ranks[n] - 1 for (n, axis), own in names.items() if own == s)]
    others = [symbol for symbol in symbols if symbol not in batches]
    both = {name for name, axis in names if ranks[name] == 4 and axis in (1, 2) and (name, axis + 1) in names}
    rows = [(batch, row) for batch in (BATCHES if batches else (0,)) for row in _rows(len(others), bool(both))]
    empty = {own for axis, own in names.items() if axis in grown}
    if empty:
        rows[1:1] = [
            (BATCHES[0], tuple(0 if symbol in empty else size for symbol in others)) for size in dict.fromkeys(LENGTHS)
        ]
    draw = random.Random(0)  # the same in each process: packages of one model are equal
    for _ in range(DRAWN):
        low, high = PICTURE_SPAN if both else LENGTH_SPAN
        one = -1 if both or len(others) < 2 else draw.randrange(2 * len(others))  # often one new token and some past
        row = tuple(
            1 if k == one else round(math.exp(draw.uniform(math.log(low), math.log(high)))) for k in range(len(others))
        )
        rows.append((draw.randint(1, MOST_BATCH), row))
    for batch, row in rows:
        chosen = dict.fromkeys(batches, batch) | dict(zip(others, row, strict=True))
        yield {
            info.name: tuple(
                size if isinstance(size, int) else chosen[names[info.name, i]] for i, size in enumerate(info.shape)
            )
            for info in inputs
        }


def _rows(count: int, are_pictures: bool) -> Iterator[tuple[int, ...]]:
    """Sizes for so many symbols. Last come equal ones, which a model may want."""
    step, sizes = (32, PICTURES) if are_pictures else (8, LENGTHS)
    rows = [tuple(size + step * k for k in range(count)) for size in sizes]
    if count > 1 and not are_pictures:  # one new token and a long past, and the other way round
        rows[1:1] = [tuple(1 if k == one else sizes[0] + step * k for k in range(count)) for one in range(count)]
        rows.append((1,) * count)
    rows += [(size,) * count for size in sizes if count > 1]
    yield from dict.fromkeys(rows)


def _name(inputs: Sequence[TensorInfo], name: str, axis: int) -> str:
    """What the file calls a size; those without a name are one for each axis."""
    own = next(info.shape[axis] for info in inputs if info.name == name)
    return f"?{axis}" if own == "?" else str(own)


def checked_samples(sizes: Sequence[Mapping[str, Sequence[int]]], inputs: Sequence[TensorInfo]) -> list[Sample]:
    """Sizes that a caller wants plans for.

    Raises:  InputError naming what does not fit the model
    """
    found = list[Sample]()
    for sample in sizes:
        for info in inputs:
            own = sample.get(info.name, info.shape)
            fits = len(own) == len(info.shape) and all(
                type(size) is int and size >= 0 and known in (size, str(known))
                for size, known in zip(own, info.shape, strict=False)
            )
            if not fits:
                raise InputError(
                    f"sizes has {tuple(own)} for {info.name!r}, which is {info.shape}: give a number for each open size"
                )
        found.append({info.name: tuple(sample.get(info.name, info.shape)) for info in inputs})
    return found


async def regimes_of(
    session: Session, sizes: Sequence[Mapping[str, Sequence[int]]], made: Callable[[Executor], None]
) -> list[OpenPlan]:
    """Plans that hold for the sizes, or for samples where none are given. `made` is told each executor.

    Raises:  UnsupportedOpError if sizes cannot be symbols; InputError as `checked_samples`
    """
    caches = session.read_caches()
    grown = [(row.input, row.axis) for row in caches.rows if row.axis is not None] if caches is not None else []
    wanted: Any = checked_samples(sizes, session.inputs) if sizes else samples(session.inputs, grown)
    failures, empty_only = 0, not sizes  # a package that runs nothing but an empty cache is of no use
    plans = list[OpenPlan]()
    for sample in wanted:
        found = await session.open_plan(sample, made)
        failures += found is None
        empty_only = empty_only and (found is None or any(0 in shape for shape in sample.values()))
        if found is not None and found not in plans:
            plans.append(found)
        if (found is None and sizes) or failures >= MAX_FAILURES:
            break
    if not plans or empty_only or (sizes and failures):
        axes = ", ".join(f"{info.name!r}: ({', '.join(map(str, info.shape))})" for info in session.inputs)
        raise UnsupportedOpError(
            [f"{session.name}: its sizes {axes} cannot stay open in a package; give `shapes`, or --shape INPUT=1x16"]
        )
    return plans
