"""Variables live from run to run, as LiteRT's do: resource variables, states of layers, signatures that share them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter
from tests.importers.runs import real, weights8
from tests.importers.test_loops import _with_subgraphs
from tests.importers.tflite_writer import Array, Writer

import webinfer
from webinfer.errors import InputError, ModelFormatError, UnsupportedOpError
from webinfer.importers import read_model

SHARED = Path(__file__).parents[5] / "shared" / "models_more"
X = [np.array(row, np.float32) for row in ([1, 2], [10, 20], [-3, 5])]


def _handle(w: Writer, name: str = "total") -> int:
    handle = w.tensor("handle", ())
    w.graph.tensors[handle].type = schema.TensorType.RESOURCE
    w.node("VAR_HANDLE", [], [handle], container="", shared_name=name)
    return handle


def _adding(w: Writer, once: int = 1, factor: float = 1.0) -> None:
    """total += factor * x; y = total."""
    x = w.input("x", (2,))
    if once:
        w.node("CALL_ONCE", [], [], init_subgraph_index=once)
    handle, old = _handle(w), w.tensor("old", (2,))
    w.node("READ_VARIABLE", [handle], [old])
    scaled, y = w.tensor("scaled", (2,)), w.tensor("y", (2,))
    w.node("MUL", [x, w.constant("factor", np.array(factor, np.float32))], [scaled])
    w.node("ADD", [old, scaled], [y])
    w.node("ASSIGN_VARIABLE", [handle, y], [])
    w.graph.outputs = [y]


def _first(w: Writer) -> None:
    w.node("ASSIGN_VARIABLE", [_handle(w), w.constant("first", np.array([0.5, -1.5], np.float32))], [])


ADDING = _with_subgraphs(_adding, _first)


def _judged(data: bytes, xs: Sequence[Array]) -> list[Array]:
    """LiteRT's results of runs one after the other."""
    interpreter = Interpreter(model_content=data, num_threads=1)
    interpreter.allocate_tensors()
    results = []
    for x in xs:
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
        interpreter.invoke()
        results.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).copy())
    return results


def _opened(work: Callable[[webinfer.Session], Any], data: Any, backend: str = "wasm", **options: Any) -> Any:
    async def opened() -> Any:
        with await webinfer.load(data, backend=backend, **options) as session:
            return await work(session)

    return asyncio.run(opened())


def _runs(data: Any, xs: Sequence[Array], backend: str = "wasm") -> list[Array]:
    async def work(session: webinfer.Session) -> list[Array]:
        name = session.outputs[0].name
        return [(await session.run(x))[name].numpy().copy() for x in xs]

    return list(_opened(work, data, backend))


@pytest.mark.parametrize("backend", ["reference", "wasm", "webgpu"])
def test_a_variable_lives_from_run_to_run(backend: str) -> None:
    np.testing.assert_array_equal(_runs(ADDING, X, backend), _judged(ADDING, X))


def test_the_state_can_be_seen_and_reset_and_trials_leave_it() -> None:
    async def work(session: webinfer.Session) -> None:
        assert [i.name for i in session.inputs] == ["x"]
        assert list(await session.run(X[0])) == ["y"]
        after = session.state()["total"].tolist()
        assert after == [1.5, 0.5]
        await session.warmup()
        await session.profile(rounds=1)
        assert (await session.verify()).ok
        assert session.state()["total"].tolist() == after
        session.reset()
        assert session.state()["total"].tolist() == [0.5, -1.5]
        assert (await session.run(X[1]))["y"].tolist() == [10.5, 18.5]

    _opened(work, ADDING)


def test_results_on_the_gpu_keep_the_state_too() -> None:
    async def work(session: webinfer.Session) -> None:
        kept = await session.run_on_gpu(X[0])
        assert list(kept) == ["y"]
        assert session.state()["total"].tolist() == [1.5, 0.5]

    _opened(work, ADDING, "webgpu")


