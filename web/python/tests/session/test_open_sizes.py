"""Sizes that a model leaves open are bound by what `run` is given; each set of sizes has a plan that is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from tests.importers.tflite_writer import Writer  # noqa: E402

import webinfer  # noqa: E402
from webinfer.errors import InputError, KernelError  # noqa: E402
from webinfer.session import lru_cache as kept  # noqa: E402
from webinfer.session import open_plans  # noqa: E402

SHARED = Path(__file__).parents[5] / "shared" / "onnx"
Work = Callable[[webinfer.Session], Awaitable[Any]]
DRAW = np.random.default_rng(3)


def with_session(work: Work, data: Any, backend: str = "wasm", **options: Any) -> Any:
    async def opened() -> Any:
        with await webinfer.load(data, backend=backend, **options) as session:
            return await work(session)

    return asyncio.run(opened())


def saved(nodes: list[Any], inputs: dict[str, Any], outputs: list[str], **constants: Any) -> bytes:
    """An ONNX model; inputs map names to shapes, or to (type, shape)."""
    infos = [
        helper.make_tensor_value_info(n, *(s if isinstance(s, tuple) else (TensorProto.FLOAT, s)))
        for n, s in inputs.items()
    ]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs]
    tensors = [numpy_helper.from_array(a, n) for n, a in constants.items()]
    graph = helper.make_graph(nodes, "g", infos, ends, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return bytes(model.SerializeToString())


def rows() -> bytes:
    """y = softmax(a @ w + b), of any number of rows."""
    nodes = [
        helper.make_node("MatMul", ["a", "w"], ["c"]),
        helper.make_node("Add", ["c", "b"], ["d"]),
        helper.make_node("Softmax", ["d"], ["y"], axis=-1),
    ]
    w = np.linspace(-1, 1, 24, dtype=np.float32).reshape(6, 4)
    return saved(nodes, {"a": ["n", 6], "b": ["n", 4]}, ["y"], w=w)


def fed(n: int, m: int | None = None) -> dict[str, Any]:
    return {"a": DRAW.normal(size=(n, 6)).astype("f4"), "b": DRAW.normal(size=(m or n, 4)).astype("f4")}


def judge_of(model: bytes | str) -> Any:
    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])


def judged(data: bytes, inputs: dict[str, Any]) -> list[Any]:
    return list(judge_of(data).run(None, inputs))


def shared(name: str) -> tuple[Path, Any]:
    """A model of ../shared/onnx and its judge; without the model the test is skipped."""
    path = SHARED / name
    if not path.is_file():
        pytest.skip(f"{name} is not in ../shared/onnx")
    return path, judge_of(str(path))


@pytest.mark.parametrize("backend", ["wasm", "reference"])
def test_the_first_run_binds_sizes_and_each_set_of_them_keeps_its_plan(backend: str) -> None:
    async def work(session: webinfer.Session) -> None:
        assert [(i.name, i.shape) for i in session.inputs] == [("a", ("n", 6)), ("b", ("n", 4))]
        assert "sizes open" in repr(session)
        executors = []
        for n in (3, 7, 3, 1, 7):
            inputs = fed(n)
            got = (await session.run(inputs))["y"].numpy()
            np.testing.assert_allclose(got, judged(rows(), inputs)[0], atol=1e-6)
            assert session.inputs[0].shape == (n, 6)
            assert session.plan().shapes == {"a": (n, 6), "b": (n, 4)}
            assert f"a {n}x6, b {n}x4" in str(session.plan())
            executors.append(session.executor)
        assert executors[0] is executors[2]
        assert executors[1] is executors[4]
        assert (await session.verify()).ok

    with_session(work, rows(), backend)


def test_before_sizes_are_bound_every_other_call_says_what_is_needed() -> None:
    async def work(session: webinfer.Session) -> None:
        needed = r"sizes.*open.*load\(shapes=…\)"
        for call in (session.warmup, session.profile, session.verify, session.tune, session.forget_tuning):
            with pytest.raises(InputError, match=needed):
                await call()
        for ask in (session.plan, session.memory, session.noise, session.graph_text, lambda: session.backend):
            with pytest.raises(InputError, match=needed):
                ask()
        assert "first run" in session.choice
        with pytest.raises(InputError, match=r"sizes of inputs open: a \(n, 6\).*arrays, which have shapes"):
            await session.run({"a": bytes(72), "b": bytes(48)})
        assert session.state() == {}
        session.reset()
        assert (await session.run(fed(2)))["y"].shape == (2, 4)
        await session.warmup()
        assert (await session.profile(rounds=1)).rows
        assert (await session.run({"a": bytes(48), "b": bytes(32)}))["y"].shape == (2, 4)  # as they are bound now

    with_session(work, rows())


def test_one_name_is_one_size() -> None:
    async def work(session: webinfer.Session) -> None:
        for _ in range(2):  # before and after sizes are bound
            with pytest.raises(InputError, match=r"size 'n' is bound to 3 and, by 'b', to 5"):
                await session.run(fed(3, 5))
            assert (await session.run(fed(2)))["y"].shape == (2, 4)
        with pytest.raises(InputError, match=r"input 'a' cannot have shape \(2, 5\); the model allows \(any, 6\)"):
            await session.run({"a": np.zeros((2, 5), np.float32), "b": np.zeros((2, 4), np.float32)})
        inputs = fed(4)  # one input with a shape is enough for all with its names
        got = (await session.run({"a": inputs["a"], "b": inputs["b"].tobytes()}))["y"].numpy()
        np.testing.assert_allclose(got, judged(rows(), inputs)[0], atol=1e-6)

    with_session(work, rows())


def test_plans_that_were_used_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_plans, "MAX_FAILURES", 0)  # a plan for each set of sizes

    async def work(session: webinfer.Session) -> None:
        seen = []
        for n in range(1, kept.MAX_PLANS + 2):
            await session.run(fed(n))
            seen.append(session.executor)
        assert [executor.closed for executor in seen] == [True, *[False] * kept.MAX_PLANS]
        await session.restore()  # as after the loss of a device: what others hold is gone too
        assert all(executor.closed for executor in seen)
        assert (await session.run(fed(2)))["y"].shape == (2, 4)
        monkeypatch.setattr(kept, "MAX_PLAN_BYTES", 1)
        await session.run(fed(3))
        first = session.executor
        await session.run(fed(4))
        await session.run(fed(5))
        assert first.closed

    with_session(work, rows())


def test_after_a_trap_the_next_run_works(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(session: webinfer.Session) -> None:
        await session.run(fed(2))
        await session.run(fed(3))

        def traps(_: Any) -> Any:
            raise KernelError("kernels trapped")

        monkeypatch.setattr(session.executor, "run_at_once", traps)
        with pytest.raises(KernelError):
            await session.run(fed(3))
        for n in (3, 2):
            inputs = fed(n)
            got = (await session.run(inputs))["y"].numpy()
            np.testing.assert_allclose(got, judged(rows(), inputs)[0], atol=1e-6)

    with_session(work, rows())


def _batches() -> bytes:
    """y = |x|, of any number of rows; the file's own number is 1. z is of a fixed size."""
    w = Writer()
    x, z = w.input("x", (1, 4), shape_signature=[-1, 4]), w.input("z", (1, 4))
    y, a = w.tensor("y", (1, 4), shape_signature=[-1, 4]), w.tensor("a", (1, 4))
    w.node("ABS", [x], [a])
    w.node("ADD", [a, z], [y])
    return w.finish(y)


