"""State that grows: what a decoder gives out as its past's next value is kept, and fed to the next run.

A decode loop feeds tokens only. Where the executor can, the tensors stay in its memory: nothing is copied in and out.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from webinfer.backends.base import StateInput
from webinfer.dtypes import DType
from webinfer.errors import InputError
from webinfer.importers.core.caches import CacheRow, Caches, by_name
from webinfer.session.inputs import TensorInfo
from webinfer.tensor import Tensor

TOKENS = ("input_ids", "decoder_input_ids", "inputs_embeds", "tokens")  # whose second axis are the new tokens
LETTERS = {DType.INT64: "q", DType.INT32: "i", DType.BOOL: "B"}


class KvCache:
    """The keys and values, or another state, of one sequence or batch; `Session.run` takes it as `kv_cache`.

    Between runs it holds the outputs that are the next values of inputs. Inputs that follow from how many tokens it
    holds may be left out: `attention_mask` (ones), `position_ids`, `cache_position` (counted on), `use_cache_branch`.
    """

    def __init__(
        self, model: str, caches: Caches | None, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> None:
        caches = caches or Caches()
        self._model, self._types = model, {info.name: info.dtype for info in inputs}
        self._shapes = {info.name: tuple(info.shape) for info in inputs} | caches.shapes
        self._rows = list(caches.rows)
        if not self._rows:
            names = [info.name for info in outputs]
            self._rows = [CacheRow(past, then, None) for past, then in by_name(self._types, names).items()]
        if not self._rows:
            raise InputError(
                f"{model!r} has no input whose next value is an output; its inputs are "
                f"{', '.join(self._types)}, its outputs {', '.join(info.name for info in outputs)}"
            )
        self._values: dict[str, StateInput] = {}
        self._seen = self._new = 0  # tokens of the runs before, and of this one, where an input says them

    @property
    def names(self) -> dict[str, str]:
        """The output that is the next value of each input that the cache feeds."""
        return {row.input: row.output for row in self._rows}

    @property
    def length(self) -> int:
        """How many tokens the cache holds; 0 before the first run, and of a cache whose sizes stay.

        Layers with a window may hold fewer than others, which count.
        """
        grows = [row for row in self._rows if row.axis is not None and row.input in self._values]
        return max((self._values[row.input].shape[row.axis or 0] for row in grows), default=0)

    def tensors(self) -> dict[str, Tensor]:
        """What the next run is fed, by input; nothing before the first run.

        Raises:  InputError if it is on the GPU of a page, which has to be awaited: `read`
        """
        return {name: state.tensor() for name, state in self._values.items()}

    async def read(self) -> dict[str, Tensor]:
        """As `tensors`, also where they are on the GPU of a page.

        Raises:  DeviceLostError
        """
        return {name: await state.read() for name, state in self._values.items()}

    def reset(self) -> None:
        """Forgets everything: the next run begins with an empty past."""
        for state in self._values.values():
            state.close()
        self._values, self._seen, self._new = {}, 0, 0

    def feed(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs with the caches, and with what follows from their length.

        Raises:  InputError if a size of the first, empty past is open and no input says it
        """
        if not isinstance(inputs, Mapping):
            raise InputError(f"{self._model!r} with a cache needs a mapping of inputs, not a {type(inputs).__name__}")
        fed = dict(inputs)
        sizes = self._sizes(fed)
        for row in self._rows:
            if row.input not in fed:
                state = self._values.get(row.input)
                fed[row.input] = state or StateInput(row.input, row.output, self._empty(row, sizes))
        return fed | self._counted(fed)

    def take(self, results: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The results without the caches, which are kept; an empty one, as of a branch not taken, changes nothing."""
        left = dict(results)
        self._seen, self._new = self._seen + self._new, 0
        for row in self._rows:
            found: Any = left.pop(row.output)
            if isinstance(found, StateInput):
                self._values[row.input] = found
            elif found.nbytes or row.input not in self._values:
                self._values[row.input] = StateInput(row.input, row.output, found)
        return left

    def _sizes(self, fed: Mapping[str, Any]) -> dict[str, int]:
        """The sizes of the file's named axes, as far as inputs say them."""
        sizes: dict[str, int] = {}
        for name, declared in self._shapes.items():
            shape = getattr(fed.get(name), "shape", None)
            if shape is not None and len(shape) == len(declared):
                sizes |= {d: int(n) for d, n in zip(declared, shape, strict=True) if isinstance(d, str) and d}
        return sizes

    def _empty(self, row: CacheRow, sizes: Mapping[str, int]) -> Tensor:
        shape = []
        for i, size in enumerate(self._shapes[row.input]):
            if isinstance(size, int) and i != row.axis:
                shape.append(size)
            elif i == row.axis:
                shape.append(0)
            elif size in sizes or i == 0:
                shape.append(sizes.get(size, 1))  # a batch of one where nothing says how many
            else:
                raise InputError(
                    f"the size {size!r} of {row.input!r} {self._shapes[row.input]} is open and no input says it; feed "
                    "the first past yourself"
                )
        dtype = self._types[row.input]
        return Tensor(bytes(_count(shape) * dtype.itemsize), tuple(shape), dtype)

    def _counted(self, fed: Mapping[str, Any]) -> dict[str, Tensor]:
        """Those inputs that are not given and follow from the length."""
        shape = next((fed[name].shape for name in TOKENS if hasattr(fed.get(name), "shape")), None)
        if shape is None or len(shape) < 2:
            return {}
        (batch, new), past = map(int, shape[:2]), max(self.length, self._seen)  # all layers may have a window
        self._new = new
        numbers = {
            "attention_mask": ((batch, past + new), [1] * (batch * (past + new))),
            "position_ids": ((batch, new), [*range(past, past + new)] * batch),
            "cache_position": ((new,), [*range(past, past + new)]),
            "use_cache_branch": ((1,), [int(past > 0)]),
        }
        return {
            name: Tensor(array(LETTERS[self._types[name]], values).tobytes(), size, self._types[name])
            for name, (size, values) in numbers.items()
            if name not in fed and self._types.get(name) in LETTERS
        }


def _count(shape: Sequence[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count
