"""InferenceSession: ONNX Runtime's interface over a session that waits."""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import webinfer
from webinfer.compat.onnxruntime import files, texts, variants
from webinfer.compat.onnxruntime.binding import IOBinding
from webinfer.compat.onnxruntime.capi.onnxruntime_pybind11_state import (
    Fail,
    InvalidArgument,
    InvalidProtobuf,
    NoSuchFile,
    NotImplemented,
    failure,
    translated,
)
from webinfer.compat.onnxruntime.memory import CPU_MEMORY, OrtMemoryInfo
from webinfer.compat.onnxruntime.options import SessionOptions
from webinfer.compat.onnxruntime.providers import BACKENDS, CPU, checked_providers
from webinfer.compat.onnxruntime.sparse import SparseTensor
from webinfer.compat.onnxruntime.types import ModelMetadata, NodeArg, tensor_type, type_number
from webinfer.compat.onnxruntime.values import OrtValue
from webinfer.dtypes import DType
from webinfer.importers import formats

_LOG = logging.getLogger("webinfer.compat.onnxruntime")
_LETTERS = {
    "float32": "f", "float64": "d", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i",
    "uint32": "I", "int64": "q", "uint64": "Q", "bool": "B",
}  # fmt: skip
_FORMS = ("seq(", variants.SEQUENCE), ("sparse_", variants.SPARSE)  # what types say that are not of plain tensors