def test_open_sizes_of_tflite_are_the_files_until_arrays_say_otherwise() -> None:
    async def work(session: webinfer.Session) -> None:
        z = np.ones((1, 4), np.float32)
        assert session.inputs[0].shape == (1, 4)
        for n in (1, 5, 3, 5):
            x = DRAW.normal(size=(n, 4)).astype(np.float32)
            np.testing.assert_array_equal((await session.run({"x": x, "z": z}))["y"].numpy(), abs(x) + 1)
        with pytest.raises(InputError, match=r"input 'z' has shape \(2, 4\), needs \(1, 4\).*model allows \(1, 4\)"):
            await session.run({"x": x, "z": np.ones((2, 4), np.float32)})

    with_session(work, _batches())


def _counting() -> bytes:
    """A recurrent layer whose state is of as many rows as its input."""
    w = Writer()
    x, y = w.input("x", (1, 3, 2), shape_signature=[-1, 3, 2]), w.tensor("y", (1, 3, 2))
    state = w.tensor("state", (1, 2))
    w.graph.tensors[state].isVariable = True
    weights, recurrent = w.constant("w", np.eye(2, dtype=np.float32)), w.constant("r", np.eye(2, dtype=np.float32))
    bias = w.constant("b", np.zeros(2, np.float32))
    w.node("UNIDIRECTIONAL_SEQUENCE_RNN", [x, weights, recurrent, bias, state], [y], fused_activation_function=0)
    return w.finish(y)


