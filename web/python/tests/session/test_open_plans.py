"""A plan with symbols in it is bound to sizes: it gives, bit for bit, what a plan made for those sizes gives."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
import onnx
from onnx import TensorProto, helper
from tests.importers.tflite_writer import Writer
from tests.ops.case_graphs import run
from tests.ops.targets import Target
from tests.session.test_open_sizes import fed, rows, saved, with_session

import webinfer
from build_scripts.judge.open_models import HEADS, WIDTH, WORDS, Model, decoder, encoder, pictures
from webinfer.backends.base import BindableExecutor
from webinfer.backends.wasm import open_plan
from webinfer.errors import InputError
from webinfer.session import open_plans

DRAW = np.random.default_rng(5)


def sentence(tokens: int, batch: int = 1) -> dict[str, Any]:
    mask = np.ones((batch, tokens), np.int64)
    mask[:, tokens - tokens // 4 :] = 0
    return {"ids": DRAW.integers(0, WORDS, (batch, tokens)), "mask": mask}


def picture(height: int, width: int) -> dict[str, Any]:
    return {"x": DRAW.random((1, 3, height, width), np.float32)}


def cached(past: int, new: int = 1) -> dict[str, Any]:
    names = [f"{tag}_past_{part}" for tag in "ab" for part in "kv"]
    cache = {name: DRAW.normal(size=(1, HEADS, past, WIDTH // HEADS)).astype("f4") for name in names}
    return {"ids": DRAW.integers(0, WORDS, (1, new)), **cache}


def columns() -> bytes:
    """Products whose columns are of an open number: of a weight and data, and of data alone, with softmax between."""
    w = DRAW.normal(size=(6, 24)).astype("f4")
    nodes = [
        helper.make_node("MatMul", ["w", "x"], ["a"]),
        helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]),
        helper.make_node("MatMul", ["t", "x"], ["s"]),
        helper.make_node("Softmax", ["s"], ["p"], axis=-1),
        helper.make_node("MatMul", ["a", "p"], ["y"]),
    ]
    return saved(nodes, {"x": [24, "n"]}, ["a", "s", "y"], w=w)


def halves() -> bytes:
    """Attention in float16 whose keys and values grow, the scale a number of its own."""
    float16, nodes = TensorProto.FLOAT16, list[Any]()
    for new, past in (("k", "keys"), ("v", "values")):
        nodes.append(helper.make_node("Concat", [past, new], [f"all_{past}"], axis=2))
    nodes += [
        helper.make_node("Transpose", ["all_keys"], ["t"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "t"], ["s"]),
        helper.make_node("Mul", ["s", "scale"], ["scaled"]),
        helper.make_node("Softmax", ["scaled"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "all_values"], ["y"]),
    ]
    shapes = {name: (float16, [1, 2, 1, 16]) for name in "qkv"}
    shapes |= {name: (float16, [1, 2, "n", 16]) for name in ("keys", "values")}
    model = onnx.load_from_string(saved(nodes, shapes, ["y", "all_keys", "all_values"], scale=np.array(0.25, "f2")))
    for end in model.graph.output:
        end.type.tensor_type.elem_type = float16
    return bytes(model.SerializeToString())


def grown(past: int) -> dict[str, Any]:
    sizes = {"q": 1, "k": 1, "v": 1, "keys": past, "values": past}
    return {name: DRAW.normal(size=(1, 2, size, 16)).astype("f2") for name, size in sizes.items()}


def wide() -> bytes:
    """As Gemma 2: heads of 256 elements, scores with a soft cap, and a mask for each query."""
    nodes = [
        helper.make_node("Transpose", ["k"], ["t"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "t"], ["s"]),
        helper.make_node("Div", ["s", "cap"], ["over"]),
        helper.make_node("Tanh", ["over"], ["bent"]),
        helper.make_node("Mul", ["bent", "cap"], ["capped"]),
        helper.make_node("Add", ["capped", "mask"], ["masked"]),
        helper.make_node("Softmax", ["masked"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["y"]),
    ]
    shapes = {"q": [1, 2, "n", 256], "k": [1, 2, "m", 256], "v": [1, 2, "m", 256], "mask": [1, 1, "n", "m"]}
    return saved(nodes, shapes, ["y"], cap=np.array(20, "f4"))


def rows_of_256(past: int, new: int) -> dict[str, Any]:
    inputs = {name: DRAW.normal(size=(1, 2, past + new, 256)).astype("f4") for name in "kv"}
    hidden = np.arange(past + new) > past + np.arange(new)[:, None]
    mask = np.where(hidden, -np.inf, 0).astype("f4")[None, None]
    return {"q": inputs["k"][:, :, -new:] / 4, **inputs, "mask": mask}


def regimes(session: webinfer.Session) -> int:
    return len(session._live._open_plans.executors())


async def equal_to_a_new_plan(
    session: webinfer.Session, model: bytes, inputs: dict[str, Any], backend: str = "wasm"
) -> None:
    got = await session.run(inputs)
    shapes = {name: array.shape for name, array in inputs.items()}
    with await webinfer.load(model, backend=backend, shapes=shapes, threads=1) as other:
        want = await other.run(inputs)
    for name, tensor in want.items():
        assert got[name].shape == tensor.shape
        if backend == "wasm":
            np.testing.assert_array_equal(got[name].numpy(), tensor.numpy(), err_msg=f"{name} at {shapes}")
        else:  # attention adds up blocks of keys, whose length an open size may choose otherwise
            np.testing.assert_allclose(got[name].numpy(), tensor.numpy(), atol=1e-5, err_msg=f"{name} at {shapes}")


SWEEPS: dict[str, tuple[bytes, list[dict[str, Any]], int]] = {
    "encoder": (encoder(), [sentence(t) for t in (20, 9, 33, 12, 32, 64, 100, 17, 10, 128, 11)], 1),
    "short sentences": (encoder(), [sentence(t) for t in (6, 3, 5, 8, 2, 4, 7)], 2),
    "batches": (encoder(), [sentence(t, b) for t, b in ((20, 2), (9, 3), (33, 5), (17, 2), (12, 7), (25, 3))], 1),
    "decoder": (decoder(), [cached(p) for p in (1, 2, 3, 4, 5, 8, 9, 31, 32, 33, 60, 127, 7)], 2),
    "prompts": (decoder(), [cached(p, n) for p, n in ((5, 4), (9, 12), (20, 9), (40, 33), (7, 20))], 3),
    "columns": (columns(), [{"x": DRAW.normal(size=(24, n)).astype("f4")} for n in (3, 5, 8, 9, 12, 33, 64)], 4),
    "float16": (halves(), [grown(p) for p in (2, 3, 5, 8, 9, 17, 32, 33, 60)], 2),
    "heads of 256": (wide(), [rows_of_256(p, n) for p, n in ((7, 2), (0, 33), (0, 9), (20, 21), (40, 3), (0, 70))], 2),
    "pictures": (pictures(), [picture(h, w) for h, w in ((64, 64), (96, 80), (61, 97), (128, 32), (99, 40))], 4),
}  # fmt: skip


@pytest.mark.parametrize("name", SWEEPS)
def test_a_bound_plan_gives_the_bits_of_a_new_one(name: str) -> None:
    model, sweep, most = SWEEPS[name]

    async def work(session: webinfer.Session) -> None:
        for inputs in sweep:
            await equal_to_a_new_plan(session, model, inputs)
        for inputs in reversed(sweep):
            await equal_to_a_new_plan(session, model, inputs)
        assert 1 <= regimes(session) <= most

    with_session(work, model, threads=1)


def test_one_plan_serves_sizes_from_9_on_and_no_weight_is_packed_again() -> None:
    async def work(session: webinfer.Session) -> None:
        await session.run(sentence(20))
        await session.run(sentence(21))
        plan, constants = session.executor, session.memory().constants
        assert isinstance(plan, BindableExecutor)
        steps = [row.kernel for row in session.plan().rows]
        for tokens in range(9, 60):
            y = await session.run(sentence(tokens))
            if tokens == 20:
                continue  # its own plan, which is kept
            assert session.executor is plan
            assert next(iter(y.values())).shape == (1, tokens, WIDTH)
            assert session.inputs[0].shape == (1, tokens)
            assert [row.kernel for row in session.plan().rows] == steps
            assert session.memory().constants == constants
        assert regimes(session) == 1

    with_session(work, encoder(), threads=1)


def test_what_is_seen_of_a_bound_plan_follows_its_sizes() -> None:
    async def work(session: webinfer.Session) -> None:
        for tokens in (20, 21, 30):
            await session.run(sentence(tokens))
        report = session.plan()
        assert report.shapes == {"ids": (1, 30), "mask": (1, 30)}
        assert any("1x30x32" in row.shapes for row in report.rows)
        assert not any("21" in row.shapes for row in report.rows)
        assert "regime 1 of 1 holds while" in str(report)
        assert "1x30x32" in session.graph_text()
        assert (await session.verify(inputs=sentence(30))).ok
        assert (await session.profile(rounds=1)).rows
        await session.run(sentence(25))
        assert (await session.verify(inputs=sentence(60))).ok
        assert session.plan().shapes["ids"] == (1, 60)

    with_session(work, encoder(), threads=1)


def test_positions_are_checked_for_the_sizes_that_are_bound() -> None:
    from onnx import TensorProto, helper

    nodes = [helper.make_node("Gather", ["x", "at"], ["y"], axis=0)]
    model = saved(nodes, {"x": ["n", 3], "at": (TensorProto.INT64, ["k"])}, ["y"])

    def given(n: int, *at: int) -> dict[str, Any]:
        return {"x": DRAW.normal(size=(n, 3)).astype("f4"), "at": np.array(at)}

    async def work(session: webinfer.Session) -> None:
        for n, at in ((5, (4, 0)), (7, (6, 1)), (9, (8, 2, 3))):
            await session.run(given(n, *at))
        assert isinstance(session.executor, BindableExecutor)
        with pytest.raises(InputError, match=r"'at' holds 10.*an axis of 10"):
            await session.run(given(10, 3, 10))
        y = await session.run(given(12, 3, 11, 4, 5))
        assert y["y"].shape == (4, 3)

    with_session(work, model, threads=1)


def test_the_arena_grows_by_steps_and_is_not_laid_out_for_every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    moves = []
    before = open_plan.OpenExecutor._move_arena

    def counted(self: open_plan.OpenExecutor, found: Any) -> None:
        moves.append(1)
        before(self, found)

    monkeypatch.setattr(open_plan.OpenExecutor, "_move_arena", counted)

    async def work(session: webinfer.Session) -> None:
        for past in range(1, 101):
            await session.run(cached(past))
        assert 1 < len(moves) < 30
        await equal_to_a_new_plan(session, decoder(), cached(77))

    with_session(work, decoder(), threads=1)


def test_two_sizes_of_one_name_are_refused_when_bound_too() -> None:
    async def work(session: webinfer.Session) -> None:
        for n in (3, 4, 5):
            await session.run(fed(n))
        with pytest.raises(InputError, match=r"size 'n' is bound to 6 and, by 'b', to 7"):
            await session.run(fed(6, 7))
        with pytest.raises(InputError, match=r"cannot have shape \(2, 5\)"):
            await session.run({"a": np.zeros((2, 5), np.float32), "b": np.zeros((2, 4), np.float32)})
        assert (await session.run(fed(9)))["y"].shape == (9, 4)

    with_session(work, rows(), threads=1)


def test_a_model_that_needs_numbers_gets_a_plan_for_each_set_of_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    made = open_plans._made

    async def counted(*args: Any) -> Any:
        read.append(1)
        return await made(*args)

    monkeypatch.setattr(open_plans, "_made", counted)
    from onnx import helper

    nodes = [helper.make_node("Hardmax", ["x"], ["y"])]

    async def work(session: webinfer.Session) -> None:
        for n in (3, 4, 5, 6, 4):
            x = DRAW.normal(size=(n, n)).astype("f4")
            largest = np.eye(n, dtype="f4")[x.argmax(-1)]
            np.testing.assert_array_equal((await session.run({"x": x}))["y"].numpy(), largest)
            assert not isinstance(session.executor, BindableExecutor)
        assert len(read) == open_plans.MAX_FAILURES

    with_session(work, saved(nodes, {"x": ["n", "n"]}, ["y"]), threads=1)


@pytest.mark.parametrize("diagonal", [0, 1, -2])
def test_an_identity_matrix_follows_sizes(diagonal: int) -> None:
    from onnx import helper

    nodes = [helper.make_node("EyeLike", ["x"], ["e"], k=diagonal), helper.make_node("Add", ["x", "e"], ["y"])]

    async def work(session: webinfer.Session) -> None:
        for n, m in ((3, 3), (4, 6), (5, 2), (9, 9), (7, 30), (0, 3)):
            x = DRAW.normal(size=(n, m)).astype("f4")
            y = (await session.run({"x": x}))["y"].numpy()
            np.testing.assert_array_equal(y, x + np.eye(n, m, diagonal, dtype="f4"))
            assert isinstance(session.executor, BindableExecutor) == (n != 3)
        assert regimes(session) == 2  # one of them for no rows

    with_session(work, saved(nodes, {"x": ["n", "m"]}, ["y"]), threads=1)


def test_regimes_that_are_too_many_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_plans, "MAX_REGIMES", 2)

    async def work(session: webinfer.Session) -> None:
        for tokens, batch in ((20, 1), (5, 2), (20, 2), (9, 5), (40, 4), (21, 2), (22, 1)):
            await equal_to_a_new_plan(session, encoder(), sentence(tokens, batch))
        assert regimes(session) <= 2

    with_session(work, encoder(), threads=1)


def test_a_session_that_is_built_anew_goes_on_at_the_bound_sizes() -> None:
    async def work(session: webinfer.Session) -> None:
        for tokens in (20, 21, 30):
            await session.run(sentence(tokens))
        await session.restore()
        assert not isinstance(session.executor, BindableExecutor)
        await equal_to_a_new_plan(session, encoder(), sentence(30))
        await equal_to_a_new_plan(session, encoder(), sentence(31))
        assert isinstance(session.executor, BindableExecutor)
        session.close()
        gc.collect()

    with_session(work, encoder(), threads=1)


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_share_a_bound_plan_as_a_new_one(threads: int) -> None:
    async def work() -> None:
        with await webinfer.load(encoder(), backend="wasm", threads=threads) as session:
            for tokens in (40, 120, 60, 90):
                inputs = sentence(tokens)
                got = await session.run(inputs)
                shapes = {name: array.shape for name, array in inputs.items()}
                with await webinfer.load(encoder(), backend="wasm", shapes=shapes, threads=threads) as other:
                    want = await other.run(inputs)
                for name in want:
                    np.testing.assert_array_equal(got[name].numpy(), want[name].numpy())

    asyncio.run(work())


def scaled() -> bytes:
    """y: x [1, 3, h, w] enlarged to sizes that are computed as real numbers: 2 h and 3 w."""
    from onnx import TensorProto, helper

    nodes = [
        helper.make_node("Shape", ["x"], ["s"], start=2),
        helper.make_node("Cast", ["s"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["f", "factors"], ["g"]),
        helper.make_node("Floor", ["g"], ["e"]),
        helper.make_node("Cast", ["e"], ["wanted"], to=TensorProto.INT64),
        helper.make_node("Concat", ["lead", "wanted"], ["sizes"], axis=0),
        helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode="linear"),
    ]
    factors = np.array([2, 3], np.float32)
    return saved(nodes, {"x": [1, 3, "h", "w"]}, ["y"], factors=factors, lead=np.array([1, 3]))


def test_a_one_hot_of_known_positions_is_known() -> None:
    """As PyTorch writes how often `repeat_interleave` repeats along each axis: experts of mixtures in TorchScript."""
    nodes = [
        helper.make_node("OneHot", ["axis", "rank", "once_or_twice"], ["hot"]),
        helper.make_node("Reshape", ["hot", "flat"], ["repeats"]),
        helper.make_node("Tile", ["x", "repeats"], ["y"]),
    ]
    constants = {
        "axis": np.array([-1]),
        "rank": np.array([2]),
        "once_or_twice": np.array([1, 2]),
        "flat": np.array([2]),
    }

    async def work(session: webinfer.Session) -> None:
        for n in (3, 5, 8):
            x = DRAW.normal(size=(n, 3)).astype("f4")
            np.testing.assert_array_equal((await session.run({"x": x}))["y"].numpy(), np.tile(x, (1, 2)))
            assert isinstance(session.executor, BindableExecutor) == (n != 3)
        assert regimes(session) == 1

    with_session(work, saved(nodes, {"x": ["n", 3]}, ["y"], **constants), threads=1)


def test_sizes_that_are_computed_as_real_numbers_stay_symbols() -> None:
    async def work(session: webinfer.Session) -> None:
        for height, width in ((8, 9), (10, 7), (12, 33), (31, 6)):
            await equal_to_a_new_plan(session, scaled(), picture(height, width))
        assert regimes(session) == 1

    with_session(work, scaled(), threads=1)


def test_sizes_that_a_model_refuses_do_not_count_against_symbols() -> None:
    from onnx import helper

    nodes = [helper.make_node("Reshape", ["x", "pairs"], ["y"])]
    model = saved(nodes, {"x": ["n"]}, ["y"], pairs=np.array([2, -1]))

    async def work(session: webinfer.Session) -> None:
        await session.run({"x": np.zeros(4, np.float32)})
        for n in (5, 7, 9):
            with pytest.raises(InputError, match="does not fit"):
                await session.run({"x": np.zeros(n, np.float32)})
        assert (await session.run({"x": np.zeros(6, np.float32)}))["y"].shape == (2, 3)
        assert isinstance(session.executor, BindableExecutor)
        with pytest.raises(InputError, match="does not fit"):
            await session.run({"x": np.zeros(9, np.float32)})
        assert (await session.run({"x": np.zeros(20, np.float32)}))["y"].shape == (2, 10)

    with_session(work, model, threads=1)


def _set_software(device: Any, value: bool) -> None:
    """Keeps what the device says: tests that come later may share it."""
    device.__dict__["software"] = value


@pytest.mark.parametrize("software", [True, False])
@pytest.mark.parametrize("name", ["encoder", "decoder", "heads of 256", "pictures"])
def test_a_bound_program_gives_what_a_new_one_does_on_a_gpu(
    name: str, software: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    Target("webgpu").demand()
    from webinfer.host.gpu_native import NativeDevice

    if not software:  # kernels are chosen as for hardware, where tiles have costs
        monkeypatch.setattr(NativeDevice, "software", property(lambda _: False, _set_software), raising=False)
    model, sweep, _ = SWEEPS[name]

    async def work(session: webinfer.Session) -> None:
        bound = set()
        for inputs in sweep[:6] + sweep[2:5]:
            await equal_to_a_new_plan(session, model, inputs, "webgpu")
            if isinstance(session.executor, BindableExecutor):
                bound.add(id(session.executor))
        assert 1 <= len(bound) <= 6

    with_session(work, model, "webgpu")


def test_no_shader_is_made_and_what_is_seen_follows_on_a_gpu() -> None:
    Target("webgpu").demand()
    from webinfer.host.gpu_native import NativeDevice

    async def work(session: webinfer.Session) -> None:
        for tokens in (40, 44, 48):
            await session.run(sentence(tokens))
        program = session.executor
        assert isinstance(program, BindableExecutor)
        device = program.device
        assert isinstance(device, NativeDevice)
        shaders = len(device._numbers)
        for tokens in (64, 36, 100, 52, 128):
            await session.run(sentence(tokens))
            assert session.executor is program
        assert len(device._numbers) == shaders
        assert session.plan().shapes["ids"] == (1, 128)
        assert any("1x128x32" in row.shapes for row in session.plan().rows)
        assert (await session.verify(inputs=sentence(60))).ok
        assert (await session.profile(sentence(44), rounds=1)).rows
        assert (await session.run_on_gpu(sentence(72)))["b_y"].shape == (1, 72, WIDTH)
        await session.restore()
        await equal_to_a_new_plan(session, encoder(), sentence(56), "webgpu")

    with_session(work, encoder(), "webgpu")


def halves() -> bytes:
    """A TFLite model: x [n, 8] as [2 n, 4], by a shape that it computes, and every second of those rows."""
    w = Writer()
    x = w.input("x", (1, 8), shape_signature=[-1, 8])
    zero, one = w.constant("0", np.array([0], np.int32)), w.constant("1", np.array([1], np.int32))
    shape, rows, both = w.tensor("s", (2,), "int32"), w.tensor("r", (), "int32"), w.tensor("b", (), "int32")
    wanted, y = w.tensor("w", (2,), "int32"), w.tensor("y", (2, 4), shape_signature=[-1, 4])
    w.node("SHAPE", [x], [shape], out_type=2)
    w.node("STRIDED_SLICE", [shape, zero, one, one], [rows], shrink_axis_mask=1)
    w.node("MUL", [rows, w.constant("twice", np.array(2, np.int32))], [both])
    w.node("PACK", [both, w.constant("four", np.array(4, np.int32))], [wanted], values_count=2, axis=0)
    w.node("RESHAPE", [x, wanted], [y])
    ends = w.constant("ends", np.array([0, 4], np.int32)), w.constant("steps", np.array([2, 1], np.int32))
    z = w.tensor("z", (1, 4), shape_signature=[-1, 4])
    starts = w.constant("starts", np.array([0, 0], np.int32))
    w.node("STRIDED_SLICE", [y, starts, *ends], [z], end_mask=1)
    return w.finish(z)


def test_sizes_of_tflite_are_symbols_too() -> None:
    async def work(session: webinfer.Session) -> None:
        for n in (1, 5, 3, 12, 7):
            x = DRAW.normal(size=(n, 8)).astype("f4")
            (y,) = (await session.run({"x": x})).values()
            np.testing.assert_array_equal(y.numpy(), x.reshape(2 * n, 4)[::2])
            assert isinstance(session.executor, BindableExecutor) == (n > 1)
        assert regimes(session) == 1

    with_session(work, halves(), threads=1)


def test_positions_along_a_size_that_lowering_turns_into_a_number() -> None:
    m = Model()
    m.add("Gather", ["x", "i"], "y", axis=0)
    m.add("MatMul", ["x", "x"], "z")  # asks for the number of n, after the axis of positions was noted
    model = m.saved({"x": (TensorProto.FLOAT, ["n", "n"]), "i": (TensorProto.INT64, ["k"])}, ["y", "z"])
    x = DRAW.random((4, 4), np.float32)
    with run(webinfer.load(model, backend="wasm", threads=1)) as session:
        for k in (2, 3, 5):
            found = run(session.run({"x": x, "i": np.arange(k) % 4}))
            np.testing.assert_array_equal(found["y"].numpy(), x[np.arange(k) % 4])
