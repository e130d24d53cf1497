"""The backends, one row each, and what is known of them without importing one.

A new backend is its folder, whose package has a `BACKEND` (backends.base.Backend), and one row here.
"""

from __future__ import annotations

import contextlib
import enum
import importlib
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TYPE_CHECKING

from webinfer.backends.base import Backend
from webinfer.dtypes import DType
from webinfer.errors import BackendUnavailableError
from webinfer.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from webinfer.host.interface import Host

AUTO = "auto"  # asks for the fastest by measurement


class Role(enum.StrEnum):
    """What a backend is for."""

    INFERENCE = "inference"  # runs models; pages offer it
    DEFINITION = "definition"  # slow and obvious: what the others are compared with
    ASSISTANT = "assistant"  # runs nodes that another one refuses; nobody asks for it by name
    STANDARD = "standard"  # another interface to what inference backends run on; used where it is asked for by name


async def _nothing(host: Host) -> None:
    """Needs nothing of the host."""


async def _kernels(host: Host) -> None:
    (await host.kernels()).close()


async def _gpu(host: Host) -> None:
    await host.gpu()


async def _webnn(host: Host) -> None:
    await host.webnn()


async def _always(host: Host) -> str:
    return ""


async def _hardware(host: Host) -> str:
    return "has only a software adapter" if (await host.gpu()).software else ""


async def _few_tokens(host: Host) -> int:
    return 64


async def _tokens_by_cores(host: Host) -> int:
    from webinfer.backends.webgpu.device_size import cores_of

    device = await host.gpu()
    return 512 if not device.software and cores_of(device.name, unknown=0) >= 40 else 256


@dataclass(frozen=True, slots=True)
class Row:
    """What is known of a backend without importing it."""

    name: str
    title: str  # as people read it
    role: Role
    hint: str = ""  # what it runs on, for people who choose one on a page
    options: frozenset[str] = frozenset()  # the fields of backends.base.BuildOptions that it takes
    auto: bool = False  # "auto" measures it
    fallback: str = ""  # runs what this one refuses, and takes over when its device is lost for good
    custom_shaders: bool = False  # runs custom operators by their WGSL
    prefill_chunk: Callable[[Host], Awaitable[int]] = _few_tokens  # that a language model reads of a prompt in a step
    caches: tuple[DType, ...] = ()  # what it can keep a language model's keys and values as, the fastest first
    stores_plans: bool = False  # plans outlast the visit, in the host's plan cache
    plan_suffix: str = ""  # of their names there, which tells them from those of other backends
    module: str = ""  # of its package; "" for the one of its name in this room
    demand: Callable[[Host], Awaitable[None]] = _nothing  # raises BackendUnavailableError if the host lacks something
    skip_in_auto: Callable[[Host], Awaitable[str]] = _always  # why "auto" skips it on this host; "" if it does not


_ROWS = (
    Row(
        "webgpu",
        "WebGPU",
        Role.INFERENCE,
        "The graphics processor",
        frozenset({"tuning_ms", "float16", "device"}),
        auto=True,
        fallback="wasm",
        prefill_chunk=_tokens_by_cores,
        caches=(DType.FLOAT32,),
        custom_shaders=True,
        stores_plans=True,
        plan_suffix="-gpu",
        demand=_gpu,
        skip_in_auto=_hardware,
    ),
    Row(
        "wasm",
        "WASM",
        Role.INFERENCE,
        "The processor, with SIMD where it has it",
        frozenset({"threads", "tuning_ms"}),
        auto=True,
        caches=(DType.INT16, DType.FLOAT32),
        stores_plans=True,
        demand=_kernels,
    ),
    Row(
        "webnn",
        "WebNN",
        Role.STANDARD,
        options=frozenset({"device"}),
        fallback="wasm",
        demand=_webnn,
    ),
    Row("reference", "NumPy reference", Role.DEFINITION, fallback="wasm"),
    Row("python", "Python functions of custom operators", Role.ASSISTANT),
)
ROWS: dict[str, Row] = {row.name: row for row in _ROWS}


# ----- names


def names() -> list[str]:
    """The names that `webinfer.load` knows besides "auto"."""
    return [row.name for row in ROWS.values() if row.role is not Role.ASSISTANT]


def listed() -> list[Row]:
    """The backends of this build that people may name: those that need no other one, other ones, and the definition."""
    rows = [row for row in ROWS.values() if row.role in (Role.INFERENCE, Role.DEFINITION)]
    return sorted(rows, key=lambda row: (row.role is Role.DEFINITION, bool(row.fallback)))


def inference_names() -> list[str]:
    """The backends that run models: those that a page offers, that tables compare and that judges judge."""
    return [row.name for row in listed() if row.role is Role.INFERENCE]


def definition() -> str:
    """The backend that says what is right."""
    return next(row.name for row in ROWS.values() if row.role is Role.DEFINITION)


def candidates() -> list[Row]:
    """The backends that "auto" measures; the last is ready first, as it has no shaders to compile."""
    return [row for row in ROWS.values() if row.auto]


def ready_first() -> str:
    """The one of them with which "auto" begins; "" if it measures none."""
    return next((row.name for row in reversed(candidates())), "")


def taking(option: str) -> list[str]:
    """The backends that take an option of `BuildOptions`."""
    return [row.name for row in ROWS.values() if option in row.options]


# ----- who helps out


def helper_backends() -> list[Row]:
    """The backends that are asked first when another one refuses nodes."""
    return [row for row in ROWS.values() if row.role is Role.ASSISTANT]


def fallbacks(name: str, custom: bool) -> list[str]:
    """Who may run what a backend refused, best first; `custom` tells that it refused custom operators only."""
    row = ROWS[name]
    shaders = [other.name for other in ROWS.values() if other.custom_shaders and other is not row]
    return [row.fallback] if row.fallback else shaders if custom else []


def fallback_of(name: str) -> str:
    """Who takes over from a backend whose device is lost for good; itself where nobody does."""
    row = ROWS.get(name)
    return row.fallback if row is not None and row.fallback else name


def storing_plans(order: Collection[str]) -> Sequence[Row]:
    """The backends of an order whose plans outlast the visit, in that order."""
    asked = [row for row in ROWS.values() if row.auto] if AUTO in order else [ROWS[name] for name in order]
    return [row for row in asked if row.stores_plans]


# ----- the code behind a row


def open_backend(name: str) -> Backend:
    """The backend of this name, imported on first use.

    Raises:  BackendUnavailableError if it is not part of this build, or needs a package that is not installed
    """
    row = ROWS[name]
    try:
        backend: Backend = importlib.import_module(row.module or f"webinfer.backends.{name}").BACKEND
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("webinfer"):
            raise BackendUnavailableError(f"backend {name} is not part of this build of webinfer") from error
        raise BackendUnavailableError(f"backend {name} needs {error.name}: pip install {error.name}") from error
    except AttributeError as error:
        raise BackendUnavailableError(f"backend {name} is not part of this build of webinfer") from error
    return backend


def able(interface: type) -> list[str]:
    """The backends that run models and, or whose executors, have an interface of backends.base; imports them."""
    found = []
    for row in ROWS.values():
        with contextlib.suppress(BackendUnavailableError):  # of another build
            backend = open_backend(row.name) if row.role is Role.INFERENCE else None
            if backend is not None and (issubclass(backend.executor, interface) or isinstance(backend, interface)):
                found.append(row.name)
    return found


async def demand(name: str, host: Host) -> None:
    """Returns if the backend can run on this host.

    Raises:  BackendUnavailableError with the reason and what would help
    """
    open_backend(name)
    await ROWS[name].demand(host)
