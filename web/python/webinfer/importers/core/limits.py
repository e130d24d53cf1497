"""How large a model may be, and the checks that hold it to that."""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.errors import LimitError, ModelFormatError

MAX_TENSORS = 100_000
MAX_OPERATORS = 100_000  # that a file lists
MAX_CONVERTED = 200_000  # operators that are converted, each turn of a loop counted
MAX_NODES = 200_000  # of the graph
MAX_SUBGRAPHS = 1_000
MAX_DEPTH = 8  # of loops and branches inside each other
MAX_CALLS = 32  # of functions inside each other; Python's own stack ends not far behind
MAX_LOOP_TURNS = 2_000  # that are unrolled
MAX_TURNS = 100_000  # of a loop that data ends
MAX_TIME_STEPS = 1024  # of a recurrent layer, each unrolled into some twenty nodes
MAX_FOLDED = 200_000  # elements that are computed while one model is read
MAX_READ = 65536  # elements of a constant that says a shape, axes or sizes
MAX_DECIDING = 64  # elements of a computed value on which shapes depend
MAX_RANK = 8
MAX_TENSOR_BYTES = 2**31 - 1  # one tensor must fit a wasm32 memory
MAX_STRIDE = 65536  # of a window, in elements; its size too
MAX_REACH = 2**24  # elements that a dilated window spans


def within(what: object, found: int, limit: int, todo: str = "use a smaller model") -> None:
    """Nothing, if `found` is no more than the limit.

    Raises:  LimitError saying what is too large and what to do
    """
    if found > limit:
        raise LimitError(str(what), found, limit, todo)


def check_index(value: int, count: int, what: object, optional: bool = False) -> int:
    """The index itself.

    Raises:  ModelFormatError unless 0 <= value < count, or -1 where the position is optional
    """
    if not (-1 if optional else 0) <= value < count:
        allowed = f"-1 or 0 to {count - 1}" if optional else f"0 to {count - 1}" if count else "none, as there are none"
        raise ModelFormatError(f"{what} is {value}, allowed: {allowed}; the file is damaged; download it again")
    return value


def check_indices(
    values: tuple[int, ...], count: int, what: object, role: str, optional: bool = False
) -> tuple[int, ...]:
    """The indices themselves; an error says what holds them and which of its `role` it is.

    Raises:  ModelFormatError unless each is what `check_index` wants
    """
    if values and (min(values) < (-1 if optional else 0) or max(values) >= count):
        for k, value in enumerate(values):
            check_index(value, count, f"{what}{role} {k}", optional)
    return values


def check_bytes(shape: Sequence[int], dtype: DType | None, what: object, part: str = "") -> None:
    """Nothing, if a tensor of this shape can be held; a size of zero does not hide a huge other size.

    Raises:  LimitError if it is too large
    """
    size = dtype.itemsize if dtype is not None else 1
    for d in shape:
        size *= max(d, 1)
    if size > MAX_TENSOR_BYTES:
        todo = "use a smaller input or model"
        raise LimitError(f"{what}: {part}{part and ': '}bytes of shape {tuple(shape)}", size, MAX_TENSOR_BYTES, todo)
