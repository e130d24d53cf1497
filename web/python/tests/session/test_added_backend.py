"""A backend that the engine has never heard of: its folder and one row, and everything else works."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.session.toy import ToyExecutor

import webinfer
from webinfer.backends import registry
from webinfer.backends.registry import Role, Row
from webinfer.errors import BackendUnavailableError, InputError, UnsupportedOpError
from webinfer.host.interface import Host

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(2, 6)


async def no_toys(host: Host) -> None:
    raise BackendUnavailableError("there are no toys here; look under the bed")


@pytest.fixture(autouse=True)
def row(monkeypatch: pytest.MonkeyPatch) -> Row:
    row = Row("toy", "Toy", Role.INFERENCE, options=frozenset({"threads"}), fallback="wasm", module="tests.session.toy")
    monkeypatch.setitem(registry.ROWS, "toy", row)
    return row


def model(*operators: str) -> webinfer.GraphBuilder:
    g = webinfer.GraphBuilder("model")
    y = g.input("x", (2, 6))
    for name in operators:
        y = g.node(name, y)
    g.output(y, "y")
    return g


def opened(*operators: str, backend: Any = "toy", **options: Any) -> webinfer.Session:
    return run(webinfer.load(model(*operators), backend=backend, **options))


def test_it_runs_a_model_and_the_plan_shows_it() -> None:
    with opened("abs", "neg") as session:
        np.testing.assert_array_equal(run(session.run(X))["y"].numpy(), -abs(X))
        assert [(row.op, row.backend, row.why) for row in session.plan().rows] == [
            ("abs", "toy", "for fun"),
            ("neg", "toy", "for fun"),
        ]
        assert session.choice == "toy was asked for"
        assert run(session.verify()).ok
        assert len(run(session.profile(rounds=1)).times_ms) == 2
        executor = session.executor
    assert isinstance(executor, ToyExecutor)
    assert executor.closed


def test_it_is_given_only_the_options_that_its_row_takes() -> None:
    with opened("neg", threads=3, tuning_ms=70.0) as session:
        assert isinstance(session.executor, ToyExecutor)
        assert (session.executor.options.threads, session.executor.options.tuning_ms) == (3, None)


def test_what_it_refuses_runs_on_its_fallback_unless_strict() -> None:
    with opened("abs", "exp", "neg") as session:
        rows = session.plan().rows
        assert [row.backend for row in rows] == ["toy", "wasm", "toy"]
        assert rows[1].why.endswith("exp on toy: no such byte code")
        np.testing.assert_allclose(run(session.run(X))["y"].numpy(), -np.exp(abs(X)), rtol=1e-6)
        assert session.backend == "toy+wasm"
    with pytest.raises(UnsupportedOpError, match="no such byte code"):
        opened("abs", "exp", strict=True)


def test_it_may_stand_anywhere_in_an_order() -> None:
    with opened("abs", "exp", backend=["toy", "reference"]) as session:
        assert [row.backend for row in session.plan().rows] == ["toy", "reference"]
    with opened("abs", backend=["webnn", "toy"]) as session:
        assert session.backend == "toy"
        assert "webnn" in session.choice


def test_auto_measures_it_where_it_is_worth_a_try(monkeypatch: pytest.MonkeyPatch, row: Row) -> None:
    async def bored(host: Host) -> str:
        return "would rather sleep"

    monkeypatch.setitem(registry.ROWS, "webgpu", replace(registry.ROWS["webgpu"], auto=False))
    monkeypatch.setitem(registry.ROWS, "toy", replace(row, auto=True))
    with opened("abs", backend="auto") as session:
        assert "toy" in session.choice
        assert "wasm" in session.choice
    monkeypatch.setitem(registry.ROWS, "toy", replace(row, auto=True, skip_in_auto=bored))
    with opened("abs", backend="auto") as session:
        assert session.backend == "wasm"
        assert session.choice == "auto chose wasm: toy would rather sleep"


def test_messages_know_it(monkeypatch: pytest.MonkeyPatch, row: Row) -> None:
    with pytest.raises(InputError, match="there are auto, webgpu, wasm, webnn, reference, toy"):
        opened("abs", backend="toys")
    with pytest.raises(InputError, match="precision='float16' is for webgpu; toy computes in float32"):
        opened("abs", precision="float16")
    with (
        opened("abs") as session,
        pytest.raises(InputError, match="runs on toy; results stay on the GPU only"),
    ):
        run(session.run_on_gpu(X))
    monkeypatch.setitem(registry.ROWS, "toy", replace(row, demand=no_toys))
    with pytest.raises(BackendUnavailableError, match="no toys"):
        run(registry.demand("toy", webinfer.host.current()))
    assert "toy" in [row.name for row in registry.listed()]
    assert "toy" in registry.inference_names()


def test_a_module_or_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, row: Row) -> None:
    monkeypatch.setitem(registry.ROWS, "toy", replace(row, module="webinfer.backends.toy"))
    with pytest.raises(BackendUnavailableError, match="backend toy is not part of this build of webinfer"):
        opened("abs")
    monkeypatch.setitem(registry.ROWS, "toy", replace(row, module="toys_of_others"))
    with pytest.raises(BackendUnavailableError, match="backend toy needs toys_of_others: pip install toys_of_others"):
        opened("abs")
