"""IOBinding: inputs and outputs that stay bound from run to run, also to memory that the caller names by address."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from webinfer.compat.onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument, failure
from webinfer.compat.onnxruntime.types import numpy_name
from webinfer.compat.onnxruntime.values import OrtValue, check_memory

if TYPE_CHECKING:
    from webinfer.compat.onnxruntime.session import InferenceSession


class IOBinding:
    """The inputs and outputs of a session's next runs."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, Any] = {}  # the caller's array, or None
        self._results: dict[str, Any] = {}

    def bind_cpu_input(self, name: str, arr_on_cpu: Any) -> None:
        """Binds an array to an input; it is read at each run."""
        self._inputs[self._known(name, "Input")] = arr_on_cpu

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Binds a value to an input."""
        self._inputs[self._known(name, "Input")] = ortvalue

    def bind_input(
        self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int
    ) -> None:
        """Binds memory of the processor to an input: it is read at each run, and must live as long."""
        check_memory(device_type)
        self._inputs[self._known(name, "Input")] = _at(buffer_ptr, shape, element_type)

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Asks for an output, in new memory or in the processor's memory at this address.

        Raises:  ValueError if an address has no type or shape
        """
        check_memory(device_type)
        if buffer_ptr is not None and (element_type is None or shape is None):
            raise ValueError("`element_type` and `shape` are to be provided if pre-allocated memory is provided")
        place = None if buffer_ptr is None or shape is None else _at(buffer_ptr, shape, element_type)
        self._outputs[self._known(name, "Output")] = place

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Asks for an output, in the memory of this value."""
        self._outputs[self._known(name, "Output")] = ortvalue.numpy()

    def _known(self, name: str, kind: str) -> str:
        args = self._session.get_inputs() if kind == "Input" else self._session.get_outputs()
        if name not in {arg.name for arg in args}:
            raise failure(InvalidArgument, f"Failed to find {kind.lower()} name in the model: {name}")
        return name

    def synchronize_inputs(self) -> None:
        """Nothing: inputs are in place."""

    def synchronize_outputs(self) -> None:
        """Nothing: outputs are in place."""

    def run(self, run_options: Any) -> None:
        """Runs the session on what is bound.

        Raises:  what `InferenceSession.run` raises; InvalidArgument if an output does not fit its memory
        """
        names = list(self._outputs)
        found = dict(zip(names, self._session.run(names, self._inputs, run_options), strict=True)) if names else {}
        for name, place in self._outputs.items():
            if place is None:
                continue
            result = found[name]
            if isinstance(result, list) or place.shape != result.shape or place.dtype != result.dtype:
                told = "a sequence" if isinstance(result, list) else f"{result.dtype} {result.shape}"
                kinds = f"{told}, its memory {place.dtype} {place.shape}"
                raise failure(InvalidArgument, f"output {name!r} is {kinds}")
            place[...] = result
            found[name] = place
        self._results = found

    def get_outputs(self) -> list[OrtValue]:
        """The outputs of the last run, in the order of binding."""
        return [OrtValue(array) for array in self._results.values()]

    get_outputs_as_ortvaluevector = get_outputs

    def copy_outputs_to_cpu(self) -> list[Any]:
        """The outputs of the last run as arrays, in the order of binding."""
        return list(self._results.values())

    def clear_binding_inputs(self) -> None:
        """Unbinds all inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Unbinds all outputs."""
        self._outputs.clear()
        self._results = {}


def _at(address: int, shape: Sequence[int], element_type: Any) -> Any:
    """An array over memory of the processor."""
    import numpy as np

    dtype, count = np.dtype(numpy_name(element_type)), 1
    for size in shape:
        count *= size
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return np.frombuffer(memoryview(memory).cast("B"), dtype).reshape(tuple(shape))
