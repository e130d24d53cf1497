"""Lists of tensors, which are known while a model is read: nothing is left of them in the graph."""

from __future__ import annotations

from collections.abc import Iterable

from webinfer.dtypes import DType
from webinfer.graph.ir import TensorType, Value


class Listed(Value):
    """A list of tensors, where operators pass it on; None stands for what was not written yet."""

    def __init__(self, items: Iterable[Value | None], element: TensorType | None = None) -> None:
        super().__init__("list", TensorType((), DType.INT32))
        self.items, self.element = list(items), element
