"""Inputs of a session: their types, checks of what is given, random inputs for a trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from webinfer.backends import registry
from webinfer.backends.base import (
    Executor,
    GpuExecutor,
    InPlace,
    KernelExecutor,
    PageExecutor,
    StateInput,
)
from webinfer.dtypes import DType
from webinfer.errors import InputError
from webinfer.graph.ir import Graph, Quantization, Value
from webinfer.graph.positions import Axis
from webinfer.host.gpu import GpuTensor
from webinfer.host.interface import Host, PageArray
from webinfer.lazy_dataclass import dataclass
from webinfer.packing import from_inner, to_inner
from webinfer.tensor import Tensor, buffer_of


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """An input or output of a model. A dynamic size appears in the shape as its name in the file, or "?"."""

    name: str
    dtype: DType
    shape: tuple[Any, ...]
    quantization: Quantization | None

    @property
    def nbytes(self) -> int:
        """Bytes of the elements.

        Raises:  InputError if a size is open
        """
        count = self.dtype.itemsize
        for size in self.shape:
            if not isinstance(size, int):
                raise InputError(
                    f"sizes of {self.name!r} are open: {self.shape}; run the model, or give load(shapes=…)"
                )
            count *= size
        return count


def info_of(value: Value, graph: Graph) -> TensorInfo:
    """An input or output of the graph as users see it."""
    return TensorInfo(value.name, graph.outer.get(value.name, value.type.dtype), value.type.shape, value.type.quant)


def to_api_types(results: dict[str, Tensor], outer: Mapping[str, DType]) -> dict[str, Tensor]:
    """The results in the element types that users see."""
    for name, dtype in outer.items():
        if found := results.get(name):
            results[name] = Tensor(from_inner(found.flat().cast("B"), dtype), found.shape, dtype)
    return results


def sizes_given(inputs: Mapping[str, Any] | Any, infos: Sequence[TensorInfo]) -> dict[str, tuple[int, ...]]:
    """The shapes of those inputs that carry one: arrays, tensors, typed buffers of as many axes as the model wants."""
    given = inputs if isinstance(inputs, Mapping) else {infos[0].name: inputs} if len(infos) == 1 else {}
    found = {}
    for info in infos:
        value = given.get(info.name)
        shape = getattr(value, "shape", None)
        typed = hasattr(value, "dtype") or (
            isinstance(value, memoryview) and value.ndim == len(info.shape) and value.itemsize == info.dtype.itemsize
        )
        if shape is not None and typed:
            found[info.name] = tuple(map(int, shape))
    return found


def checked(
    inputs: Mapping[str, Any] | Any,
    infos: Sequence[TensorInfo],
    model: str,
    host: Host,
    executor: Executor,
    *,
    here: bool = False,
    axes: Mapping[str, Axis] | None = None,
) -> dict[str, Any]:
    """For each input its bytes, a typed array of the page, its buffer on the GPU, or what will write it in place.

    `here` means that arrays of the page become bytes in the interpreter's memory. `axes` has the inputs whose numbers
    must be positions of an axis.

    Raises:  InputError naming the input, what was found and what is needed
    """
    if not isinstance(inputs, Mapping):
        if len(infos) != 1:
            names = ", ".join(i.name for i in infos)
            raise InputError(f"{model!r} has {len(infos)} inputs; give a mapping with {names}")
        inputs = {infos[0].name: inputs}
    if inputs.keys() != {i.name for i in infos}:
        _refuse_names(inputs, [i.name for i in infos], model)
    found: dict[str, Any] = {}
    for info in infos:
        value = inputs[info.name]
        if isinstance(value, InPlace):
            found[info.name] = _checked_in_place(value, info, executor)
            continue
        if isinstance(value, StateInput):
            found[info.name] = _state(value, info, executor)
            continue
        page = host.page_array(value)
        if page is not None:
            as_it_lies = isinstance(executor, PageExecutor) and not here and not (axes and info.name in axes)
            found[info.name] = _from_page(page, info, as_it_lies)
            continue
        buffer = host.gpu_buffer(value)
        found[info.name] = _taken(value, info) if buffer is None else _checked_on_gpu(value, buffer, info, executor)
    if axes:
        _check_positions(found, infos, axes)
    return found


def _state(state: StateInput, info: TensorInfo, executor: Executor) -> Any:
    """The state as it is for an executor that can hold it; the bytes of its value for others."""
    fits = state.shape == info.shape and state.dtype is info.dtype and info.dtype.inner is info.dtype
    return state if fits and executor.holds_states else _taken(state.tensor(), info)


def _check_positions(found: Mapping[str, Any], infos: Sequence[TensorInfo], axes: Mapping[str, Axis]) -> None:
    """Raises InputError if an input that holds positions holds another number; buffers on a GPU are not read."""
    for info in infos:
        axis, data = axes.get(info.name), found[info.name]
        if axis is None or not isinstance(data, memoryview) or not data.nbytes:
            continue
        number = axis.outside(data, info.dtype.letter)
        if number is not None:
            raise InputError(
                f"input {info.name!r} holds {number}, which {axis.reader} reads as a position along an axis of "
                f"{axis.size}; give numbers from {-axis.size} to {axis.size - 1}"
            )


def hold_positions(given: Mapping[str, Any], infos: Sequence[TensorInfo], axes: Mapping[str, Axis], host: Host) -> bool:
    """Whether arrays of the page that must hold positions do; what does not takes the longer way, which says why."""
    return not axes or all(
        _holds_positions(host.page_array(given[info.name]), info, axes[info.name])
        for info in infos
        if info.name in axes
    )


def _holds_positions(page: PageArray | memoryview | None, info: TensorInfo, axis: Axis) -> bool:
    if page is None or page.nbytes != info.nbytes or (isinstance(page, PageArray) and page.dtype != info.dtype.value):
        return False
    data = page.view() if isinstance(page, PageArray) else page
    return data.format == info.dtype.letter and axis.outside(data, info.dtype.letter) is None


def _from_page(page: PageArray | memoryview, info: TensorInfo, as_it_lies: bool) -> Any:
    """An array of the page: as it lies, if nothing is to be converted."""
    if isinstance(page, memoryview):
        return _taken(page, info)
    fits = page.nbytes == info.nbytes and page.dtype in ("", info.dtype.value)
    return page.array if as_it_lies and fits and info.dtype.inner is info.dtype else _taken(page.view(), info)


def _taken(value: Any, info: TensorInfo) -> memoryview:
    """The bytes of an input in the type that kernels compute in; float32 does for other floats."""
    inner = info.dtype.inner
    if inner is not info.dtype and inner.is_float and str(getattr(value, "dtype", "")) == inner.value:
        return buffer_of(value, info.shape, inner, info.name)
    return to_inner(buffer_of(value, info.shape, info.dtype, info.name), info.dtype)


def _refuse_names(inputs: Mapping[str, Any], names: Sequence[str], model: str) -> NoReturn:
    if unknown := sorted(set(inputs) - set(names)):
        raise InputError(f"{model!r} has no input {', '.join(map(repr, unknown))}; its inputs are {', '.join(names)}")
    raise InputError(f"{model!r} needs input {', '.join(repr(n) for n in names if n not in inputs)}")


def _checked_in_place(value: InPlace, info: TensorInfo, executor: Executor) -> InPlace:
    if not isinstance(executor, KernelExecutor):
        able = " or ".join(registry.able(KernelExecutor))
        raise InputError(
            f"input {info.name!r} lies in kernel memory, which needs a session on {able}, not on {executor.backend}"
        )
    return value


def _checked_on_gpu(value: Any, buffer: Any, info: TensorInfo, executor: Executor) -> Any:
    if not isinstance(executor, GpuExecutor):
        raise InputError(f"input {info.name!r} is on the GPU, the session on {executor.backend}; read it first")
    if info.dtype.inner is not info.dtype:
        raise InputError(f"input {info.name!r} is {info.dtype}, which is converted when it is passed; pass an array")
    if isinstance(value, GpuTensor) and (value.shape, value.dtype) != (info.shape, info.dtype):
        raise InputError(f"input {info.name!r} is {value}, needs {info.dtype} {info.shape}")
    if buffer.size < info.nbytes:
        raise InputError(f"input {info.name!r} is a GPU buffer of {buffer.size} bytes, needs {info.nbytes}")
    return buffer


def zeros(infos: Sequence[TensorInfo]) -> dict[str, memoryview]:
    """Inputs of zeros."""
    return {i.name: memoryview(bytes(i.nbytes)) for i in infos}


def random_inputs(infos: Sequence[TensorInfo], seed: int = 0) -> dict[str, memoryview]:
    """Random inputs, the same for the same seed: floats in [-1, 1), whole-range bytes, zeros else."""
    import random
    from array import array

    source, buffers = random.Random(seed), {}
    for info in infos:
        count = info.nbytes // info.dtype.itemsize
        if info.dtype in (DType.FLOAT32, DType.FLOAT64):
            words = array("I", source.randbytes(4 * count))
            data: Any = array("f" if count * 4 == info.nbytes else "d", (w / 2147483648.0 - 1.0 for w in words))
        elif info.dtype.itemsize == 1 and info.dtype is not DType.BOOL and not info.dtype.is_float:
            data = source.randbytes(count)
        else:
            data = bytes(info.nbytes)
        buffers[info.name] = memoryview(data).cast("B")
    return buffers
