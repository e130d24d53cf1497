"""A decoder's keys and values stay where kernels or the GPU read them: a step copies neither the past in nor the next
one out."""

from __future__ import annotations

import asyncio
from itertools import product
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
from tests.ops.case_graphs import run
from tests.ops.targets import Target
from tests.session.test_kv_cache import NAMES
from tests.session.test_kv_cache import decoder_file as branchless
from tests.session.test_open_plans import cached
from tests.session.visits import Visitor

import webinfer
from build_scripts.judge.open_models import HEADS, WIDTH, decoder
from webinfer.backends.base import RegimeExecutor
from webinfer.backends.wasm.held_states import HeldStates
from webinfer.backends.wasm.sized_words import SizedExecutor
from webinfer.backends.webgpu.held_rows import RowProgram
from webinfer.dtypes import DType
from webinfer.errors import ClosedError, LimitError
from webinfer.importers.core.caches import CacheRow, Caches
from webinfer.session import loading, open_store
from webinfer.session.kv_cache import KvCache
from webinfer.session.session import Session

PAIRS = {f"{tag}_past_{part}": f"{tag}_next_{part}" for tag in "ab" for part in "kv"}
TOKENS = np.random.default_rng(9).integers(0, 50, (1, 300))
START = cached(6)
DRAW = np.random.default_rng(3)


def opened(backend: str = "wasm", **options: Any) -> Session:
    if backend == "wasm":
        options.setdefault("threads", 1)
    return run(webinfer.load(decoder(), backend=backend, **options))


def cache_of(session: Session) -> KvCache:
    rows = tuple(CacheRow(*pair, 2) for pair in PAIRS.items())
    return KvCache("decoder", Caches(rows), session.inputs, session.outputs)


def begun(session: Session, start: Any = START) -> KvCache:
    """A cache that holds the first run's keys and values."""
    cache = cache_of(session)
    run(session.run(start, kv_cache=cache))
    return cache


class Plain:
    """What `KvCache` is judged by: arrays that a caller passes on."""

    def __init__(self, session: Session, start: Any = START) -> None:
        self.session, self.past = session, start
        self.step(start["ids"])

    def step(self, ids: Any) -> Any:
        found = run(self.session.run({**self.past, "ids": ids}))
        self.past = {name: found[then].numpy() for name, then in PAIRS.items()}
        return found["logits"].numpy()


def step(session: Session, cache: KvCache, ids: Any) -> Any:
    found = run(session.run({"ids": ids}, kv_cache=cache))
    assert list(found) == ["logits"]
    return found["logits"].numpy()


def held(cache: KvCache) -> bool:
    return all(state.holder is not None or state.on_gpu is not None for state in cache._values.values())