class InferenceSession:
    """A model that is loaded and run at once, without `await`.

    `providers` says where: CPUExecutionProvider is the backend "wasm", WebGpuExecutionProvider "webgpu",
    WebNNExecutionProvider "webnn". Without any it is the CPU.
    """

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str],
        sess_options: SessionOptions | None = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[dict[Any, Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        self._model_path, self._model_bytes = None, None
        if isinstance(path_or_bytes, bytes):
            self._model_bytes = path_or_bytes
        elif isinstance(path_or_bytes, (str, os.PathLike)):
            self._model_path = os.fspath(path_or_bytes)
        else:
            raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")
        self._options = sess_options or SessionOptions()
        self._started_ns = time.perf_counter_ns()
        self._open(checked_providers(providers, provider_options, self._options.providers))

    def _open(self, providers: dict[str, dict[str, str]]) -> None:
        source = self._model_bytes if self._model_path is None else _source(self._model_path)
        source = _with_values(source, self._options)
        order = list(dict.fromkeys(BACKENDS[name] for name in providers))
        threads = self._options.intra_op_num_threads or None

        def load(model: Any) -> webinfer.SyncSession:
            return webinfer.load_sync(model, backend=order, threads=threads, dynamic_range="int8")

        self._load = load
        try:
            self._session = self._loaded(source)
            self._properties = dict(self._session.metadata)
        except webinfer.WebinferError as error:
            raise translated(error, _is_model(source)) from error
        self._overriding: variants.Variants | None = None
        self._providers = providers
        _LOG.debug("a session on %s", ", ".join(providers))
        self._write_optimized(source)
        self._read_options()
        inputs, outputs = self._session.inputs, self._session.outputs  # as the file has them
        sizes = self._options.sizes_by_name
        named = _size_names(self._bytes(), (*inputs, *outputs))
        self._input_args = [_node_arg(info, sizes, named, self._texts) for info in inputs]
        self._output_args = [_node_arg(info, sizes, named, self._texts) for info in outputs]
        self._dtypes = {info.name: info.dtype.value for info in inputs}
        self._unranked = _unranked(self._bytes()) if any(not info.shape for info in inputs) else set()

    def _loaded(self, source: Any) -> webinfer.SyncSession | variants.Variants:
        """A session of a model with tensors only, or what stands for one; `_model` and `_texts` are set."""
        self._model, self._texts = source, texts.Texts()
        if not _may_hold_more_than_tensors(source):
            try:
                return self._load(source)
            except (webinfer.ModelFormatError, webinfer.UnsupportedOpError):
                pass  # the file is looked at: the same error comes again where tensors are all that it has
        self._model, self._texts = _numbered(source)
        return self._variants(only_if_needed=True) or self._load(self._model)

    def _variants(self, only_if_needed: bool) -> variants.Variants | None:
        """The model's variants; None if all its ends are tensors and that is reason enough, or it is not ONNX."""
        name, data, beside = _parts(self._model)
        try:
            known = variants.ends(data)
        except ValueError:
            return None
        return variants.Variants(name, data, beside, known, self._load) if known or not only_if_needed else None

    # ----- what the model is

    def get_inputs(self) -> list[NodeArg]:
        """The inputs: names, types, sizes."""
        return list(self._input_args)

    def get_outputs(self) -> list[NodeArg]:
        """The outputs: names, types, sizes."""
        return list(self._output_args)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """The initializers that a run may give other values: those that the file lists among its inputs as well."""
        try:
            defaults = variants.ends(self._bytes()).defaults
        except ValueError:  # of another format
            return []
        return [_node_arg(end, self._options.sizes_by_name, {}, self._texts) for end in defaults]

    def get_modelmeta(self) -> ModelMetadata:
        """What the file says of itself."""
        try:
            _, outline = formats.outline(memoryview(self._bytes()), "model")
            facts = outline.facts
        except webinfer.WebinferError:
            facts = {}
        version = facts.get("model version", "0")
        return ModelMetadata(
            dict(self._properties), facts.get("producer", ""), facts.get("graph", ""), facts.get("domain", ""),
            facts.get("description", ""), "", int(version) if version.isdigit() else 0,
        )  # fmt: skip

    def _bytes(self) -> bytes:
        return self._model_bytes if self._model_path is None else Path(self._model_path).read_bytes()  # type: ignore[return-value]

    def _write_optimized(self, source: Any) -> None:
        """Writes the model where the options ask for it, as it is: webinfer optimizes while it loads."""
        if not self._options.optimized_model_filepath:
            return
        entries = self._options._entries
        weights = entries.get("session.optimized_model_external_initializers_file_name", "")
        least = int(entries.get("session.optimized_model_external_initializers_min_size_in_bytes", "1024"))
        _, data, beside = _parts(source)
        files.written(data, Path(self._options.optimized_model_filepath), weights, least, beside)

    def _read_options(self) -> None:
        """Takes options that the model's properties hold, if the environment asks for it as ONNX Runtime has it."""
        if os.environ.get("ORT_LOAD_CONFIG_FROM_MODEL") != "1" or "ort_config" not in self._properties:
            return
        try:
            found = json.loads(self._properties["ort_config"]).get("session_options", {})
        except (ValueError, AttributeError) as error:
            raise failure(Fail, f"The model's ort_config is not JSON with session_options: {error}") from error
        for name, value in found.items():
            kind = type(getattr(self._options, name, value))
            setattr(self._options, name, kind(value) if issubclass(kind, int) else value)

    def get_input_memory_infos(self) -> list[OrtMemoryInfo]:
        """Where inputs are taken from: the processor's memory."""
        return [CPU_MEMORY for _ in self._input_args]

    def get_output_memory_infos(self) -> list[OrtMemoryInfo]:
        """Where outputs are put: the processor's memory."""
        return [CPU_MEMORY for _ in self._output_args]

    def get_input_epdevices(self) -> list[None]:
        """None for each input: webinfer has no plugins with devices of their own."""
        return [None for _ in self._input_args]

    def get_provider_graph_assignment_info(self) -> list[Any]:
        """A row for each node of the file, if one provider runs them all.

        Raises:  Fail unless the session was asked to keep it; NotImplemented where nodes may be on several providers
        """
        entry = "session.record_ep_graph_assignment_info"
        if self._options._entries.get(entry) != "1":
            raise failure(Fail, f"Session configuration entry '{entry}' must be set to \"1\" to retrieve this")
        if list(self._providers) != [CPU]:
            raise failure(
                NotImplemented, "webinfer fuses nodes; `webinfer.load_sync(model).plan()` has each step's backend"
            )
        return [files.AssignedSubgraph(CPU, (node,)) for node in files.nodes(self._bytes())]

    def get_providers(self) -> list[str]:
        """The providers in use, in order."""
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """The options of each provider."""
        return {name: dict(options) for name, options in self._providers.items()}

    def set_providers(
        self, providers: Sequence[Any] | None = None, provider_options: Sequence[dict[Any, Any]] | None = None
    ) -> None:
        """Loads the model again for other providers."""
        found = checked_providers(providers, provider_options, self._options.providers)
        for session in (self._session, self._overriding):
            if session is not None:
                session.close()
        self._open(found)

    def get_session_options(self) -> SessionOptions:
        """The options that the session was made with."""
        return self._options

    def disable_fallback(self) -> None:
        """Nothing: a lost device is replaced by the next provider's, and a warning says so."""

    def enable_fallback(self) -> None:
        """Nothing; see `disable_fallback`."""

    # ----- running

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: Any = None
    ) -> list[Any]:
        """The outputs of these names, in this order, as NumPy arrays, sequences as lists; without names all of them.

        Raises:  ValueError if an input is missing; InvalidArgument; Fail; RuntimeException
        """
        names = list(output_names or (arg.name for arg in self._output_args))
        known = {arg.name for arg in self._output_args}
        for name in names:
            if name not in known:
                raise failure(InvalidArgument, f"Invalid Output Name:{name}")
        if getattr(run_options, "terminate", False):
            raise failure(Fail, "Exiting due to terminate flag being set to true.")
        words = self._texts.run()
        for adapter in getattr(run_options, "adapters", ()):
            input_feed = {**adapter._parameters, **input_feed}
        feed = self._checked(input_feed, words)
        session: Any = self._session
        if len(feed) > len(self._input_args) and not isinstance(session, variants.Variants):
            self._overriding = session = self._overriding or self._variants(only_if_needed=False)
        try:
            found = session.run(feed)
        except webinfer.WebinferError as error:
            raise translated(error) from error
        return [words.told(name, _array(found[name])) for name in names]

    def _checked(self, input_feed: Mapping[str, Any], words: texts.Run) -> dict[str, Any]:
        """The inputs as arrays of the right types and sizes."""
        missing = [arg.name for arg in self._input_args if arg.name not in input_feed]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({list(input_feed)}).")
        args = {arg.name: arg for arg in self._input_args}
        if not input_feed.keys() <= args.keys():
            args |= {arg.name: arg for arg in self.get_overridable_initializers()}
            self._dtypes |= {end.name: end.dtype.value for end in variants.ends(self._bytes()).defaults}
        feed = {}
        for name, value in input_feed.items():
            if name not in args:
                raise failure(InvalidArgument, f"Invalid Feed Input Name:{name}")
            if isinstance(value, SparseTensor):
                raise RuntimeError(f"Unable to handle object of type {type(value)}; an OrtValue of it can be given")
            value = words.numbered(name, value._value if isinstance(value, OrtValue) else value)
            feed[name] = _fitting(value, args[name], self._dtypes[name], name not in self._unranked)
        return feed

    def run_with_ort_values(
        self, output_names: Sequence[str] | None, input_dict_ort_values: Mapping[str, OrtValue], run_options: Any = None
    ) -> list[OrtValue]:
        """As `run`, with values in and out."""
        types = {arg.name: arg.type for arg in self._output_args}
        names = list(output_names or types)
        found = self.run(names, input_dict_ort_values, run_options)
        return [OrtValue._typed(value, types[name]) for name, value in zip(names, found, strict=True)]

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[Any, Any, str], None],
        user_data: Any,
        run_options: Any = None,
    ) -> None:
        """As `run`, on a thread where there are threads; `callback` gets outputs, `user_data` and an error's text."""

        def work() -> None:
            try:
                results, text = self.run(output_names, input_feed, run_options), ""
            except Exception as error:
                results, text = [], str(error)
            callback(results, user_data, text)

        if sys.platform == "emscripten":
            work()
        else:
            threading.Thread(target=work, name="webinfer run_async", daemon=True).start()

    def io_binding(self) -> IOBinding:
        """Inputs and outputs that stay bound from run to run."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: Any = None) -> None:
        """Runs on what is bound; the results are the binding's.

        Raises:  ValueError if it is another session's; what `run` raises
        """
        if iobinding._session is not self:
            raise ValueError("IOBinding must be used with the session that created it.")
        iobinding.run(run_options)

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle 'InferenceSession' object: load it in each process, from the same path or bytes")

    # ----- profiling

    def get_profiling_start_time_ns(self) -> int:
        """When the session was made, on a monotonic clock."""
        return self._started_ns

    def end_profiling(self) -> str:
        """Writes the time of each step as events of Chrome's tracing, and returns the file's name; "" if not asked for.

        The steps are timed in a run of their own, on zeros.
        """
        if not self._options.enable_profiling:
            return ""
        name = f"{self._options.profile_file_prefix}_{time.strftime('%Y-%m-%d_%H-%M-%S')}.json"
        try:
            profile = json.loads(self._session.profile(rounds=1).json())
        except webinfer.InputError:  # no run has bound the sizes that the model leaves open
            profile = {"steps": []}
        events, at = [], 0.0
        for step in profile["steps"]:
            span = {"cat": "Node", "ph": "X", "pid": 0, "tid": 0, "ts": at, "dur": step["ms"] * 1e3}
            told = {"op_name": step["op"], "provider": next(iter(self._providers))}
            events.append({**span, "name": f"{step['op']}_{step['index']}_kernel_time", "args": told})
            at += step["ms"] * 1e3
        lines = ",\n".join(json.dumps(event) for event in events)  # a line each, as packages read it that know no JSON
        Path(name).write_text(f"[\n{lines}\n]\n", encoding="utf-8")
        return name


def _source(path: str) -> Any:
    """What `load` takes for a model at this path; in Pyodide, where paths are of its own file system, the files' bytes.

    Raises:  NoSuchFile
    """
    file = Path(path)
    if not file.is_file():
        raise failure(NoSuchFile, f"Load model from {path} failed:Load model {path} failed. File doesn't exist")
    if sys.platform != "emscripten":
        return file
    data = file.read_bytes()
    beside = formats.files_beside(memoryview(data), file.stem)
    return {file.name: data, **{name: (file.parent / name).read_bytes() for name in beside}} if beside else data


def _with_values(source: Any, options: SessionOptions) -> Any:
    """The source with the initializers, sizes and files of the options; without any, it stays what it is.

    Raises:  InvalidProtobuf
    """
    if not (options.initializers or options.files or options.sizes_by_denotation):
        return source
    name, data, beside = _parts(source)
    try:
        data = files.with_sizes(files.with_initializers(data, options.initializers), options.sizes_by_denotation)
    except ValueError as error:
        raise failure(InvalidProtobuf, str(error)) from error
    beside |= options.files
    wanted = formats.files_beside(memoryview(data), Path(name).stem)
    return {name: data, **{key: beside[key] for key in wanted if key in beside}} if wanted else data


def _parts(source: Any) -> tuple[str, bytes, dict[str, bytes]]:
    """The name and the bytes of a model, and the files beside it that there are."""
    if isinstance(source, Mapping):
        (name, data), *others = source.items()
        return name, data, dict(others)
    if not isinstance(source, Path):
        return "model.onnx", source, {}
    data = source.read_bytes()
    paths = {one: source.parent / one for one in formats.files_beside(memoryview(data), source.stem)}
    return source.name, data, {one: path.read_bytes() for one, path in paths.items() if path.is_file()}


def _size_names(model: bytes, infos: Sequence[Any]) -> dict[str, list[str]]:
    """The names of sizes as an ONNX file has them, if some seem to have none: "None" is a name to ONNX Runtime."""
    if not any("?" in info.shape for info in infos):
        return {}
    try:
        return files.size_names(model)
    except ValueError:  # of another format
        return {}


def _is_model(source: Any) -> bool:
    """Whether bytes, or a file's, are of a format that is known."""
    if isinstance(source, Mapping):
        return True
    try:
        formats.format_name(memoryview(source if isinstance(source, bytes) else Path(source).read_bytes()), "model")
    except webinfer.WebinferError:
        return False
    return True


