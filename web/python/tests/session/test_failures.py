"""Errors that nobody foresaw while a model is compiled: they name the node, and the next backend takes the model."""

from __future__ import annotations

import dataclasses
import math
import struct
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.webgpu.devices import HARDWARE

import webinfer
from webinfer.backends import registry
from webinfer.backends.webgpu.lowerings.suppression import LEAST_NORMAL, next_f32
from webinfer.backends.webgpu.schedule import make_schedule
from webinfer.errors import CompilerError, InputError, OutOfMemoryError, UnsupportedOpError
from webinfer.graph.ir import Graph, Value, apply
from webinfer.host.native import NativeHost
from webinfer.ops import OPS
from webinfer.ops.elementwise import ABS
from webinfer.passes import pipeline
from webinfer.session import selection
from webinfer.session.backend_benchmark import BackendBenchmark

X = np.float32([1, -2, 3])


def _builder() -> webinfer.GraphBuilder:
    g = webinfer.GraphBuilder("g")
    g.output(g.node("abs", g.input("x", (3,)), name="first"), "y")
    return g


def _fail(*args: Any) -> Any:
    raise struct.error("required argument is not an integer")


def _breaks(monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    name = "executor" if backend in ("reference", "wasm") else "schedule"
    monkeypatch.setitem(import_module(f"webinfer.backends.{backend}.{name}").LOWERINGS, ABS, _fail)


def test_a_failed_lowering_names_node_and_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    told = r"first: abs on wasm: error: required argument is not an integer; this is a bug of webinfer"
    _breaks(monkeypatch, "wasm")
    with pytest.raises(CompilerError, match=told) as caught:
        run(webinfer.load(_builder(), backend="wasm"))
    assert caught.value.code == "compiler"
    _breaks(monkeypatch, "webgpu")
    with pytest.raises(CompilerError, match=told.replace("wasm", "webgpu")):
        make_schedule(_builder().graph(), HARDWARE)


def test_the_next_backend_of_a_list_takes_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    _breaks(monkeypatch, "wasm")
    with run(webinfer.load(_builder(), backend=["wasm", "reference"])) as session:
        assert session.backend == "reference"
        assert "first: abs on wasm" in session.choice
        assert run(session.run(X))["y"].tolist() == [1, 2, 3]
    with pytest.raises(CompilerError):
        run(webinfer.load(_builder(), backend=["wasm", "reference"], strict=True))


def test_auto_goes_on_with_the_next_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "candidates", lambda: [registry.ROWS[name] for name in ("reference", "wasm")])
    asked: list[str] = []

    async def build(name: str) -> Any:
        asked.append(name)
        if len(asked) == 1:
            raise CompilerError("first: abs: a bug")
        return name

    benchmark = BackendBenchmark(_builder().graph(), NativeHost(), build)
    assert run(benchmark.next()) == "reference"
    assert asked == ["wasm", "reference"]
    assert "first: abs: a bug" in benchmark._notes[0]


def test_whatever_else_a_backend_raises_names_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    wasm = import_module("webinfer.backends.wasm.executor")
    monkeypatch.setattr(wasm, "lower_graph", _fail)
    with pytest.raises(CompilerError, match="'g' cannot be compiled for wasm: error: required argument"):
        run(webinfer.load(_builder(), backend="wasm"))
    monkeypatch.setattr(wasm, "lower_graph", lambda *args: (_ for _ in ()).throw(MemoryError()))
    with pytest.raises(OutOfMemoryError, match="'g' on wasm: no memory"):
        run(webinfer.load(_builder(), backend="wasm"))


def test_a_backend_that_fails_on_what_the_first_refused_leaves_the_model_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built: list[str] = []

    async def build(name: str, graph: Graph, host: Any, options: Any) -> Any:
        built.append(name)
        if name == "webgpu":
            raise UnsupportedOpError(["first: abs on webgpu: no"], graph.nodes)
        if name == "wasm":
            raise CompilerError("first: abs on wasm: a bug")
        return name

    monkeypatch.setattr(selection, "_build", build)
    found = run(selection._select(_builder().graph(), NativeHost(), ["webgpu", "wasm", "reference"], _options(), False))
    assert found.executor == "reference"
    assert "webgpu with wasm: first: abs on wasm: a bug" in found.reason


def _options() -> selection.LoadOptions:
    return selection.LoadOptions()


def test_a_failed_pass_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def looks_up(graph: Graph) -> int:
        return {}[graph.name]  # type: ignore[no-any-return]

    monkeypatch.setattr(pipeline, "PIPELINE", (looks_up,))
    with pytest.raises(CompilerError, match="g cannot be optimised: looks_up: KeyError: 'g'"):
        run(webinfer.load(_builder(), backend="wasm"))


def test_the_reference_names_the_node_that_fails_in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    _breaks(monkeypatch, "reference")
    with run(webinfer.load(_builder(), backend="reference")) as session:
        with pytest.raises(CompilerError, match="first: abs on reference: error: required argument"):
            run(session.run(X))


@pytest.mark.parametrize(
    ("data", "dtype", "told"),
    [([1.5], "int32", "whole numbers in its range"), ([300], "uint8", "whole numbers"), (["a"], "float32", "numbers")],
)
def test_numbers_that_make_no_constant_are_refused_in_plain_words(data: Any, dtype: str, told: str) -> None:
    with pytest.raises(InputError, match=f"these 1 elements make no flat constant of {dtype}, .* {told}") as caught:
        webinfer.GraphBuilder().constant(data, dtype=dtype)
    assert "format" not in str(caught.value)


def test_the_next_float_of_any_threshold() -> None:
    for x in (0.0, -0.0, 1e-40, -1e-40, LEAST_NORMAL):
        assert next_f32(x) == LEAST_NORMAL
    largest = float(np.finfo(np.float32).max)
    for x in (0.5, -0.5, 1.0, -1.0, 1e30, -1e30):
        assert next_f32(x) == float(np.nextafter(np.float32(x), np.float32(math.inf)))
    for x in (largest, math.inf, 1e300):
        assert next_f32(x) == largest
    for x in (-largest, -math.inf, -1e300):
        assert next_f32(x) == float(np.nextafter(np.float32(-largest), np.float32(0)))


@pytest.mark.parametrize("least", [0.0, -0.0, -1.0, -math.inf, 2.0])
def test_detections_of_any_threshold_can_be_lowered(least: float) -> None:
    op = OPS["detection_postprocess"]
    case = next(c for c in op.cases if not c.attrs.regular and c.attrs.per_box == 1)
    inputs = [None if t is None else Value(f"x{i}", t) for i, t in enumerate(case.inputs)]
    node = apply(op, inputs, dataclasses.replace(case.attrs, least=least, overlap=0.0), "ssd")
    graph = Graph("g", [v for v in inputs if v is not None], node.outputs, [node])
    assert make_schedule(graph, HARDWARE).run
    node.attrs = dataclasses.replace(node.attrs, least=math.nan)
    with pytest.raises(UnsupportedOpError, match="a threshold that is NaN"):
        make_schedule(graph, HARDWARE)