def test_what_nobody_assigns_is_a_constant() -> None:
    def main(w: Writer) -> None:
        x, y, v = w.input("x", (2,)), w.tensor("y", (2,)), w.tensor("v", (2,))
        w.node("CALL_ONCE", [], [], init_subgraph_index=1)
        w.node("READ_VARIABLE", [_handle(w)], [v])
        w.node("MUL", [x, v], [y])
        w.graph.outputs = [y]

    data = _with_subgraphs(main, _first)
    graph = read_model(data)
    assert not graph.states
    assert [v.name for v in graph.inputs] == ["x"]
    np.testing.assert_array_equal(_runs(data, X[:2]), _judged(data, X[:2]))


def test_a_branch_changes_a_variable_only_where_it_is_taken() -> None:
    def main(w: Writer) -> None:
        _adding(w, once=3)
        y, total, limit = w.graph.outputs[0], w.tensor("sum", ()), w.constant("limit", np.array(20, np.float32))
        w.node("SUM", [y, w.constant("axes", [0])], [total])
        w.node("GREATER", [total, limit], [large := w.tensor("large", (), "bool")])
        w.node("IF", [large, y], [z := w.tensor("z", (2,))], then_subgraph_index=1, else_subgraph_index=2)
        w.graph.outputs = [z]

    def halve(w: Writer) -> None:
        v, z = w.input("v", (2,)), w.tensor("z", (2,))
        w.node("MUL", [v, w.constant("half", np.array(0.5, np.float32))], [z])
        w.node("ASSIGN_VARIABLE", [_handle(w), z], [])
        w.graph.outputs = [z]

    def leave(w: Writer) -> None:
        v, z = w.input("v", (2,)), w.tensor("z", (2,))
        w.node("NEG", [v], [z])
        w.graph.outputs = [z]

    data = _with_subgraphs(main, halve, leave, _first)
    np.testing.assert_array_equal(_runs(data, X), _judged(data, X))


def _layer(op: str, steps: int, quant: Any = None) -> bytes:
    """One recurrent layer of 3 units over [1, steps, 4]; with a scale its weights are int8."""
    w = Writer()
    x, y = w.input("x", (1, steps, 4)), w.tensor("y", (1, steps, 3))
    state = [w.tensor(name, (1, 3), is_variable=True) for name in ("hidden", "cell")]

    def weights(count: int, *shape: int) -> list[int]:
        if quant is None or len(shape) == 1:
            return [w.constant(f"w{i}", real(*shape)) for i in range(count)]
        return [w.constant(f"w{i}", weights8(*shape), quant) for i in range(count)]

    inputs = [x, *weights(1, 3, 4), *weights(1, 3, 3), *weights(1, 3), state[0]]
    if op == "UNIDIRECTIONAL_SEQUENCE_LSTM":
        inputs = [x, *weights(4, 3, 4), *weights(4, 3, 3), -1, -1, -1, *weights(4, 3), -1, -1, *state, -1, -1, -1, -1]
    w.node(op, inputs, [y], 1 if quant is None else 2, fused_activation_function=4, time_major=False)
    return w.finish(y)


@pytest.mark.parametrize("op", ["UNIDIRECTIONAL_SEQUENCE_LSTM", "UNIDIRECTIONAL_SEQUENCE_RNN"])
def test_a_recurrent_layer_goes_on_where_it_ended(op: str) -> None:
    data, xs = _layer(op, 2), [real(1, 2, 4) for _ in range(3)]
    np.testing.assert_allclose(_runs(data, xs), _judged(data, xs), atol=1e-6)


def _two_signatures(once: bool = True) -> bytes:
    w = Writer()
    _adding(w, once=2 if once else 0)
    w.begin_subgraph()
    _adding(w, once=2 if once else 0, factor=-1.0)
    w.begin_subgraph()
    _first(w)
    w.model.signatureDefs = []
    for number, name in enumerate(("give", "take")):
        signature = schema.SignatureDefT()
        signature.signatureKey, signature.subgraphIndex = name, number
        for side, index, called in (("inputs", 0, "amount"), ("outputs", w.model.subgraphs[0].outputs[0], "left")):
            entry = schema.TensorMapT()
            entry.name, entry.tensorIndex = called, index
            setattr(signature, side, [entry])
        w.model.signatureDefs.append(signature)
    return w.finish()


