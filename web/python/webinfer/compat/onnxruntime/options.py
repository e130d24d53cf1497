"""Options of sessions and runs. What webinfer has no use for is kept and can be read again."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, ClassVar

from webinfer.compat.onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented, failure


class GraphOptimizationLevel(enum.IntEnum):
    """How far a model may be rewritten; webinfer always optimizes fully."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Whether operators may run beside each other; webinfer runs them one after the other."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    """In which order operators run."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class _Options:
    """Named options of fixed types: others are refused, as ONNX Runtime does."""

    _defaults: ClassVar[dict[str, Any]] = {}
    _kind = ""

    def __init__(self) -> None:
        object.__setattr__(self, "_values", dict(self._defaults))
        object.__setattr__(self, "_entries", {})

    def __getattr__(self, name: str) -> Any:
        try:
            return object.__getattribute__(self, "_values")[name]
        except KeyError:
            raise AttributeError(f"{self._kind} object has no attribute {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._defaults:
            raise AttributeError(f"{self._kind} object has no attribute {name!r}")
        kind = type(self._defaults[name])
        if isinstance(value, bool) != (kind is bool) or not isinstance(value, int if kind is int else kind):
            raise TypeError(f"{self._kind}.{name} is {value!r}, needs {'an' if kind is int else 'a'} {kind.__name__}")
        self._values[name] = value

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._defaults})

    def _add(self, key: str, value: str) -> None:
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"configuration entries of {self._kind} are two texts, not {key!r} and {value!r}")
        self._entries[key] = value

    def _entry(self, key: str) -> str:
        if key not in self._entries:
            raise RuntimeError(f"{self._kind} does not have configuration with key: {key}")
        return str(self._entries[key])


class SessionOptions(_Options):
    """Options of a session: `intra_op_num_threads` counts where the engine has threads; the rest is kept only."""

    _kind = "SessionOptions"
    _defaults: ClassVar[dict[str, Any]] = {
        "enable_cpu_mem_arena": True, "enable_mem_pattern": True, "enable_mem_reuse": True, "enable_profiling": False,
        "execution_mode": ExecutionMode.ORT_SEQUENTIAL, "execution_order": ExecutionOrder.DEFAULT,
        "graph_optimization_level": GraphOptimizationLevel.ORT_ENABLE_ALL, "inter_op_num_threads": 0,
        "intra_op_num_threads": 0, "log_severity_level": -1, "log_verbosity_level": 0, "logid": "",
        "optimized_model_filepath": "", "profile_file_prefix": "onnxruntime_profile_",
        "use_deterministic_compute": False, "use_per_session_threads": True,
    }  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "sizes_by_name", {})  # of free dimensions
        object.__setattr__(self, "providers", [])
        object.__setattr__(self, "sizes_by_denotation", {})
        object.__setattr__(self, "initializers", {})  # name -> array
        object.__setattr__(self, "files", {})  # name of a file that the model refers to -> its bytes

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keeps an entry of the configuration."""
        self._add(key, value)

    def get_session_config_entry(self, key: str) -> str:
        """An entry that was added. Raises: RuntimeError if there is none."""
        return self._entry(key)

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fixes a size that the model leaves open under this name."""
        if not isinstance(name, str) or not isinstance(size, int):
            raise TypeError(f"a free dimension has a name and a size, not {name!r} and {size!r}")
        self.sizes_by_name[name] = size

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Fixes the sizes of inputs that the model marks with this denotation."""
        if not isinstance(denotation, str) or not isinstance(size, int):
            raise TypeError(f"a free dimension has a denotation and a size, not {denotation!r} and {size!r}")
        self.sizes_by_denotation[denotation] = size

    def add_initializer(self, name: str, ort_value: Any) -> None:
        """Another value for an initializer, an OrtValue; it is read when a session is made."""
        self.initializers[name] = ort_value.numpy()

    def add_external_initializers(self, names: Sequence[str], values: Sequence[Any]) -> None:
        """Values for initializers whose files are not there. Raises: ValueError if the lists differ in length."""
        for name, value in zip(names, values, strict=True):
            self.add_initializer(name, value)

    def add_external_initializers_from_files_in_memory(
        self, names: Sequence[str], buffers: Sequence[Any], sizes: Sequence[int]
    ) -> None:
        """The bytes of files that the model refers to. Raises: ValueError if the lists differ in length."""
        for name, data, size in zip(names, buffers, sizes, strict=True):
            self.files[name] = bytes(memoryview(data)[:size])

    def add_provider(self, provider_name: str, provider_options: dict[str, str] | None = None) -> None:
        """Adds a provider, for sessions that are given none."""
        self.providers.append((provider_name, dict(provider_options or {})))

    def has_providers(self) -> bool:
        """Whether a provider was added."""
        return bool(self.providers)

    def register_custom_ops_library(self, path: str) -> None:
        """Refused. Raises: NotImplemented."""
        raise failure(NotImplemented, f"webinfer cannot load native operators, as those of {path}")


class RunOptions(_Options):
    """Options of a run: `terminate` stops it before it begins, adapters are used; the rest is kept only."""

    _kind = "RunOptions"
    _defaults: ClassVar[dict[str, Any]] = {
        "log_severity_level": -1, "log_verbosity_level": 0, "logid": "", "only_execute_path_to_fetches": False,
        "terminate": False,
    }  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "adapters", [])

    def add_active_adapter(self, adapter: Any) -> None:
        """Gives the run the parameters of a LoraAdapter, as values of the model's overridable initializers."""
        self.adapters.append(adapter)

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Keeps an entry of the configuration."""
        self._add(key, value)

    def get_run_config_entry(self, key: str) -> str:
        """An entry that was added. Raises: RuntimeError if there is none."""
        return self._entry(key)
