"""The rows of the registry agree with the backends behind them, and sessions know backends only through them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.ops.case_graphs import run
from tests.session.graphs import diamond

import webinfer.session
from webinfer.backends import registry
from webinfer.backends.base import (
    BuildOptions,
    GpuExecutor,
    GpuPartExecutor,
    KernelExecutor,
    PageExecutor,
    PartExecutor,
    TunableExecutor,
)
from webinfer.host.native import NativeHost

ROOM = Path(webinfer.session.__file__).parent
BUILT = list(registry.ROWS)
INTERFACES = (GpuExecutor, KernelExecutor, PageExecutor, PartExecutor, GpuPartExecutor, TunableExecutor)


@pytest.mark.parametrize("path", sorted(ROOM.rglob("*.py")), ids=lambda path: path.stem)
def test_sessions_name_no_backend(path: Path) -> None:
    text = path.read_text(encoding="utf-8").lower()
    found = [row.name for row in registry.ROWS.values() if row.name in text or row.title.lower() in text]
    assert not found, f"{path.name} names {', '.join(found)}; ask the registry"


@pytest.mark.parametrize("row", registry.listed(), ids=lambda row: row.name)
def test_an_executor_is_of_the_class_that_its_backend_names(row: registry.Row) -> None:
    host = NativeHost()
    try:
        run(registry.demand(row.name, host))
    except webinfer.BackendUnavailableError as error:
        pytest.skip(str(error))
    backend = registry.open_backend(row.name)
    executor = run(backend.build(diamond(), host, BuildOptions()))
    assert executor.backend == row.name
    assert isinstance(executor, backend.executor)
    for interface in INTERFACES:
        assert isinstance(executor, interface) is (row.name in registry.able(interface))
    executor.close()


@pytest.mark.parametrize("name", BUILT)
def test_every_row_of_this_build_has_a_backend(name: str) -> None:
    assert registry.open_backend(name)
    assert registry.ROWS[name].fallback in ("", *BUILT)


def test_the_registry_is_read_without_importing_a_backend() -> None:
    code = "import sys, webinfer.backends.registry as r; r.listed(); print(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(ROOM.parents[1])}
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    modules = found.stdout.split()
    rooms = [name for name in modules if name.startswith(tuple(f"webinfer.backends.{name}" for name in registry.ROWS))]
    assert not rooms
    assert not {"numpy", "jinja2"} & set(modules)


def test_names_and_orders() -> None:
    assert registry.names() == ["webgpu", "wasm", "webnn", "reference"]
    assert [row.name for row in registry.listed()] == ["wasm", "webgpu", "reference"]
    assert registry.inference_names() == ["wasm", "webgpu"]
    assert [row.name for row in registry.candidates()] == ["webgpu", "wasm"]
    assert registry.fallbacks("webgpu", custom=True) == ["wasm"]
    assert registry.fallbacks("wasm", custom=True) == ["webgpu"]
    assert registry.fallbacks("wasm", custom=False) == []
