"""What a memory snapshot of the interpreter holds, and what a restored one must renew.

Set-up calls `preload` inside Pyodide and saves the interpreter's memory; a page that restored that memory
calls `after_restore` before anything else. All modules are there but those of late parts (`host.late_parts`), and
all shaders.
"""

from __future__ import annotations

import gc
import importlib
import json
import pkgutil
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import webinfer
from webinfer.backends.base import GpuExecutor, KernelExecutor
from webinfer.backends.registry import AUTO, ROWS, Row, able, candidates
from webinfer.codegen.templates import preload_templates
from webinfer.lazy_dataclass import compile_all
from webinfer.models.registry import MODELS
from webinfer.session.plan_cache import entry_name
from webinfer.tasks import TASKS


def preload() -> list[str]:
    """The names of the engine's modules that are imported now; shader templates and dataclasses are compiled.

    What is there now is never looked at again by the garbage collector.
    """
    names = list(_imported(webinfer.__path__, "webinfer."))
    preload_templates()
    compile_all()
    random.seed(0)  # so that the same engine gives the same snapshot
    gc.collect()
    gc.freeze()
    return names


def _imported(folders: Iterable[str], prefix: str) -> Iterator[str]:
    for module in pkgutil.iter_modules(folders, prefix):
        found = importlib.import_module(module.name)
        yield module.name
        if module.ispkg:
            yield from _imported(found.__path__, f"{module.name}.")


def facts() -> str:
    """What the page's worker needs to prefetch before Python is up, as JSON.

    `plans`: where each known model's plan, as its task runs it, lies in the origin's cache, before a backend's suffix.
    `needs`: whether a backend, or the choice of one, needs kernels and a GPU, and that suffix. `probes`: for each
    kernel build, best first, the bytes of a module that only an engine with its features accepts. `gpu`: what a GPU
    device is asked for.
    """
    from webinfer.host.gpu_browser import WISHES
    from webinfer.host.kernels_browser import PROBES
    from webinfer.host.origin_cache import CACHE

    plans = {
        name: f"/{CACHE}/{entry_name(known.sha256, TASKS[known.task].extension)}"
        for name, known in MODELS.items()
        if known.task in TASKS
    }
    needs = {row.name: _needs([row]) for row in ROWS.values()} | {AUTO: _needs(candidates())}
    probes = {isa: list(bytes.fromhex(probe)) for isa, probe in PROBES.items()}
    return json.dumps({"plans": plans, "needs": needs, "probes": probes, "gpu": WISHES})


def _needs(rows: Sequence[Row]) -> dict[str, Any]:
    return {
        "suffix": rows[0].plan_suffix if len(rows) == 1 else "",
        "kernels": any(row.name in able(KernelExecutor) for row in rows),
        "gpu": any(row.name in able(GpuExecutor) for row in rows),
    }


def after_restore() -> None:
    """Gives this interpreter its own chance, time zone and errors: it shares its memory with all others."""
    from webinfer.host.browser import tell_errors

    tell_errors()
    random.seed()
    if hasattr(time, "tzset"):
        time.tzset()