def test_signatures_share_their_variables() -> None:
    data = _two_signatures()
    runners = Interpreter(model_content=data)
    want = [
        runners.get_signature_runner(n)(amount=x)["left"] for n, x in (("give", X[0]), ("take", X[1]), ("give", X[2]))
    ]

    async def work(give: webinfer.Session) -> None:
        assert give.signatures == ("give", "take")
        assert [i.name for i in give.inputs] == ["amount"]
        with await give.open_signature("take") as take:
            got = [(await s.run({"amount": x}))["left"].numpy() for s, x in ((give, X[0]), (take, X[1]), (give, X[2]))]
            np.testing.assert_array_equal(got, want)
            take.reset()
            assert give.state()["total"].tolist() == [0.5, -1.5]
        with pytest.raises(InputError, match="has no signature 'steal'; it has give, take"):
            await give.open_signature("steal")

    _opened(work, data, signature="give")


def test_a_variable_that_holds_nothing_yet_is_a_typed_error() -> None:
    async def work(session: webinfer.Session) -> None:
        with pytest.raises(InputError, match="variable 'total' of 'model' holds nothing yet"):
            await session.run(X[0])

    _opened(work, _two_signatures(once=False), signature="give")


def test_an_unknown_signature_is_a_typed_error() -> None:
    for data, says in ((_two_signatures(), "it has give, take"), (ADDING, "it has none")):
        with pytest.raises(InputError, match=f"has no signature 'steal'; {says}"):
            read_model(data, "model", signature="steal")


def test_handles_are_no_tensors_and_variables_keep_their_type() -> None:
    def with_handle(w: Writer) -> None:
        x, y = w.input("x", (2,)), w.tensor("y", (2,))
        w.node("ADD", [x, _handle(w)], [y])
        w.graph.outputs = [y]

    def growing(w: Writer) -> None:
        _adding(w, once=0)
        twice = w.tensor("twice", (4,))
        w.node("CONCATENATION", [w.graph.outputs[0]] * 2, [twice], axis=0)
        w.node("ASSIGN_VARIABLE", [_handle(w), twice], [])

    with pytest.raises(ModelFormatError, match="input 1 is a variable's handle, needs a tensor"):
        read_model(_with_subgraphs(with_handle))
    with pytest.raises(UnsupportedOpError, match="variable 'total', which changes from"):
        read_model(_with_subgraphs(growing))


def test_a_quantised_state_is_computed_in_real_numbers_where_that_is_asked_for() -> None:
    w = Writer()
    quant = (0.05, 3)
    x, y, old = (
        w.input("x", (2,), "int8", quant),
        w.tensor("y", (2,), "int8", quant),
        w.tensor("v", (2,), "int8", quant),
    )
    w.node("CALL_ONCE", [], [], init_subgraph_index=1)
    handle = _handle(w)
    w.node("READ_VARIABLE", [handle], [old])
    w.node("ADD", [x, old], [y], version=2)
    w.node("ASSIGN_VARIABLE", [handle, y], [])
    w.graph.outputs = [y]
    w.begin_subgraph()
    w.node("ASSIGN_VARIABLE", [_handle(w), w.constant("first", np.array([23, -17], np.int8), quant)], [])

    async def work(session: webinfer.Session) -> list[list[float]]:
        return [(await session.run(x))["y"].tolist() for x in X[:2]]

    got = _opened(work, w.finish(), dequantize=True)
    np.testing.assert_allclose(got, [[2, 1], [12, 21]], rtol=1e-6)


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared/models_more")
@pytest.mark.parametrize("name", ["mww_v1_alexa", "lyra_soundstream_encoder"])
def test_streaming_models_hear_what_came_before(name: str) -> None:
    data, rng = (SHARED / f"{name}.tflite").read_bytes(), np.random.default_rng(3)
    info = read_model(data).inputs[0].type
    xs = [(100 * rng.uniform(-1, 1, info.shape)).astype(info.dtype.value) for _ in range(4)]
    want = _judged(data, xs)
    for a, b in zip(_runs(data, xs), want, strict=True):
        np.testing.assert_allclose(a.astype(float), b.astype(float), atol=1e-4 * max(float(np.abs(b).max()), 1.0))
