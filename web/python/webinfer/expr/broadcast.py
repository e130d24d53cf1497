"""Index spaces of operators whose inputs are repeated along some axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from webinfer.expr.kernel import Axis, Kind, Read, Tensor, axes, sizes

Shape = Sequence[int]


def broadcast_reads(whole: Shape, inputs: Mapping[str, tuple[Shape, Kind]]) -> tuple[tuple[Axis, ...], list[Read]]:
    """The space of a result of this shape, and the element of each input at an index of it.

    Neighbouring axes along which the same inputs run are one axis.
    """
    shapes = [(1,) * (len(whole) - len(shape)) + tuple(shape) for shape, _ in inputs.values()]
    merged: list[tuple[int, tuple[bool, ...]]] = []  # a length, and which inputs run along it
    for d, n in enumerate(whole):
        runs = tuple(shape[d] == n for shape in shapes)
        if merged and merged[-1][1] == runs:
            merged[-1] = merged[-1][0] * n, runs
        elif n != 1:
            merged.append((n, runs))
    merged = [(1, merged[0][1] if merged else (False,) * len(inputs))] * (2 - len(merged)) + merged
    extents = sizes(**{f"n{d}": n for d, (n, _) in enumerate(merged)})
    space, reads = axes(**{f"i{d}": n for d, n in enumerate(extents)}), list[Read]()
    for k, (name, (_, kind)) in enumerate(inputs.items()):
        along = [d for d, (_, runs) in enumerate(merged) if runs[k]]
        tensor = Tensor(name, tuple(extents[d] for d in along) or extents[:1], kind)
        reads.append(tensor[tuple(space[d] for d in along) or 0])
    return space, reads
