"""A plan is stored for the next visit, used only as a whole, and never where it does not fit."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import Target as RingTarget
from tests.session.models import IMAGE, model
from tests.session.visits import Visitor, answer, host, opened

import webinfer
from webinfer.backends.wasm import WasmExecutor, stored_plan, tuning
from webinfer.backends.wasm.stored_plan import RestoredExecutor
from webinfer.backends.webgpu import WebGpuExecutor
from webinfer.backends.webgpu import compilation as gpu_compilation
from webinfer.backends.webgpu.stored_plan import RestoredProgram
from webinfer.host.checksums import sealed, unsealed
from webinfer.session import loading, plan_cache
from webinfer.session.session import Session
from webinfer.tune.search import Trial, Winner

__all__ = ["host"]  # a fixture


def test_the_second_visit_runs_the_stored_plan_without_reading_the_model(
    host: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(host) as first:
        assert type(first.executor) is WasmExecutor
        want, rows, memory = answer(first), first.plan().rows, first.memory()
        inputs, outputs = first.inputs, first.outputs
    monkeypatch.setattr(loading, "read_model", None)  # a call would fail
    with opened(host) as second:
        assert type(second.executor) is RestoredExecutor
        assert (second.inputs, second.outputs) == (inputs, outputs)
        assert (second.plan().rows, second.memory()) == (rows, memory)
        np.testing.assert_array_equal(answer(second), want)
        times = run(second.profile())
        assert len(times.rows) == len(rows)


def test_a_restored_session_still_shows_its_graph_and_checks_itself(host: Visitor) -> None:
    with opened(host) as first:
        text = first.graph_text()
    with opened(host) as second:
        report = run(second.verify(against="reference"))
        assert report.ok
        assert len(report.differences) == 3
        assert second.graph_text().splitlines()[1:] == text.splitlines()[1:]
        run(second.restore())
        assert answer(second).shape == (1, 36)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:10],
        lambda data: data[:-1],
        lambda data: data + b"\0",
        lambda data: data[:-40] + bytes([data[-40] ^ 1]) + data[-39:],
        lambda data: data[:50] + b"?" + data[51:],
        lambda data: b"WIC0" + data[4:],
        lambda data: data[:200] + bytes(len(data) - 400) + data[-200:],
        lambda data: b"<!doctype html>" * 100,
    ],
    ids=["empty", "stump", "short", "long", "flipped bit", "header", "other version", "zeroed middle", "another file"],
)
def test_a_damaged_plan_is_ignored_replaced_and_told(
    host: Visitor, damage: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(host) as first:
        want = answer(first)
    whole = host.store[host.place]
    host.store[host.place] = damage(whole)
    with opened(host) as second:
        assert type(second.executor) is WasmExecutor
        np.testing.assert_array_equal(answer(second), want)
    assert host.store[host.place] == whole
    assert [record.message for record in caplog.records] == [
        f"{host.place} was stored here and is damaged; it is made anew"
    ]


def test_a_plan_of_another_format_is_ignored(host: Visitor) -> None:
    opened(host).close()
    whole = host.store[host.place]
    for other in (b"", b"WIP0" + bytes(100)):
        host.store[host.place] = sealed(other)
        with opened(host) as session:
            assert type(session.executor) is WasmExecutor
        assert host.store[host.place] == whole


def test_a_plan_of_another_engine_or_setting_is_ignored(host: Visitor) -> None:
    opened(host).close()
    host.engine = "engine 2"
    with opened(host) as other_engine:
        assert type(other_engine.executor) is WasmExecutor
    with opened(host, tuning_ms=1) as other_setting:
        assert type(other_setting.executor) is WasmExecutor
    with opened(host, tuning_ms=1) as same:
        assert type(same.executor) is RestoredExecutor


def test_another_model_has_another_place(host: Visitor) -> None:
    opened(host).close()
    first = host.place
    host.store.clear()
    run(_touch(host))
    assert host.place != first


async def _touch(host: Visitor) -> None:
    changed = bytearray(model())
    at = bytes(changed).index(np.float32(0.1).tobytes())
    changed[at : at + 4] = np.float32(0.5).tobytes()
    session = await webinfer.load(bytes(changed), backend="wasm", tuning_ms=0, host=host)
    while not host.store:
        await asyncio.sleep(0.01)
    session.close()


def test_a_plan_that_is_too_large_is_not_stored(host: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_plan, "MAX_BYTES", 100)
    opened(host).close()
    assert host.store[host.place] == sealed(b"")


def test_the_plan_of_a_large_model_is_not_looked_for(host: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_cache, "MAX_MODEL_BYTES", len(model()) - 1)
    opened(host).close()
    assert not host.store


def test_a_session_that_was_closed_stores_nothing(host: Visitor) -> None:
    async def brief() -> None:
        (await webinfer.load(model(), backend="wasm", host=host)).close()
        await asyncio.sleep(0.05)

    run(brief())
    assert not host.store


def test_tuning_happens_after_the_load_and_its_winners_are_in_the_next_plan(
    host: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def winner(trials: Any, prepare: Any, clock: Any, budget_ms: float) -> list[Any]:
        assert budget_ms == 150
        return [Winner(t.key, t.candidates[-1], 0.5, 1.0, t.candidates[0]) for t in trials]

    monkeypatch.setattr("webinfer.backends.wasm.tuning._search", winner)
    with opened(host, tuning_ms=150) as first:
        want = answer(first)
        assert "(default)" in first.plan().rows[0].why
    with opened(host, tuning_ms=150) as second:
        assert type(second.executor) is RestoredExecutor
        assert "(tuned)" in second.plan().rows[0].why
        np.testing.assert_allclose(answer(second), want, rtol=1e-5, atol=1e-6)
    with opened(host, tuning_ms=0) as defaults:
        assert "(default)" in defaults.plan().rows[0].why


class Slow:
    """A run that takes so many milliseconds of a clock of its own, of which every third is a disturbed one."""

    def __init__(self, now: list[float], ms: float) -> None:
        self.now, self.ms, self.count, self.closed = now, ms, 0, False

    async def elapsed(self, repeats: int) -> float:
        self.count += 1
        ms = self.ms * repeats * (20 if self.count % 3 == 0 else 1)
        self.now[0] += ms
        return ms

    def close(self) -> None:
        self.closed = True


def searched(milliseconds: dict[str, dict[str, float]], budget_ms: float) -> dict[str, str]:
    """What is chosen of tiles that take so long, the heaviest shape first; every run is closed."""
    now, runs = [0.0], list[Slow]()

    async def prepare(trial: Any, tile: str) -> Slow:
        runs.append(Slow(now, milliseconds[trial.key][tile]))
        return runs[-1]

    trials = [Trial(key, tuple(tiles), -i) for i, (key, tiles) in enumerate(milliseconds.items())]
    winners = run(tuning._search(trials, prepare, lambda: now[0], budget_ms))
    assert all(one.closed for one in runs)
    return {winner.key: winner.choice for winner in winners}


def test_a_tile_must_beat_the_default_by_a_tenth_whatever_disturbs_it() -> None:
    shapes = {"a": {"4x8": 1.0, "6x8": 0.85}, "b": {"4x8": 1.0, "6x8": 0.95}, "c": {"4x8": 1.0, "6x8": 1.2}}
    assert searched(shapes, 1e6) == {"a": "6x8", "b": "4x8", "c": "4x8"}


def test_what_the_budget_cuts_short_is_left_or_stays_as_it_is() -> None:
    shapes = {"a": {"4x8": 1.0, "6x8": 0.5}, "b": {"4x8": 100.0, "6x8": 50.0}}
    assert searched(shapes, 600.0) == {"a": "6x8"}
    assert searched({"b": shapes["b"]}, 600.0) == {"b": "4x8"}


def test_a_damaged_tuning_log_is_ignored_replaced_and_told(host: Visitor, caplog: pytest.LogCaptureFixture) -> None:
    with opened(host, tuning_ms=1000) as session:
        want = answer(session)
    (name,) = (name for name in host.store if name.startswith("tuning-"))
    whole = host.store[name]
    assert b'"choice": "' in whole
    host.store = {name: whole.replace(b'"choice": "', b'"choice": "no')}  # reads as a tile that does not exist
    with opened(host, tuning_ms=1000) as session:
        np.testing.assert_allclose(answer(session), want, rtol=1e-5)
    assert unsealed(name, host.store[name]) is not None
    assert {record.message for record in caplog.records} == {f"{name} was stored here and is damaged; it is made anew"}


@pytest.mark.parametrize("backend", ["wasm", "webgpu"])
def test_a_script_stores_its_plan_before_load_returns(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if backend == "webgpu":
        RingTarget(backend).demand()
    host = Visitor(script=True)
    with run(webinfer.load(model(), host=host, backend=backend)) as first:
        want = answer(first)
    assert host.place
    monkeypatch.setattr(loading, "read_model", None)  # a call would fail
    with run(webinfer.load(model(), host=host, backend=backend)) as second:
        assert type(second.executor) in (RestoredExecutor, RestoredProgram)
        np.testing.assert_array_equal(answer(second), want)


def test_no_kernel_is_timed_where_nothing_goes_on_behind_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "tune", None)  # a call would fail
    host = Visitor(script=True)
    for kind in (WasmExecutor, RestoredExecutor):
        with run(webinfer.load(model(4), host=host, backend="wasm", tuning_ms=150)) as session:
            assert type(session.executor) is kind
    assert list(host.store) == [host.place]


def test_custom_operators_keep_plans_from_being_stored() -> None:
    host = Visitor(script=True)
    webinfer.register_operator("my.plan_cache", wgsl="load_x(i)", reference=lambda x: x)
    try:
        run(webinfer.load(model(), host=host, backend="wasm")).close()
        assert not host.store
    finally:
        webinfer.unregister_operator("my.plan_cache")


RESTORED = """
import sys, webinfer
with webinfer.load_sync(sys.argv[1], backend="wasm") as session:
    print(type(session.executor).__name__, "webinfer.ops" in sys.modules)
