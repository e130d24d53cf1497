"""`Interpreter`: allocate, set inputs by their index, invoke, get outputs by theirs; or call a signature by name."""

from __future__ import annotations

import enum
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import webinfer
from webinfer.importers import formats

__all__ = ["Delegate", "Interpreter", "OpResolverType", "SignatureRunner", "load_delegate"]


class OpResolverType(enum.Enum):
    """Which kernels an interpreter takes; webinfer has one set."""

    AUTO = 0
    BUILTIN = 1
    BUILTIN_REF = 2
    BUILTIN_WITHOUT_DEFAULT_DELEGATES = 3


class Delegate:
    """Refused: webinfer has backends instead.

    Raises:  ValueError
    """

    def __init__(self, library: str, options: Mapping[str, Any] | None = None) -> None:
        raise ValueError(
            f"Failed to load delegate from {library}: webinfer has no delegates, it compiles models itself"
        )


def load_delegate(library: str, options: Mapping[str, Any] | None = None) -> Delegate:
    """Refused, as `Delegate`. Raises: ValueError."""
    return Delegate(library, options)


class Interpreter:
    """A TFLite model. `get_tensor_details` lists inputs and outputs alone: what lies between is compiled away."""

    def __init__(
        self,
        model_path: str | os.PathLike[str] | None = None,
        model_content: bytes | None = None,
        experimental_delegates: Sequence[Any] | None = None,
        num_threads: int | None = None,
        experimental_op_resolver_type: OpResolverType = OpResolverType.AUTO,
        experimental_preserve_all_tensors: bool = False,
        **options: Any,
    ) -> None:
        if num_threads is not None and not isinstance(num_threads, int):
            raise ValueError("type of num_threads should be int")
        if num_threads is not None and num_threads < 1:
            raise ValueError("num_threads should >= 1")
        if experimental_delegates:
            raise ValueError("webinfer has no delegates, it compiles models itself")
        self._data = _content(model_path, model_content)
        self._threads = num_threads
        self._sizes: dict[str, tuple[int, ...]] = {}  # of inputs that were resized
        self._session = self._loaded({})
        self._given: dict[int, Any] = {}
        self._found: dict[int, Any] = {}
        self._ready = False
        self._signatures: dict[str, SignatureRunner] = {}
        with _as_value_error():
            _, outline = formats.outline(memoryview(self._data), "model")
        self._indices = [list(map(int, side)) for side in (outline.inputs, outline.outputs)]
        self._open = {int(key): _open_axes(value.type) for key, value in outline.values.items()}

    def _loaded(self, sizes: Mapping[str, tuple[int, ...]]) -> Any:
        options = {"backend": "wasm", "threads": self._threads, "dynamic_range": "int8"}
        with _as_value_error():
            return webinfer.load_sync(self._data, shapes=dict(sizes) or None, **options)

    # ----- tensors

    def allocate_tensors(self) -> None:
        """Makes inputs of zeros, of the sizes that were asked for.

        Raises:  ValueError if the model cannot run on these sizes
        """
        import numpy as np

        if self._sizes:
            fresh = self._loaded(self._sizes)
            self._session.close()
            self._session = fresh
        details = self.get_input_details()
        self._given = {one["index"]: np.zeros(tuple(one["shape"]), one["dtype"]) for one in details}
        self._found, self._ready = {}, True

    def get_input_details(self) -> list[dict[str, Any]]:
        """Name, index, shape, type and quantization of each input."""
        return self._details(0, self._session.inputs)

    def get_output_details(self) -> list[dict[str, Any]]:
        """Name, index, shape, type and quantization of each output."""
        return self._details(1, self._session.outputs)

    def _details(self, side: int, infos: Sequence[Any]) -> list[dict[str, Any]]:
        """The details of inputs (0) or outputs (1), with sizes that were asked for; open ones are -1 in signatures."""
        found = [_details(i, info) for i, info in zip(self._indices[side], infos, strict=True)]
        for one in found:
            if side == 0 and one["name"] in self._sizes:
                one["shape"] = _sizes(self._sizes[one["name"]])
            sizes = [-1 if k in self._open[one["index"]] else size for k, size in enumerate(one["shape"])]
            one["shape_signature"] = _sizes(sizes)
        return found

    def get_tensor_details(self, subgraph_index: int = 0) -> list[dict[str, Any]]:
        """The details of inputs and outputs."""
        return [*self.get_input_details(), *self.get_output_details()]

    def resize_tensor_input(self, input_index: int, tensor_size: Sequence[int], strict: bool = False) -> None:
        """Asks for other sizes of an input, from the next `allocate_tensors` on.

        Raises:  ValueError if there is no such input; RuntimeError if with `strict` a size is not open
        """
        details = self._detail(input_index)
        sizes = tuple(map(int, tensor_size))
        fixed = [(d, s) for d, s in zip(details["shape_signature"], sizes, strict=False) if d >= 0]
        if strict and (len(sizes) != len(details["shape"]) or any(d != s for d, s in fixed)):
            raise RuntimeError("ResizeInputTensorStrict only allows mutating unknown dimensions identified by -1.")
        self._sizes[details["name"]] = sizes
        self._ready = False

    def _detail(self, index: int) -> dict[str, Any]:
        found = next((one for one in self.get_input_details() if one["index"] == index), None)
        if found is None:
            raise ValueError(f"Invalid tensor index {index}: inputs are {self._indices[0]}")
        return found

    def set_tensor(self, tensor_index: int, value: Any) -> None:
        """Copies a value into an input.

        Raises:  ValueError if it has another type or other sizes, or inputs are not allocated
        """
        import numpy as np

        details, array = self._detail(tensor_index), np.asarray(value)
        where = f"input {tensor_index}"
        if not self._ready:
            raise ValueError("Cannot set tensor: Tensor is unallocated. Try calling allocate_tensors() first")
        if array.dtype != np.dtype(details["dtype"]):
            names = f"{array.dtype.name.upper()} but expected type {np.dtype(details['dtype']).name.upper()}"
            raise ValueError(f"Cannot set tensor: Got value of type {names} for {where}, name: {details['name']}")
        wanted = self._given[tensor_index].shape
        if array.ndim != len(wanted):
            text = f"Got {array.ndim} dimensions but expected {len(wanted)} for {where}."
            raise ValueError(f"Cannot set tensor: Dimension mismatch. {text}")
        for k, (found, needed) in enumerate(zip(array.shape, wanted, strict=True)):
            if found != needed:
                text = f"Got {found} but expected {needed} for dimension {k} of {where}."
                raise ValueError(f"Cannot set tensor: Dimension mismatch. {text}")
        self._given[tensor_index][...] = array

    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> Any:
        """A copy of an input, or of an output of the last `invoke`; zeros before it.

        Raises:  ValueError if it is neither
        """
        return self._held(tensor_index).copy()

    def tensor(self, tensor_index: int) -> Callable[[], Any]:
        """A function that returns the array of an input or output itself, as it is when it is called."""
        return lambda: self._held(tensor_index)

    def _held(self, index: int) -> Any:
        import numpy as np

        if index in self._given:
            return self._given[index]
        if index not in self._indices[1] or not self._ready:
            raise ValueError(f"Tensor data is null: {index} is not an input or output, or nothing is allocated")
        if index not in self._found:
            details = next(one for one in self.get_output_details() if one["index"] == index)
            self._found[index] = np.zeros(tuple(details["shape"]), details["dtype"])
        return self._found[index]

    # ----- running

    def invoke(self) -> None:
        """Runs the model on the inputs.

        Raises:  RuntimeError if tensors are not allocated; ValueError if the run fails
        """
        if not self._ready:
            raise RuntimeError("Invoke called on model that is not ready: call allocate_tensors() first")
        names = {i: info.name for i, info in zip(self._indices[0], self._session.inputs, strict=True)}
        with _as_value_error():
            found = self._session.run({names[i]: array for i, array in self._given.items()})
        outputs = zip(self._indices[1], self._session.outputs, strict=True)
        self._found = {i: _array(found[info.name]) for i, info in outputs}

    def reset_all_variables(self) -> None:
        """Sets the model's variables to what they were at first."""
        self._session.reset()

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """The names of inputs and outputs of each signature, by its name."""
        return {name: self._signature(name).names() for name in self._session.signatures}

    def get_signature_runner(self, signature_key: str | None = None) -> SignatureRunner:
        """What runs a signature: `runner(x=array)` returns its outputs by name.

        Raises:  ValueError if the model has no such signature, or several and none is named
        """
        known = self._session.signatures
        if signature_key is None:
            if len(known) != 1:
                raise ValueError(f"SignatureDef signature_key is None and model has {len(known)} Signatures.")
            signature_key = known[0]
        if signature_key not in known:
            raise ValueError(f'Invalid signature_key provided: "{signature_key}".')
        return self._signature(signature_key)

    def _signature(self, name: str) -> SignatureRunner:
        if name not in self._signatures:
            with _as_value_error():
                session = webinfer.SyncSession(self._session.open_signature(name))
            self._signatures[name] = SignatureRunner(session, name)
        return self._signatures[name]


