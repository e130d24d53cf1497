"""Sparse tensors outside of a session, with ONNX Runtime's views of them; sessions read them as dense ones."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from webinfer.compat.onnxruntime.types import tensor_type

if TYPE_CHECKING:
    from webinfer.compat.onnxruntime.values import OrtDevice


class OrtSparseFormat(enum.IntEnum):
    """How a sparse tensor says where its values lie."""

    ORT_SPARSE_UNDEFINED = 0
    ORT_SPARSE_COO = 1
    ORT_SPARSE_CSRC = 2
    ORT_SPARSE_BLOCK_SPARSE = 4


class SparseCooView:
    """The places of values: positions in the flattened tensor (values), or rows and columns (values, 2); int64."""

    def __init__(self, indices: Any) -> None:
        self._indices = indices

    def indices(self) -> Any:
        """The places."""
        return self._indices


class SparseCsrView:
    """The column of each value, and for each row where its values begin; int64."""

    def __init__(self, inner: Any, outer: Any) -> None:
        self._inner, self._outer = inner, outer

    def inner(self) -> Any:
        """The columns (values)."""
        return self._inner

    def outer(self) -> Any:
        """The beginnings (rows + 1)."""
        return self._outer


class SparseTensor:
    """Values, their places, and the sizes of the whole. The arrays are shared, not copied."""

    def __init__(self, sparse_tensor: Any) -> None:
        """A tensor over what another one has; `sparse_coo_from_numpy` and `sparse_csr_from_numpy` make new ones."""
        self._shape: tuple[int, ...] = sparse_tensor._shape
        self._values, self._view = sparse_tensor._values, sparse_tensor._view

    @classmethod
    def _made(cls, shape: Sequence[int], values: Any, view: Any) -> SparseTensor:
        made = cls.__new__(cls)
        made._shape, made._values, made._view = tuple(int(size) for size in shape), values, view
        return made

    @staticmethod
    def sparse_coo_from_numpy(
        dense_shape: Sequence[int], values: Any, coo_indices: Any, ort_device: OrtDevice
    ) -> SparseTensor:
        """A tensor of values (n) at positions in the flattened tensor (n), or at rows and columns (n, 2) or (2 n).

        Raises:  RuntimeError if the counts differ
        """
        import numpy as np

        indices, count = np.asarray(coo_indices, np.int64), len(values)
        if indices.size not in (count, 2 * count):
            text = f"Index size: {indices.size} must be equal to or twice the values size: {count}"
            raise RuntimeError(text)
        view = SparseCooView(indices if indices.size == count else indices.reshape(count, 2))
        return SparseTensor._made(dense_shape, values, view)

    @staticmethod
    def sparse_csr_from_numpy(
        dense_shape: Sequence[int], values: Any, inner_indices: Any, outer_indices: Any, ort_device: OrtDevice
    ) -> SparseTensor:
        """A tensor (rows, columns) of values (n) at columns (n), the rows of which begin where `outer_indices` says.

        Raises:  RuntimeError if the counts differ
        """
        import numpy as np

        inner, outer = np.asarray(inner_indices, np.int64), np.asarray(outer_indices, np.int64)
        if inner.size != len(values):
            raise RuntimeError(f"Expecting inner index size: {inner.size} the same as values size: {len(values)}")
        if outer.size not in (0, dense_shape[0] + 1):
            text = f"Outer index count must be rows + 1 or zero. Got: {outer.size} rows: {dense_shape[0]}"
            raise RuntimeError(text)
        return SparseTensor._made(dense_shape, values, SparseCsrView(inner, outer))

    def values(self) -> Any:
        """The values."""
        return self._values

    def dense_shape(self) -> list[int]:
        """The sizes of the whole."""
        return list(self._shape)

    def format(self) -> OrtSparseFormat:
        """How the places are given."""
        is_coo = isinstance(self._view, SparseCooView)
        return OrtSparseFormat.ORT_SPARSE_COO if is_coo else OrtSparseFormat.ORT_SPARSE_CSRC

    def as_coo_view(self) -> SparseCooView:
        """The places, if they are coordinates. Raises: RuntimeError."""
        if not isinstance(self._view, SparseCooView):
            raise RuntimeError("This sparse tensor does not contain COO format")
        return self._view

    def as_csrc_view(self) -> SparseCsrView:
        """The places, if they are by rows. Raises: RuntimeError."""
        if not isinstance(self._view, SparseCsrView):
            raise RuntimeError("This sparse tensor does not contain CSR(C) format")
        return self._view

    def as_blocksparse_view(self) -> Any:
        """Refused: no function of the Python interface makes such tensors. Raises: RuntimeError."""
        raise RuntimeError("This sparse tensor does not contain BlockSparse format")

    def to_cuda(self, ort_device: OrtDevice) -> SparseTensor:
        """Refused. Raises: RuntimeError."""
        raise RuntimeError("Cuda is not available in this build")

    def data_type(self) -> str:
        """The type, as "sparse_tensor(float)"."""
        return f"sparse_{tensor_type(self._values.dtype)}"

    def device_name(self) -> str:
        """The device: "cpu"."""
        return "cpu"

    def _dense(self) -> Any:
        """The whole tensor, with zeros.

        Raises:  IndexError if a place lies outside
        """
        import numpy as np

        found, view = np.zeros(self._shape, self._values.dtype), self._view
        if isinstance(view, SparseCsrView):
            rows = np.repeat(np.arange(max(len(view.outer()) - 1, 0)), np.diff(view.outer()))
            found[rows, view.inner()] = self._values
        elif view.indices().ndim == 2 and len(self._shape) == 2:
            found[tuple(view.indices().T)] = self._values
        else:
            found.reshape(-1)[view.indices().reshape(-1)] = self._values
        return found
