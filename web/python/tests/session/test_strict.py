"""`strict`: a graph that the backend cannot run whole is refused, whichever fallback could help out."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run

import webinfer
from webinfer.backends import registry
from webinfer.backends.registry import Role, Row
from webinfer.errors import UnsupportedOpError
from webinfer.ops.custom import BY_CODE, CUSTOM

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(2, 6)
WAYS = (
    pytest.param("exp", "toy", id="its stand-in"),
    pytest.param("exp", ["toy", "wasm"], id="the next of a list"),
    pytest.param("my.cube", "wasm", id="an assistant"),
    pytest.param("my.cube", ["wasm", "reference"], id="an assistant before the next of a list"),
    pytest.param("my.cube", "auto", id="an assistant of a measured one"),
)


@pytest.fixture(autouse=True)
def toy_and_operator(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A backend that knows three operators, one operator that only its Python function computes, and no GPU."""
    row = Row("toy", "Toy", Role.INFERENCE, fallback="wasm", module="tests.session.toy")
    monkeypatch.setitem(registry.ROWS, "toy", row)
    monkeypatch.setitem(registry.ROWS, "webgpu", dataclasses.replace(registry.ROWS["webgpu"], auto=False))
    webinfer.register_operator("my.cube", reference=lambda x: x**3)
    yield
    CUSTOM.clear()
    BY_CODE.clear()


def opened(operator: str, backend: Any, **options: Any) -> webinfer.Session:
    g = webinfer.GraphBuilder("divided")
    g.output(g.node(operator, g.node("abs", g.input("x", (2, 6)))), "y")
    return run(webinfer.load(g, backend=backend, **options))


@pytest.mark.parametrize(("operator", "backend"), WAYS)
def test_a_divided_graph_is_refused_if_strict_and_runs_else(operator: str, backend: Any) -> None:
    with pytest.raises(UnsupportedOpError, match=operator) as refusal:
        opened(operator, backend, strict=True)
    assert len(refusal.value.nodes) == 1
    with opened(operator, backend) as session:
        assert len({row.backend for row in session.plan().rows}) == 2
        want = np.exp(abs(X)) if operator == "exp" else abs(X) ** 3
        np.testing.assert_allclose(run(session.run(X))["y"].numpy(), want, rtol=1e-6)


@pytest.mark.parametrize("backend", ["toy", ["toy", "wasm"], "wasm", ["wasm", "reference"], "auto"])
def test_a_whole_graph_is_no_matter_of_strictness(backend: Any) -> None:
    with opened("neg", backend, strict=True) as session:
        np.testing.assert_array_equal(run(session.run(X))["y"].numpy(), -abs(X))


def test_a_session_that_was_loaded_strict_stays_so_when_it_is_built_anew() -> None:
    with opened("neg", "wasm", strict=True) as session:
        g = webinfer.GraphBuilder("divided")
        g.output(g.node("my.cube", g.input("x", (2, 6))), "y")
        with pytest.raises(UnsupportedOpError, match=r"my\.cube"):
            run(session._live.switch({}, {"x": (2, 6)}, g.graph, lambda _: g.graph()))