def _may_hold_more_than_tensors(source: Any) -> bool:
    """Whether a model names the domain of operators on tables, with texts and maps, or an operator on sequences.

    With open sizes it is read at the first run only. Others cannot be loaded, and are looked at then.
    """
    marks = b"ai.onnx.ml", b"Sequence"
    if not isinstance(source, Path):
        return any(mark in _parts(source)[1] for mark in marks)
    if not source.stat().st_size:
        return False
    import mmap  # never in a page, where models are bytes

    with source.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return any(data.find(mark) >= 0 for mark in marks)


def _numbered(source: Any) -> tuple[Any, texts.Texts]:
    """The model with numbers in place of its texts, and its texts; as it is if it has none, or is not an ONNX model."""
    name, data, beside = _parts(source)
    try:
        found = texts.numbered(data)
    except ValueError:
        found = None
    if found is None:
        return source, texts.Texts()
    model, known = found
    return {name: model, **beside} if beside else model, known


def _node_arg(info: Any, sizes: Mapping[str, int], named: Mapping[str, list[str]], words: texts.Texts) -> NodeArg:
    """An input or output in ONNX Runtime's words."""
    if info.name in words.maps:
        return NodeArg(info.name, words.type_of(info.name) or "", [])
    names = named.get(info.name, [])
    told = [name or "?" for name in names] if len(names) == len(info.shape) else ["?"] * len(info.shape)
    sized = [name if size == "?" else size for size, name in zip(info.shape, told, strict=True)]
    shape = [sizes.get(size, size) if size != "?" else None for size in sized]
    plain = info.type if isinstance(info, variants.End) else tensor_type(info.dtype)
    return NodeArg(info.name, words.type_of(info.name) or plain, shape)