class SignatureRunner:
    """A signature of a model, called with its inputs by name."""

    def __init__(self, session: Any, signature_key: str) -> None:
        self._session, self._name = session, signature_key
        self._inputs, self._outputs = list(session.inputs), list(session.outputs)

    def __call__(self, **kwargs: Any) -> dict[str, Any]:
        """The outputs by name. Raises: ValueError if inputs are missing or there are others."""
        names = [info.name for info in self._inputs]
        if len(kwargs) != len(names):
            text = f"expected {len(names)} vs provided {len(kwargs)}"
            raise ValueError(f"Invalid number of inputs provided for running a SignatureDef, {text}")
        for name in kwargs:
            if name not in names:
                raise ValueError(f"Invalid Input name ({name}) for SignatureDef")
        with _as_value_error():
            return {name: _array(tensor) for name, tensor in self._session.run(kwargs).items()}

    def names(self) -> dict[str, list[str]]:
        """The names of inputs and outputs."""
        return {"inputs": [one.name for one in self._inputs], "outputs": [one.name for one in self._outputs]}

    def get_input_details(self) -> dict[str, dict[str, Any]]:
        """The details of each input by its name."""
        return {info.name: _details(i, info) for i, info in enumerate(self._inputs)}

    def get_output_details(self) -> dict[str, dict[str, Any]]:
        """The details of each output by its name."""
        return {info.name: _details(i, info) for i, info in enumerate(self._outputs)}