"""


def test_the_second_process_restores_the_plan_of_the_first_without_importing_operators(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(model())
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(webinfer.__file__).parents[1]),
        "WEBINFER_CACHE": str(tmp_path / "cache"),
        "XDG_CONFIG_HOME": str(tmp_path / "own"),
    }

    def process(plans: str) -> str:
        given = [sys.executable, "-c", RESTORED, str(file)]
        told = subprocess.run(given, env=environment | {"WEBINFER_PLANS": plans}, capture_output=True, text=True)
        assert told.returncode == 0, told.stderr
        return told.stdout.strip()

    assert process("") == "WasmExecutor True"
    assert process("") == "RestoredExecutor False"
    assert process("off") == "WasmExecutor True"


def test_hosts_without_an_identity_store_nothing() -> None:
    with run(webinfer.load(model(), backend="wasm")) as session:
        assert type(session.executor) is WasmExecutor
        assert session._live.options.plan_entry is None


# ----- on a GPU


@pytest.fixture
def gpu_host(monkeypatch: pytest.MonkeyPatch) -> Visitor:
    RingTarget("webgpu").demand()
    return Visitor()


async def _opened_on_gpu(host: Visitor, **options: Any) -> Session:
    session = await webinfer.load(model(), host=host, **{"backend": "webgpu", **options})
    await asyncio.sleep(0.02)
    while gpu_compilation._later:
        await asyncio.sleep(0.01)
    return session


def opened_on_gpu(host: Visitor, **options: Any) -> Session:
    return run(_opened_on_gpu(host, **options))


def test_a_plan_of_a_gpu_comes_back_without_reading_the_model(
    gpu_host: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened_on_gpu(gpu_host) as first:
        assert type(first.executor) is WebGpuExecutor
        want, rows, memory = answer(first), first.plan().rows, first.memory()
        inputs, outputs = first.inputs, first.outputs
    with monkeypatch.context() as patch:
        patch.setattr(loading, "read_model", None)  # a call would fail
        with opened_on_gpu(gpu_host) as second:
            assert type(second.executor) is RestoredProgram
            assert (second.inputs, second.outputs) == (inputs, outputs)
            assert (second.plan().rows, second.memory()) == (rows, memory)
            np.testing.assert_array_equal(answer(second), want)
            kept = run(second.run_on_gpu({"image": IMAGE}))
            np.testing.assert_array_equal(run(kept["y"].read()).numpy(), want)
            assert len(run(second.profile(rounds=1)).rows) == len(rows)
    with opened_on_gpu(gpu_host) as third:
        report = run(third.verify(against="reference"))
        assert report.ok
        assert len(report.differences) == 3
        run(third.restore())
        np.testing.assert_array_equal(answer(third), want)


def test_a_plan_of_a_gpu_is_for_one_engine_one_device_and_one_tuning(
    gpu_host: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened_on_gpu(gpu_host).close()
    gpu_host.engine = "engine 2"
    with opened_on_gpu(gpu_host) as session:
        assert type(session.executor) is WebGpuExecutor
    with opened_on_gpu(gpu_host) as session:
        assert type(session.executor) is RestoredProgram
        run(session.tune(budget_ms=5.0))
        run(session.forget_tuning())
    with monkeypatch.context() as patch:
        patch.setattr(gpu_compilation, "default_tunings", lambda *_: {"conv2d of another engine": "vec4_1"})
        with opened_on_gpu(gpu_host) as session:
            assert type(session.executor) is WebGpuExecutor
    device = run(gpu_host.gpu())
    patch_limits = {**device.limits, "maxComputeInvocationsPerWorkgroup": 128}
    monkeypatch.setattr(type(device), "limits", property(lambda self: patch_limits), raising=False)
    with opened_on_gpu(gpu_host) as session:
        assert type(session.executor) is WebGpuExecutor


def test_plans_of_several_backends_lie_beside_each_other(gpu_host: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    opened_on_gpu(gpu_host).close()
    opened(gpu_host).close()
    assert len(gpu_host.store) == 2
    with opened_on_gpu(gpu_host, backend=["webgpu", "wasm"]) as session:
        assert type(session.executor) is RestoredProgram
    with opened(gpu_host) as session:
        assert type(session.executor) is RestoredExecutor


@pytest.mark.parametrize("damage", [lambda data: data[:10], lambda data: data[:50] + b"?" + data[51:]])
def test_a_damaged_plan_of_a_gpu_is_made_anew(gpu_host: Visitor, damage: Any) -> None:
    with opened_on_gpu(gpu_host) as first:
        want = answer(first)
    (name,) = gpu_host.store
    gpu_host.store[name] = damage(gpu_host.store[name])
    with opened_on_gpu(gpu_host) as second:
        assert type(second.executor) is WebGpuExecutor
        np.testing.assert_array_equal(answer(second), want)