def _unranked(model: bytes) -> set[str]:
    """The inputs of whose sizes an ONNX file says nothing."""
    try:
        return {end.name for end in variants.ends(model).inputs if not end.is_ranked}
    except ValueError:  # of another format
        return set()


def _fitting(value: Any, arg: NodeArg, dtype: str, is_ranked: bool) -> Any:
    """A value for an input: an array, or a list of them for a sequence; `is_ranked`: whether it has the sizes of `arg`.

    Raises:  InvalidArgument if its type, rank or sizes do not fit, in ONNX Runtime's words; RuntimeError for what is
             wrong within a sequence
    """
    form = next((number for part, number in _FORMS if part in arg.type), variants.TENSOR)
    given = {list: variants.SEQUENCE, SparseTensor: variants.SPARSE}.get(type(value), variants.TENSOR)
    if form == variants.SEQUENCE == given:
        return _tensors(value, arg, dtype)
    if form == variants.SEQUENCE or (form != given and variants.SPARSE in (form, given)):
        text = f"input with name: '{arg.name}' expected to be of type: {arg.type} but received {type(value).__name__}"
        raise failure(InvalidArgument, text)
    if isinstance(value, SparseTensor):
        value = value._dense()
    if not hasattr(value, "dtype") or not hasattr(value, "shape"):
        value = _as_array(value, arg, dtype)
    if str(value.dtype) != dtype and type_number(dtype):
        found = tensor_type(value.dtype)
        text = f"Unexpected input data type. Actual: ({found}) , expected: ({arg.type})"
        raise failure(InvalidArgument, text)
    if not is_ranked:
        return value
    fix = "Please fix either the inputs/outputs or the model."
    if len(value.shape) != len(arg.shape):
        text = f"Invalid rank for input: {arg.name} Got: {len(value.shape)} Expected: {len(arg.shape)} {fix}"
        raise failure(InvalidArgument, text)
    wrong = [
        f" index: {i} Got: {found} Expected: {needed}\n"
        for i, (found, needed) in enumerate(zip(value.shape, arg.shape, strict=True))
        if isinstance(needed, int) and found != needed
    ]
    if wrong:
        head = f"Got invalid dimensions for input: {arg.name} for the following indices\n"
        raise failure(InvalidArgument, f"{head}{''.join(wrong)} {fix}")
    return value


