"""Inputs of text encoders: the numbers of word pieces, filled up to one length."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from webinfer.dtypes import DType
from webinfer.tensor import Tensor

IDS, MASK, KINDS = "input_ids", "attention_mask", "token_type_ids"
LENGTHS = (16, 32, 64, 128, 256)  # pieces: a text is filled up to the next, so that there are few plans


def token_inputs(
    infos: Sequence[Any], read: Sequence[Sequence[int]], padding: int, batch: int, length: int,
    kinds: Sequence[Sequence[int]] = (),
) -> dict[str, Tensor]:  # fmt: skip
    """An encoder's inputs for texts whose pieces are `read`, filled up to this length, and their number to `batch`.

    `kinds` are the numbers of the parts that pieces belong to; 0 where none are given.
    """
    ids = array("q", [padding]) * (batch * length)
    mask, parts = (array("q", bytes(8 * batch * length)) for _ in range(2))
    for row, numbers in enumerate(read):
        told = ((ids, numbers), (mask, [1] * len(numbers)), (parts, kinds[row] if kinds else ()))
        for numbers_of, values in told:
            numbers_of[row * length : row * length + len(values)] = array("q", values)
    given = {IDS: ids, MASK: mask, KINDS: parts}
    return {info.name: _as(given[info.name], (batch, length), info.dtype) for info in infos}


def _as(values: array[int], shape: tuple[int, int], dtype: DType) -> Tensor:
    """A tensor of numbers that are given in 64 bits, in the type of the model's input."""
    small = values if dtype is DType.INT64 else array(dtype.letter, memoryview(values).cast("B").cast("q"))
    return Tensor(small, shape, dtype)