@pytest.mark.parametrize("threads", [1, 2])
def test_a_long_loop_copies_no_past_and_gives_what_arrays_give(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(threads=threads) as session, opened(threads=threads) as other:
        plain, cache = Plain(other), begun(session)
        for i in range(4):
            np.testing.assert_array_equal(step(session, cache, TOKENS[:, i : i + 1]), plain.step(TOKENS[:, i : i + 1]))
        kernels, moved = session.executor.kernels, [0]  # type: ignore[attr-defined]
        write, read = type(kernels).write, type(kernels).read

        def counted_write(own: Any, address: int, data: Any) -> None:
            moved[0] += memoryview(data).nbytes if own is kernels else 0
            write(own, address, data)

        def counted_read(own: Any, address: int, nbytes: int) -> Any:
            moved[0] += nbytes if own is kernels else 0
            return read(own, address, nbytes)

        monkeypatch.setattr(type(kernels), "write", counted_write)
        monkeypatch.setattr(type(kernels), "read", counted_read)
        most = 0
        for i in range(4, 200):
            moved[0] = 0
            np.testing.assert_array_equal(step(session, cache, TOKENS[:, i : i + 1]), plain.step(TOKENS[:, i : i + 1]))
            most = max(most, moved[0]) if i > 190 else most
        assert held(cache)
        assert cache.length == 7 + 200
        past = 4 * HEADS * cache.length * (WIDTH // HEADS) * 4
        assert most < 16_000 < past / 6  # the words of the program, a token and its logits
        for name, array in plain.past.items():
            np.testing.assert_array_equal(cache.tensors()[name].numpy(), array)


@pytest.mark.parametrize("threads", [1, 2])
def test_only_new_rows_are_written_whatever_batch_and_number_come(threads: int) -> None:
    """Each result equals that of a plan made for its sizes alone, bit for bit."""
    data, draw = branchless(), np.random.default_rng(4)
    with run(webinfer.load(data, backend="wasm", threads=threads)) as session:
        caches = {(batch, which): session.kv_cache() for batch in (1, 3, 2) for which in "ab"}
        pasts = {key: np.zeros((2, key[0], 2, 0, 4), "f4") for key in caches}
        for turn in range(3):
            for key, counts in zip(
                caches, ((3, 1, 1, 1), (70, 1, 2), (2, 1, 1), (1, 1), (5, 1, 33, 1), (1, 1)), strict=True
            ):
                for count in counts:
                    ids, before = draw.integers(0, 11, (key[0], count)), pasts[key]
                    fed = {"input_ids": ids, **dict(zip(NAMES[0], before, strict=True))}
                    with run(
                        webinfer.load(
                            data, backend="wasm", threads=threads, shapes={n: a.shape for n, a in fed.items()}
                        )
                    ) as fresh:
                        want = run(fresh.run(fed))
                    found = run(session.run({"input_ids": ids}, kv_cache=caches[key]))
                    np.testing.assert_array_equal(found["logits"].numpy(), want["logits"].numpy())
                    pasts[key] = np.stack([want[name].numpy() for name in NAMES[1]])
                    if turn == 1 and before.size:  # as arrays, which are not states
                        own = run(session.run(fed))
                        for name, tensor in want.items():
                            np.testing.assert_array_equal(own[name].numpy(), tensor.numpy())
            for key, cache in caches.items():
                for name, array in zip(NAMES[0], pasts[key], strict=True):
                    np.testing.assert_array_equal(cache.tensors()[name].numpy(), array)
        executor = session.executor
        assert isinstance(executor, SizedExecutor)
        assert [own.input for own in executor._rows] == [*NAMES[0]]
        steps = [row.label for row in executor.rows() if row.op == "concat"]
        assert len(steps) == len({*steps}) == 2  # no copy of the past


def test_prompts_plain_runs_and_other_sequences_come_between_steps() -> None:
    with opened() as session, opened() as other:
        plain, cache = Plain(other), begun(session)
        second, others = begun(session), Plain(other)
        at = 0
        for new, which in ((1, 0), (1, 0), (9, 0), (1, 0), (1, 1), (1, 1), (1, 0), (5, 1), (1, 1), (1, 0), (1, 0)):
            ids = TOKENS[:, at : at + new]
            at += new
            found = step(session, (cache, second)[which], ids)
            np.testing.assert_array_equal(found, (plain, others)[which].step(ids))
            if at % 3 == 0:
                own = cached(11)
                want, got = run(other.run(own)), run(session.run(own))
                for name, tensor in want.items():
                    np.testing.assert_array_equal(got[name].numpy(), tensor.numpy())
        before = cache.length
        cache.reset()
        assert cache.length == 0 < before
        run(session.run(START, kv_cache=cache))
        assert cache.length == 7


def test_states_outlast_the_executor_that_holds_them() -> None:
    with opened() as session, opened() as other:
        plain, cache = Plain(other), begun(session)
        for i in range(12):
            ids = TOKENS[:, i : i + 1]
            if i in (4, 8):
                assert held(cache)
                run(session.restore())
                assert not held(cache)
            np.testing.assert_allclose(step(session, cache, ids), plain.step(ids), atol=1e-6)
        assert held(cache)
        assert run(session.verify(inputs=cached(9))).ok
        np.testing.assert_allclose(step(session, cache, TOKENS[:, :1]), plain.step(TOKENS[:, :1]), atol=1e-6)
    for name, array in plain.past.items():  # of a closed session
        np.testing.assert_allclose(cache.tensors()[name].numpy(), array, atol=1e-6)


@pytest.mark.parametrize("backend", ["wasm", "webgpu"])
def test_plans_of_an_earlier_visit_hold_states_too(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if backend == "webgpu":
        Target(backend).demand()
    host = Visitor()
    with opened(backend, host=host) as first:
        plain = Plain(first)
        wanted = [plain.step(TOKENS[:, i : i + 1]) for i in range(20)]
        run(asyncio.sleep(0.05))
        while open_store._tasks:
            run(asyncio.sleep(0.01))
    monkeypatch.setattr(loading, "read_model", None)  # a call would fail
    with opened(backend, host=host) as second:
        cache = begun(second)
        for i in range(20):
            np.testing.assert_array_equal(step(second, cache, TOKENS[:, i : i + 1]), wanted[i])
        assert held(cache)
        assert isinstance(second.executor, RegimeExecutor)
        if backend == "webgpu":
            assert isinstance(second.executor, RowProgram)
            assert len({*second.executor._skipped}) == 4  # copies of the past
        else:
            assert isinstance(second.executor, SizedExecutor)


def test_where_there_is_no_room_beside_the_arena_states_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened() as session, opened() as other:
        plain, cache = Plain(other), begun(session)
        grow = HeldStates.grow
        for i in range(30):
            if i == 8:  # at the next growth, after one pair has moved

                def failing(own: HeldStates, *args: Any) -> None:
                    area, moved = own._memory.area, iter(range(9))

                    def full(before: Any, nbytes: int, owner: str) -> Any:
                        if next(moved):
                            raise LimitError("memory", nbytes, 0, "use less")
                        return area(before, nbytes, owner)

                    with monkeypatch.context() as patch:
                        patch.setattr(own._memory, "area", full)
                        grow(own, *args)

                monkeypatch.setattr(HeldStates, "grow", failing)
            ids = TOKENS[:, i : i + 1]
            try:
                found = step(session, cache, ids)
            except LimitError:
                monkeypatch.setattr(HeldStates, "grow", grow)
                found = step(session, cache, ids)
            np.testing.assert_array_equal(found, plain.step(ids))
        assert held(cache)
    monkeypatch.setattr(HeldStates, "grow", lambda *_: (_ for _ in ()).throw(LimitError("memory", 1, 0, "use less")))
    with opened() as session, opened() as other:
        plain, cache = Plain(other), begun(session)
        for i in range(5):
            np.testing.assert_array_equal(step(session, cache, TOKENS[:, i : i + 1]), plain.step(TOKENS[:, i : i + 1]))
        assert not held(cache)


def in_halves(data: bytes, ends: bool) -> bytes:
    """The model with constants that float16 holds; with `ends`, of float16 and with such inputs and outputs."""
    import onnx

    model, real, half = onnx.load_from_string(data), onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16
    for tensor in model.graph.initializer:
        if tensor.data_type == real:
            array = onnx.numpy_helper.to_array(tensor).astype("f2")
            tensor.CopyFrom(onnx.numpy_helper.from_array(array if ends else array.astype("f4"), tensor.name))
    for value in (*model.graph.input, *model.graph.output):
        if ends and value.type.tensor_type.elem_type == real:
            value.type.tensor_type.elem_type = half
    return bytes(model.SerializeToString())


class Halves:
    """A decoder in float16 and its caches, judged by the same one in float32: rounding is all that differs."""

    def __init__(self, **options: Any) -> None:
        self.session = run(webinfer.load(in_halves(branchless(), True), backend="wasm", **options))
        self.other = run(webinfer.load(in_halves(branchless(), False), backend="wasm", threads=1))
        self.pasts: dict[KvCache, Any] = {}

    def __enter__(self) -> Halves:
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()
        self.other.close()

    def cache(self, batch: int = 1) -> KvCache:
        cache = self.session.kv_cache()
        self.pasts[cache] = np.zeros((2, batch, 2, 0, 4), "f4")
        return cache

    def step(self, cache: KvCache, ids: Any) -> None:
        past = dict(zip(NAMES[0], self.pasts[cache], strict=True))
        want = run(self.other.run({"input_ids": ids, **past}))
        found = run(self.session.run({"input_ids": ids}, kv_cache=cache))
        assert found["logits"].dtype is DType.FLOAT16
        np.testing.assert_allclose(found["logits"].numpy(), want["logits"].numpy(), rtol=1e-2, atol=3e-2)
        self.pasts[cache] = np.stack([want[name].numpy() for name in NAMES[1]])

    def check(self, cache: KvCache) -> None:
        for name, array in zip(NAMES[0], self.pasts[cache], strict=True):
            assert cache.tensors()[name].dtype is DType.FLOAT16
            np.testing.assert_allclose(cache.tensors()[name].numpy(), array, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("threads", [1, 2])
def test_caches_of_float16_are_cast_when_they_are_read_and_not_in_each_step(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Halves(threads=threads) as halves:
        cache = halves.cache()
        for count in (5, 1, 1, 1):
            halves.step(cache, DRAW.integers(0, 11, (1, count)))
        executor, calls = halves.session.executor, list[tuple[int, int]]()
        assert isinstance(executor, SizedExecutor)
        assert executor.casts == (2, 2)
        call = executor._call
        monkeypatch.setattr(executor, "_call", lambda kernels, *part: [calls.append(part), call(kernels, *part)])
        for _ in range(90):  # places grow twice
            halves.step(cache, DRAW.integers(0, 11, (1, 1)))
        assert held(cache)
        assert set(calls) == {(2, executor.layout.steps - 4)}
        halves.check(cache)
        own = {"input_ids": np.ones((1, 1), int)}
        own |= {name: DRAW.normal(size=(1, 2, 9, 4)).astype("f2") for name in NAMES[0]}
        wide = {name: array.astype("f4") if name in NAMES[0] else array for name, array in own.items()}
        want, found = run(halves.other.run(wide)), run(halves.session.run(own))  # arrays, which are not states
        for name, tensor in want.items():
            np.testing.assert_allclose(found[name].numpy(), tensor.numpy(), rtol=1e-2, atol=3e-2)
        halves.step(cache, DRAW.integers(0, 11, (1, 1)))
        halves.check(cache)


def test_caches_of_float16_take_turns_in_batches_and_outlast_plans() -> None:
    with Halves() as halves:
        caches = [halves.cache(1), halves.cache(3), halves.cache(1)]
        turns = (
            (0, 3),
            (1, 2),
            (0, 1),
            (1, 1),
            (1, 1),
            (2, 40),
            (2, 1),
            (0, 6),
            (0, 1),
            (1, 1),
            (2, 1),
            (2, 9),
            (1, 3),
        )
        for i, (which, count) in enumerate(turns * 2):
            batch = halves.pasts[caches[which]].shape[1]
            halves.step(caches[which], DRAW.integers(0, 11, (batch, count)))
            if i % 5 == 4:
                run(halves.session.restore())
        for cache in caches:
            halves.check(cache)


def test_caches_of_float16_are_held_by_plans_of_an_earlier_visit(monkeypatch: pytest.MonkeyPatch) -> None:
    host, data, logits = Visitor(), in_halves(branchless(), True), list[Any]()
    start = dict(zip(NAMES[0], DRAW.normal(size=(2, 1, 2, 6, 4)).astype("f2"), strict=True))
    for visit in range(2):
        with run(webinfer.load(data, backend="wasm", host=host, threads=1)) as session:
            cache = session.kv_cache()
            for i in range(40):
                fed = {"input_ids": TOKENS[:, i : i + 1] % 11, **({} if i else start)}
                logits.append(run(session.run(fed, kv_cache=cache))["logits"].numpy())
            executor: Any = session.executor
            assert (executor.casts, held(cache)) == ((2, 2), True)
            assert isinstance(executor, RegimeExecutor) == bool(visit)
            run(asyncio.sleep(0.05))
            while open_store._tasks:
                run(asyncio.sleep(0.01))
        monkeypatch.setattr(loading, "read_model", None)  # a call would fail
    np.testing.assert_array_equal(logits[:40], logits[40:])


@pytest.fixture
def moves(monkeypatch: pytest.MonkeyPatch) -> Any:
    """How often, since it was asked last, a state was copied to or from a program."""
    Target("webgpu").demand()
    from webinfer.host.gpu_native_program import NativeProgram

    count, copy, keep = [0], NativeProgram._copy, NativeProgram.keep

    def counted_copy(own: Any, encoder: Any, buffer: int, data: Any) -> None:
        count[0] += 1
        copy(own, encoder, buffer, data)

    async def counted_keep(own: Any, *args: Any) -> Any:
        count[0] += 1
        return await keep(own, *args)

    def asked() -> int:
        found, count[0] = count[0], 0
        return found

    monkeypatch.setattr(NativeProgram, "_copy", counted_copy)
    monkeypatch.setattr(NativeProgram, "keep", counted_keep)
    return asked


def test_on_a_gpu_only_new_rows_are_written_whatever_batch_and_number_come(moves: Any) -> None:
    """Each result equals that of plain runs, bit for bit."""
    data, draw, appending = branchless(), np.random.default_rng(4), 0
    plan = {(1, "a"): (3, 1, 1, 1), (1, "b"): (70, 1, 2), (3, "a"): (2, 1, 1), (3, "b"): (5, 1, 33, 1, 1, 1)}
    with run(webinfer.load(data, backend="webgpu")) as session, run(webinfer.load(data, backend="webgpu")) as other:
        caches = {key: session.kv_cache() for key in plan}
        pasts = {key: np.zeros((2, key[0], 2, 0, 4), "f4") for key in plan}
        for turn, (key, counts) in product(range(3), plan.items()):
            for count in counts:
                ids = draw.integers(0, 11, (key[0], count))
                fed = {"input_ids": ids, **dict(zip(NAMES[0], pasts[key], strict=True))}
                want = run(other.run(fed))
                moves()
                found = run(session.run({"input_ids": ids}, kv_cache=caches[key]))
                appending += not moves()
                np.testing.assert_array_equal(found["logits"].numpy(), want["logits"].numpy())
                pasts[key] = np.stack([want[name].numpy() for name in NAMES[1]])
            if turn == 1:
                run(session.run(fed))  # arrays, which are not states
                on_gpu = run(session.run_on_gpu(fed))
                np.testing.assert_array_equal(run(on_gpu["logits"].read()).numpy(), want["logits"].numpy())
        assert appending > 10  # of 48, where four sequences take turns and grow
        for (key, cache), index in product(caches.items(), range(2)):
            np.testing.assert_array_equal(cache.tensors()[NAMES[0][index]].numpy(), pasts[key][index])
    for key, cache in caches.items():  # of a closed session
        np.testing.assert_array_equal(run(cache.read())[NAMES[0][0]].numpy(), pasts[key][0])


def test_on_a_gpu_a_long_loop_copies_no_past(moves: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from webinfer.host.gpu_native_program import NativeProgram

    empty = {**START, **{name: START[name][:, :, :0] for name in PAIRS}}
    with opened("webgpu") as session, opened("webgpu") as other:
        plain, cache = Plain(other, empty), begun(session, empty)
        write, taken, moved, appending = NativeProgram.write, NativeProgram._taken, [0], 0

        def counted_write(own: Any, buffer: int, data: Any, offset: int = 0) -> None:
            moved[0] += memoryview(data).nbytes
            write(own, buffer, data, offset)

        def counted_taken(own: Any, staging: Any, size: int) -> Any:
            moved[0] += size
            return taken(own, staging, size)

        for i in range(40):
            ids = TOKENS[:, i : i + 1 + (i == 7)]
            with monkeypatch.context() as patch:
                patch.setattr(NativeProgram, "write", counted_write)
                patch.setattr(NativeProgram, "_taken", counted_taken)
                moved[0] = 0
                found = step(session, cache, ids)
            assert held(cache)
            assert i < 2 or moved[0] < 500  # tokens and their logits
            appending += i > 1 and not moves()
            np.testing.assert_array_equal(found, plain.step(ids))
            moves()
        assert appending >= 32  # of 38: places double
        assert cache.length == 42
        for name, array in plain.past.items():
            np.testing.assert_array_equal(cache.tensors()[name].numpy(), array)
            np.testing.assert_array_equal(run(cache.read())[name].numpy(), array)


@pytest.mark.parametrize("backend", ["wasm", "webgpu"])
def test_a_cache_of_which_there_are_views_is_copied_beside_one_that_is_appended(backend: str) -> None:
    import onnx

    if backend == "webgpu":
        Target(backend).demand()
    model = onnx.load_from_string(branchless())
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([0, -1]), "flat shape"))
    model.graph.node.append(onnx.helper.make_node("Reshape", [NAMES[1][0], "flat shape"], ["flat"]))
    model.graph.output.append(onnx.helper.make_tensor_value_info("flat", onnx.TensorProto.FLOAT, None))
    data = model.SerializeToString()
    with run(webinfer.load(data, backend=backend)) as session, run(webinfer.load(data, backend=backend)) as other:
        cache, past = session.kv_cache(), np.zeros((2, 1, 2, 0, 4), "f4")
        for count in (3, 1, 1, 1, 1, 4, 1, 1, 1):
            ids = np.arange(count)[None]
            want = run(other.run({"input_ids": ids, **dict(zip(NAMES[0], past, strict=True))}))
            found = run(session.run({"input_ids": ids}, kv_cache=cache))
            for name in ("logits", "flat"):
                np.testing.assert_array_equal(found[name].numpy(), want[name].numpy())
            past = np.stack([want[name].numpy() for name in NAMES[1]])
        assert held(cache)
        for index in range(2):
            np.testing.assert_array_equal(cache.tensors()[NAMES[0][index]].numpy(), past[index])
        executor: Any = session.executor
        rows = executor._rows if backend == "wasm" else executor.appended
        assert [one.input for one in rows] == [NAMES[0][1]]


def test_on_a_gpu_sequences_take_turns_and_states_outlast_programs() -> None:
    Target("webgpu").demand()
    with opened("webgpu") as session, opened("webgpu") as other:
        caches, plains, at = [begun(session), begun(session)], [Plain(other), Plain(other)], 0
        for new, which in ((1, 0), (1, 0), (9, 0), (1, 1), (1, 1), (1, 0), (5, 1), (40, 1), (1, 0), (1, 1)):
            ids = TOKENS[:, at : at + new]
            at += new
            np.testing.assert_array_equal(step(session, caches[which], ids), plains[which].step(ids))
            if at % 3 == 0:
                own = cached(11)
                want, got = run(other.run(own)), run(session.run(own))
                for name, tensor in want.items():
                    np.testing.assert_array_equal(got[name].numpy(), tensor.numpy())
            if new == 5:
                run(session.restore())
        first, states = caches[0], [state.on_gpu for state in caches[0]._values.values()]
        first.reset()
        assert first.length == 0
        for state in states:
            assert state is not None
            with pytest.raises(ClosedError, match="this GPU tensor was closed"):
                assert state.buffer
        run(session.run(START, kv_cache=first))
        assert first.length == 7
        wanted = plains[1].step(TOKENS[:, :1])
    with opened() as session:  # on another backend
        np.testing.assert_allclose(step(session, caches[1], TOKENS[:, :1]), wanted, atol=1e-5)
        assert all(state.on_gpu is None for state in caches[1]._values.values())