def _tensors(values: list[Any], arg: NodeArg, dtype: str) -> list[Any]:
    """The tensors of a sequence.

    Raises:  RuntimeError if one is none, or of another type
    """
    for i, value in enumerate(values):
        if not hasattr(value, "dtype") or not hasattr(value, "shape"):
            raise RuntimeError(f"CreateSequenceOfTensors: Input is not a tensor: element {i} of {arg.name!r}")
        if str(value.dtype) != dtype:
            text = (
                f"element {i} of {arg.name!r} has a different data type: {tensor_type(value.dtype)}, not of {arg.type}"
            )
            raise RuntimeError(f"TensorSeq: {text}")
    return values


def _as_array(value: Any, arg: NodeArg, dtype: str) -> Any:
    """Lists and buffers as an array, or as a tensor where there is no NumPy.

    Raises:  InvalidArgument if lists are uneven
    """
    try:
        import numpy as np
    except ImportError:
        pass
    else:
        return np.asarray(value, dtype)
    shape, flat = [], value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(flat, list | tuple):
        flat = [flat]
    else:
        shape.append(len(flat))
        while flat and isinstance(flat[0], list | tuple):
            shape.append(len(flat[0]))
            if any(not isinstance(row, list | tuple) or len(row) != shape[-1] for row in flat):
                raise failure(InvalidArgument, f"The lists for input {arg.name} have different lengths")
            flat = [number for row in flat for number in row]
    if dtype not in _LETTERS:
        raise failure(InvalidArgument, f"Lists of {dtype} need NumPy; give a webinfer.Tensor for input {arg.name}")
    return webinfer.Tensor(array(_LETTERS[dtype], flat), tuple(shape), DType(dtype))


def _array(tensor: Any) -> Any:
    """A tensor as an array that may be written, a list as one of them; tensors themselves where there is no NumPy."""
    if isinstance(tensor, list):
        return [_array(one) for one in tensor]
    try:
        found = tensor.numpy()
    except ImportError:
        return tensor
    return found if found.flags.writeable else found.copy()