def test_state_of_another_size_is_an_error_until_it_is_reset() -> None:
    async def work(session: webinfer.Session) -> None:
        one, two = (np.ones((n, 3, 2), np.float32) for n in (1, 2))
        assert (await session.run(one))["y"].numpy().max() == 3
        with pytest.raises(InputError, match=r"variable 'state' .* holds \(1, 2\), .* need \(2, 2\); call reset\(\)"):
            await session.run(two)
        assert (await session.run(one))["y"].numpy().max() == 6  # what it held goes on
        session.reset()
        with pytest.raises(InputError, match="variable"):
            (await session.run(one)), await session.run(two)
        session.reset()
        assert (await session.run(two))["y"].numpy().max() == 3
        assert session.state()["state"].shape == (2, 2)

    with_session(work, _counting())


def test_nobody_runs_with_variables_while_a_trial_does(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(session: webinfer.Session) -> None:
        x = np.ones((1, 3, 2), np.float32)
        other = await session.open_signature("again")
        for executor, pause in ((session.executor, 0.03), (other.executor, 0.01)):
            monkeypatch.setattr(executor, "run", slowly(executor.run, pause))
        with other:
            results = await asyncio.gather(session.warmup(), other.run(x), session.warmup(), session.run(x))
            assert sorted(r["y"].numpy().max() for r in results if r) == [3, 6]
            assert session.state()["state"].numpy().max() == 6

    w = _counting()
    with_session(work, _with_signature(w), shapes={"x": (1, 3, 2)})


def slowly(run: Callable[[Any], Awaitable[Any]], pause: float) -> Callable[[Any], Awaitable[Any]]:
    async def late(inputs: Any) -> Any:
        await asyncio.sleep(pause)
        return await run(inputs)

    return late


def _with_signature(data: bytes) -> bytes:
    """The model with a signature that calls its input otherwise."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(data, 0))
    signature, x, y = schema.SignatureDefT(), schema.TensorMapT(), schema.TensorMapT()
    graph = model.subgraphs[0]
    x.name, x.tensorIndex = "given", graph.inputs[0]
    y.name, y.tensorIndex = "y", graph.outputs[0]
    signature.signatureKey, signature.inputs, signature.outputs = "again", [x], [y]
    model.signatureDefs = [signature]
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def test_sentences_of_several_lengths() -> None:
    path, judge = shared("minilm_l6_v2_int8w.onnx")

    async def work(session: webinfer.Session) -> None:
        for length in (5, 16, 5):
            ids = DRAW.integers(100, 20000, (1, length))
            inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
            inputs = {info.name: inputs[info.name] for info in session.inputs}
            got = list((await session.run(inputs)).values())
            for mine, want in zip(got, judge.run(None, inputs), strict=True):
                np.testing.assert_allclose(mine.numpy(), want, atol=1e-3 * np.ptp(want))

    with_session(work, path)