@contextmanager
def _as_value_error() -> Iterator[None]:
    """Raises errors of webinfer as ValueErrors with the same text, as LiteRT does."""
    try:
        yield
    except webinfer.WebinferError as error:
        raise ValueError(str(error)) from error


def _content(model_path: Any, model_content: Any) -> bytes:
    if model_path and model_content:
        raise ValueError("Can't both provide `model_path` and `model_content`")
    if model_content:
        return bytes(model_content)
    if not model_path:
        raise ValueError("`model_path` or `model_content` must be specified.")
    try:
        return Path(os.fspath(model_path)).read_bytes()
    except OSError as error:
        raise ValueError(f"Could not open '{os.fspath(model_path)}': {error.strerror}") from error


def _details(index: int, info: Any) -> dict[str, Any]:
    """What LiteRT says of a tensor."""
    import numpy as np

    shape = [size if isinstance(size, int) else -1 for size in info.shape]
    quant = info.quantization
    scales, zeros = (list(quant.scales), list(quant.zero_points)) if quant else ([], [])
    single = (float(scales[0]), int(zeros[0])) if len(scales) == 1 else (0.0, 0)
    return {
        "name": info.name, "index": index, "shape": _sizes([max(size, 1) if size < 0 else size for size in shape]),
        "shape_signature": _sizes(shape), "dtype": np.dtype(info.dtype.value).type, "quantization": single,
        "quantization_parameters": {
            "scales": np.array(scales, np.float32), "zero_points": np.array(zeros, np.int32),
            "quantized_dimension": getattr(quant, "axis", 0) or 0,
        },
        "sparsity_parameters": {},
    }  # fmt: skip


def _open_axes(text: str) -> set[int]:
    """The axes that a type such as "float32 [?, 3]" leaves open."""
    sizes = text.partition("[")[2].partition("]")[0].split(", ")
    return {k for k, size in enumerate(sizes) if size == "?"}


def _sizes(sizes: Sequence[int]) -> Any:
    import numpy as np

    return np.array(sizes, np.int32)


def _array(tensor: Any) -> Any:
    """A tensor as an array that may be written."""
    array = tensor.numpy()
    return array if array.flags.writeable else array.copy()
