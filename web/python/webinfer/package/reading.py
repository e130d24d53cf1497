"""A `.webinfer` file as a model that `webinfer.load` takes: what was compiled runs, with the file's own kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from webinfer.backends.base import BuildOptions, Executor
from webinfer.dtypes import DType
from webinfer.errors import BackendUnavailableError, InputError, LimitError, ModelFormatError, WebinferError
from webinfer.graph.compiled import CompiledGraph
from webinfer.graph.ir import Quantization, State, TensorType, Value
from webinfer.host.interface import Host
from webinfer.importers.core.partial_evaluation import OpenSizes
from webinfer.package.container import Package
from webinfer.package.executors import PackagedGpu, PackagedWasm, gpu_fits

MAX_RANK = 16
MAX_ELEMENTS = 1 << 31


class PackagedModel(CompiledGraph):
    """The model of a package: inputs and outputs, and its plans by backend."""

    __slots__ = ("_package", "open_ends")

    def __init__(self, package: Package, shapes: Mapping[str, Sequence[int]] | None = None) -> None:
        """`shapes` are sizes of inputs that the package leaves open."""
        header = package.header
        ends = {key: [_value(row) for row in header[key]] for key in ("inputs", "outputs")}
        values = [*ends["inputs"], *ends["outputs"]]
        self.open_ends = any(type(size) is not int for value in values for size in value.type.shape)
        for value in ends["inputs"] if self.open_ends else ():
            value.type = _bound(value, (shapes or {}).get(value.name, value.type.shape))
        super().__init__(str(header["name"]), ends["inputs"], ends["outputs"], ())
        types = {v.name: v.type for values in ends.values() for v in values}
        for name, given, result, initial in header["states"]:
            self.states.append(State(name, types[given or result], memoryview(bytes.fromhex(initial)), given, result))
        self.outer = {name: DType(dtype) for name, dtype in header["outer"].items()}
        self.notes = [str(note) for note in header["notes"]]
        self._package = package

    async def build(self, backend: str, host: Host, options: BuildOptions) -> Executor:
        """The executor of one of the package's plans.

        Raises:  BackendUnavailableError if it has none for this backend or device; ModelFormatError; IntegrityError
        """
        rows = self._package.header.get(backend)
        if not isinstance(rows, list) or not rows or backend not in ("wasm", "webgpu"):
            raise BackendUnavailableError(f"package {self.name!r} has no plan for {backend}; compile it for {backend}")
        with _form(self._package):
            return await (self._on_wasm(rows, host) if backend == "wasm" else self._on_gpu(rows, host))

    async def _on_gpu(self, rows: Sequence[Mapping[str, Any]], host: Host) -> Executor:
        device = await host.gpu()
        fitting = [row for row in rows if gpu_fits(row, device)]
        if not fitting:
            raise BackendUnavailableError(f"package {self.name!r} has no plan for the GPU {device.name}; use wasm")
        if self.open_ends:
            from webinfer.package.open_executors import open_on_gpu

            return await open_on_gpu(self, self._package, fitting[-1]["regimes"], device)
        return await PackagedGpu(self, self._package, fitting[-1]["section"], device).load()

    async def _on_wasm(self, rows: Sequence[Mapping[str, Any]], host: Host) -> Executor:
        """On the first of the builds that this engine of WebAssembly takes."""
        package, problem = self._package, BackendUnavailableError(f"package {self.name!r} has no plan for one thread")
        for name, isa in [(row["section"], row["isa"]) for row in rows if row["threads"] == 1]:
            module = bytes(package.section(f"{name}/kernels"))
            try:
                kernels = await host.kernels(str(isa), 1, module)
            except BackendUnavailableError as error:
                problem = error
                continue
            try:
                if self.open_ends:
                    from webinfer.package.open_executors import open_packaged

                    return await open_packaged(self, package, name, kernels, host)
                return PackagedWasm(self, package, name, kernels, host)
            except BaseException:
                kernels.close()
                raise
        raise problem


def read_package(data: memoryview, name: str, shapes: Mapping[str, Sequence[int]]) -> PackagedModel:
    """The model in a package.

    Raises:  ModelFormatError, IntegrityError, LimitError; InputError if sizes are given, which are fixed by then;
             OpenSizes if sizes are open and not given
    """
    package = Package(data, name)
    with _form(package):
        model = PackagedModel(package, shapes)
    if model.open_ends:
        if missing := [v for v in model.inputs if any(type(size) is not int for size in v.type.shape)]:
            what = ", ".join(f"{v.name!r}: ({', '.join(map(str, v.type.shape))})" for v in missing)
            raise OpenSizes(f"{name!r} leaves sizes of inputs open: {what}; give `shapes`", model.inputs, model.outputs)
        return model
    for key, sizes in shapes.items():
        have = {v.name: v.type.shape for v in model.inputs}
        if have.get(key) != tuple(sizes):
            raise InputError(f"{name!r} is compiled for {have}, not for {key!r} of {tuple(sizes)}; compile it again")
    return model


@contextmanager
def _form(package: Package) -> Iterator[None]:
    """Around what reads a package's facts, which nobody vouches for.

    Raises:  ModelFormatError where they are not what the form says
    """
    try:
        yield
    except WebinferError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise ModelFormatError(f"package {package.name!r} breaks its form: {type(error).__name__} {error}") from error


def _bound(value: Value, shape: Sequence[Any]) -> TensorType:
    """The type of an input with its sizes as they are given.

    Raises:  InputError where they are not those that the package has
    """
    own = value.type.shape
    fits = len(own) == len(shape) and all(
        known == size or type(known) is not int for known, size in zip(own, shape, strict=False)
    )
    if not fits:
        raise InputError(f"{value.name!r} has the shape {own}, and was given {tuple(shape)}")
    return TensorType(tuple(shape), value.type.dtype, value.type.quant)


def _value(row: Sequence[Any]) -> Value:
    name, dtype, shape, quant = row
    sizes = tuple(shape)
    count = 1
    for size in sizes:
        if type(size) is str and size:
            continue
        if type(size) is not int or size < 0:
            raise ModelFormatError(f"tensor {name!r} has the shape {sizes}")
        count *= size
    if len(sizes) > MAX_RANK or count > MAX_ELEMENTS:
        raise LimitError(f"elements of tensor {name!r}", count, MAX_ELEMENTS, "the file is damaged")
    scale = None if quant is None else Quantization(tuple(quant[0]), tuple(quant[1]), quant[2])
    return Value(str(name), TensorType(sizes, DType(dtype), scale))
