"""ONNX loops whose number of turns, end or state depends on data, in every mixture, beside ONNX Runtime."""

from __future__ import annotations

import asyncio
from collections import ChainMap
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper  # noqa: E402
from tests.session.test_open_sizes import DRAW, judged, saved, with_session  # noqa: E402

import webinfer  # noqa: E402
from webinfer.backends.wasm.executor import WasmExecutor  # noqa: E402
from webinfer.backends.wasm.loaded_plan import LoadedPlan  # noqa: E402
from webinfer.backends.webgpu import turns as queued  # noqa: E402
from webinfer.errors import KernelError, LimitError  # noqa: E402
from webinfer.importers.core import control  # noqa: E402
from webinfer.importers.onnx import convert  # noqa: E402
from webinfer.plan import program  # noqa: E402
from webinfer.session import stages, turns  # noqa: E402

LONG = 6000  # rows that a loop of few turns reads
SIZE = 5000  # elements from which a branch is worth a look at its condition
X = np.float32([1, 2, 3])
NUMBERS = {"two": np.float32(2), "one": np.float32(1), "limit": np.float32(50), "zero": np.array(0),
           "many": np.array(2500), "most": np.array(2**63 - 1)}  # fmt: skip


def _n(op: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    return helper.make_node(op, ["" if name == "-" else name for name in inputs.split()], outputs.split(), **attributes)


def _body(nodes: list[Any], state: str, results: str) -> Any:
    """The body of a loop over one tensor, or of a branch where no state is given."""
    make = helper.make_tensor_value_info
    inputs = [make("i" + state, TensorProto.INT64, []), make("c" + state, TensorProto.BOOL, []),
              make(state, TensorProto.FLOAT, None)] if state else []  # fmt: skip
    ends = [make(r, TensorProto.BOOL if r.startswith("go") else TensorProto.FLOAT, None) for r in results.split()]
    return helper.make_graph(nodes, "body" + state, inputs, ends)


def _loop(count: str, x: str, y: str, op: str = "Mul two", listed: bool = False) -> Any:
    """y = x after `count` turns of an operator, and what each turn gave."""
    kind, operand = op.split()
    body = [_n("Identity", f"c{y}s", f"go{y}"), _n(kind, f"{y}s {operand}", f"{y}n"), _n("Identity", f"{y}n", f"{y}l")]
    results = f"go{y} {y}n" + f" {y}l" * listed
    return _n("Loop", f"{count} - {x}", y + f" {y}_all" * listed, body=_body(body, f"{y}s", results))


def _branch(condition: str, y: str, yes: list[Any], no: list[Any]) -> Any:
    return _n("If", condition, y, then_branch=_body(yes, "", yes[-1].output[0]),
              else_branch=_body(no, "", no[-1].output[0]))  # fmt: skip


def _agree(nodes: list[Any], outputs: str, *feeds: dict[str, Any], backend: str = "wasm") -> None:
    kinds = {np.dtype("f4"): 1, np.dtype("i8"): 7, np.dtype("?"): 9}
    shapes = {name: (kinds[x.dtype], list(x.shape)) for name, x in feeds[0].items()}
    data = saved(nodes, shapes, outputs.split(), **NUMBERS)

    async def work(session: webinfer.Session) -> None:
        for inputs in feeds:
            got = await session.run(inputs)
            for mine, want in zip(got.values(), judged(data, inputs), strict=True):
                if want.size or mine.shape[0]:  # where nothing is declared, the runtime says (0,) of an empty list
                    np.testing.assert_array_equal(mine.numpy(), want)

    with_session(work, data, backend)


def _counts(*counts: int, x: Any = X) -> list[dict[str, Any]]:
    return [{"x": x, "k": np.array(count)} for count in counts]


@pytest.mark.parametrize("backend", ["wasm", "reference"])
@pytest.mark.parametrize("listed", [False, True])
def test_loops_follow_each_other_without_a_node_between(backend: str, listed: bool) -> None:
    nodes = [_loop("k", "x", "a", listed=listed), _loop("k", "a", "b", "Add one", listed), _loop("k", "b", "d")]
    lists = " a_all b_all" * listed
    _agree(nodes, "a d" + lists, *_counts(3, 0, 2), backend=backend)
    _agree(nodes[:2], "b" + lists, *_counts(3), backend=backend)


def test_two_loops_from_one_value_are_two() -> None:
    nodes = [_loop("k", "x", "a"), _loop("k", "x", "b", "Add one"), _n("Sub", "a b", "y")]
    _agree(nodes, "y", *_counts(3, 1))


@pytest.mark.parametrize("both", [0, control.MAX_BOTH])
@pytest.mark.parametrize("taken", [True, False])
def test_branches_and_loops_follow_each_other(taken: bool, both: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "MAX_BOTH", both)
    inputs = {"x": np.ones(SIZE, np.float32), "k": np.array(3), "c": np.array(taken)}
    other = _branch("c", "r", [_n("Mul", "x two", "t")], [_n("Add", "x two", "e")])
    inside = _branch("c", "s", [_loop("k", "r", "u")], [_n("Identity", "r", "v")])
    behind = _branch("c", "z", [_n("Mul", "y two", "tt")], [_n("Neg", "y", "ee")])
    _agree([other, inside, _loop("k", "s", "y"), behind], "z", inputs)


def _sides(deep: bool) -> list[Any]:
    """y of h: tanh(h @ one) where the sum of h is above zero, else h @ two, or what a branch by h's first row gives."""
    inner = _branch("low", "f", [_n("MatMul", "h w1", "f1")], [_n("Sin", "h", "f2"), _n("Mul", "f2 h", "f3")])
    row = [_n("Gather", "h zero", "row"), _n("ReduceMax", "row", "high", keepdims=0), _n("Less", "high two", "low")]
    no = [*row, _n("MatMul", "h w2", "h2"), inner, _n("Add", "f h2", "e")] if deep else [_n("MatMul", "h w2", "e")]
    chosen = _branch("c", "y", [_n("MatMul", "h w1", "t1"), _n("Tanh", "t1", "t")], no)
    return [_n("ReduceSum", "h", "s", keepdims=0), _n("Greater", "s none", "c"), chosen]


def _weights(n: int) -> dict[str, Any]:
    draw = np.random.default_rng(3).normal
    return {name: (draw(size=(n, n)) / n**0.5).astype("f4") for name in ("w1", "w2")} | {"none": np.float32(0)}


def _branching(deep: bool) -> tuple[bytes, list[dict[str, Any]]]:
    """A model with `_sides`, and inputs with which its condition is true, true and false, and inner ones both."""
    nodes = [_n("Abs", "x", "a"), _n("Sub", "a k", "h"), *_sides(deep)]
    data = saved(nodes, {"x": [80, 64], "k": (1, [])}, ["y"], **NUMBERS | _weights(64))
    draws = [DRAW.normal(size=(80, 64)).astype("f4") for _ in range(4)]
    return data, [{"x": x, "k": np.array(k, "f4")} for x, k in zip(draws, (0.0, 0.7, 0.85, 5.0), strict=True)]


@pytest.mark.parametrize("deep", [True, False])
@pytest.mark.parametrize("backend", ["wasm", "reference"])
def test_one_plan_has_both_sides_of_a_branch(backend: str, deep: bool) -> None:
    data, feeds = _branching(deep)

    async def work(session: webinfer.Session) -> None:
        for inputs in feeds:
            got = (await session.run(inputs))["y"].numpy()
            np.testing.assert_allclose(got, judged(data, inputs)[0], rtol=1e-4, atol=1e-5)
            assert (await session.verify(inputs=inputs)).ok
        assert [node.op.name for node in session.graphs()[0].nodes].count("matmul") == 2 + deep

    with_session(work, data, backend)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_run_leaves_out_the_side_of_a_branch_that_it_does_not_take(threads: int) -> None:
    data, feeds = _branching(False)

    async def work(session: webinfer.Session) -> None:
        want = [(await session.run(inputs))["y"].numpy() for inputs in feeds]
        executor = session.executor
        assert isinstance(executor, WasmExecutor)
        product = max(i for i, row in enumerate(session.plan().rows) if row.op == "matmul")
        layout = executor.layout
        text = bytes(executor.kernels.read(layout.program, layout.fixed_end - layout.program))
        head = len(text) - sum(map(len, program.records(text)))
        place = layout.program + head + sum(map(len, program.records(text)[:product]))
        executor.kernels.write(place, (1 << 20).to_bytes(4, "little"))  # no kernel has this number
        np.testing.assert_array_equal((await session.run(feeds[0]))["y"].numpy(), want[0])
        with pytest.raises(KernelError):
            await session.run(feeds[3])

    with_session(work, data, threads=threads)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("backend", ["wasm", "reference"])
def test_one_plan_serves_all_turns_whichever_side_of_a_branch_they_take(
    backend: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    n, plans, lowered = 256, list[int](), WasmExecutor.__init__
    monkeypatch.setattr(WasmExecutor, "__init__", lambda *args, **own: plans.append(1) or lowered(*args, **own))
    body = _body([*_sides(True), _n("Identity", "ch", "go")], "h", "go y")
    data = saved([_n("Loop", "k - x", "z", body=body)], {"x": [24, n], "k": (7, [])}, ["z"], **NUMBERS | _weights(n))

    async def work(session: webinfer.Session) -> None:
        for count in (1, 6, 13):
            inputs = {"x": DRAW.normal(size=(24, n)).astype("f4"), "k": np.array(count)}
            got = (await session.run(inputs))["z"].numpy()
            np.testing.assert_allclose(got, judged(data, inputs)[0], rtol=1e-3, atol=1e-4)
        assert len(plans) <= 2

    with_session(work, data, backend, threads=threads)


def test_positions_count_a_loop_and_follow_one() -> None:
    before = [_n("NonZero", "x", "at"), _n("Size", "at", "n"), _loop("n", "x", "a"), _loop("n", "a", "b", "Add one")]
    behind = [_n("Greater", "b limit", "above"), _n("NonZero", "above", "found"), _n("Cast", "found", "y", to=1)]
    _agree([*before, *behind], "b y", {"x": np.float32([1, 0, 30])}, {"x": np.float32([0, 0, 0])})


@pytest.mark.parametrize("inner", ["k", "iouts"])
def test_a_loop_in_a_loop_may_turn_as_data_says(inner: str) -> None:
    """The inner one as often as an input says, or as the outer one has turned."""
    body = _body([_loop(inner, "outs", "v"), _n("Identity", "couts", "go")], "outs", "go v")
    _agree([_n("Loop", "k - x", "y", body=body)], "y", *_counts(3, 2, 0))


def test_the_state_of_a_loop_may_grow() -> None:
    """Until it was turned often enough, or until its sum says so."""
    grown = [
        _n("Concat", "v x", "more", axis=0),
        _n("Identity", "cv", "go"),
        _n("ReduceSum", "more", "sum", keepdims=0),
    ]
    _agree([_n("Loop", "k - x", "y all", body=_body(grown, "v", "go more sum"))], "y all", *_counts(3, 1, 5))
    grown[1] = _n("Less", "sum limit", "go")
    nodes = [_n("Loop", "- - x", "y", body=_body([grown[0], grown[2], grown[1]], "v", "go more"))]
    _agree(nodes, "y", {"x": X}, {"x": 5 * X}, {"x": 50 * X})


def test_loops_follow_each_other_inside_of_turns_that_are_unrolled() -> None:
    """What the first ones gave is known when reading goes on behind a later one."""
    inner = [_n("Neg", "x", "n"), _loop("k", "n", "q"), _n("Concat", "q v", "more", axis=0)]
    body = _body([*inner, _n("Identity", "cv", "go")], "v", "go more")
    before = [_n("Abs", "x", "a"), _loop("k", "a", "b")]
    _agree([*before, _n("Loop", "k - b", "y", body=body)], "y", *_counts(2, 0, 3))


def test_turns_that_data_decides_inside_are_read_once_and_nothing_before_them_runs_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As the masks of detected objects are pasted: how much of each is seen is data."""
    converted, greater, runs = list[str](), convert.CONVERTERS["Greater"], list[bool]()
    counted = {"Greater": lambda op: converted.append(op.name) or greater(op)}
    monkeypatch.setattr(convert, "CONVERTERS", ChainMap(counted, convert.CONVERTERS))
    run = LoadedPlan.run
    monkeypatch.setattr(
        LoadedPlan,
        "run",
        lambda self, x: [runs.append(any(n.op.name == "abs" for n in self.graph.nodes)), run(self, x)][1],
    )
    seen = [_n("Greater", "v limit", "m"), _n("NonZero", "m", "p"), _n("Gather", "v p", "seen")]
    step = [_n("Identity", "cv", "go"), _n("ReduceSum", "seen", "sum", keepdims=0), _n("Mul", "v two", "more")]
    step += [_n("Cast", "m", "f", to=TensorProto.FLOAT), _n("Add", "more f", "next")]  # m is known to who found p
    body = _body([*seen, *step], "v", "go next sum")
    nodes = [_n("Abs", "x", "b"), _n("Loop", "k - b", "y all", body=body)]
    for count in (2, 12):
        converted.clear()
        runs.clear()
        _agree(nodes, "y all", *_counts(count, x=8 * X))
        assert len(converted) <= 3 * count + 2
        assert sum(runs) <= 2


def test_a_loop_of_many_turns_is_not_unrolled() -> None:
    async def work(session: webinfer.Session) -> None:
        assert (await session.run(X))["y"].numpy().tolist() == [2501, 2502, 2503]
        assert len(session.plan().rows) < 10

    with_session(work, saved([_loop("many", "x", "y", "Add one")], {"x": [3]}, ["y"], **NUMBERS))


@pytest.mark.parametrize("backward", [0, 1])
def test_a_scan_of_many_turns_is_not_unrolled(backward: int) -> None:
    make = helper.make_tensor_value_info
    ends = [make("s2", TensorProto.FLOAT, [2]), make("sum", TensorProto.FLOAT, [2])]
    body = helper.make_graph([_n("Sub", "e s", "s2"), _n("Identity", "s2", "sum")], "body",
                             [make("s", TensorProto.FLOAT, [2]), make("e", TensorProto.FLOAT, [2])], ends)  # fmt: skip
    directions = {"scan_input_directions": [backward], "scan_output_directions": [backward]}
    axes = {"scan_input_axes": [1], "scan_output_axes": [1]}
    node = _n("Scan", "start x", "last y", body=body, num_scan_inputs=1, **directions, **axes)
    feeds = {"start": np.float32([1, 2]), "x": np.arange(2 * 2500, dtype=np.float32).reshape(2, 2500) % 7}
    _agree([node], "last y", feeds)


def test_a_loop_of_no_turns_lists_nothing() -> None:
    _agree([_loop("zero", "x", "y", listed=True)], "y y_all", {"x": X})


# ----- limits, cancellation


def _endless(trips: str) -> bytes:
    body = [_n("Add", "v one", "w"), _n("ReduceSum", "w", "sum", keepdims=0), _n("GreaterOrEqual", "sum one", "go")]
    nodes = [_n("Loop", f"{trips} - x", "y", body=_body(body, "v", "go w"))]
    return saved(nodes, {"x": [3]}, ["y"], **NUMBERS)


@pytest.mark.parametrize("trips", ["-", "most"])
def test_a_loop_without_an_end_is_a_limit_error(trips: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "MAX_TURNS", 100)

    async def work(session: webinfer.Session) -> None:
        with pytest.raises(LimitError, match=r"turns of .*Loop"):
            await session.run(X)
        assert (await session.run(-1000 * X))["y"].shape == (3,)

    with_session(work, _endless(trips))


def test_an_unrolled_loop_without_an_end_is_a_limit_error() -> None:
    body = _body([_n("Add", "v one", "w"), _n("Identity", "cv", "go")], "v", "go w")
    with pytest.raises(LimitError, match="turns of a loop that are unrolled"):
        with_session(_ready, saved([_n("Loop", "- - x", "y", body=body)], {"x": [3]}, ["y"], **NUMBERS))


async def _ready(session: webinfer.Session) -> None:
    raise AssertionError("it loads")


def test_the_event_loop_turns_while_a_loop_does_and_the_run_can_be_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "MAX_TURNS", 1 << 40)  # those that are allowed take less than the test waits

    async def work(session: webinfer.Session) -> None:
        running = asyncio.create_task(session.run(X))
        for _ in range(4):
            await asyncio.sleep(0.01)  # which comes back only if the loop lets go
        assert not running.done()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert (await session.run(-1000 * X))["y"].shape == (3,)

    with_session(work, _endless("-"))


@pytest.mark.parametrize("backend", ["wasm", "reference"])
def test_runs_that_wait_for_others_can_be_cancelled(backend: str) -> None:
    """Of 50 that are begun together, 25 are cancelled as soon as the first one ran; so are runs of a staged model."""

    async def work(session: webinfer.Session) -> None:
        inputs = {
            info.name: np.ones(info.shape, np.int64 if info.name == "k" else np.float32) for info in session.inputs
        }
        await session.run(inputs)
        runs = [asyncio.create_task(session.run(inputs)) for _ in range(50)]
        await asyncio.sleep(0)
        for run in runs[25:]:
            run.cancel()
        found = await asyncio.gather(*runs, return_exceptions=True)
        assert [isinstance(each, asyncio.CancelledError) for each in found] == [False] * 25 + [True] * 25

    with_session(work, saved([_n("Mul", "x two", "y")], {"x": [3]}, ["y"], **NUMBERS), backend)
    with_session(work, saved([_loop("k", "x", "y")], {"x": [3], "k": (7, [])}, ["y"], **NUMBERS), backend)


def test_runs_in_a_row_leave_the_event_loop_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """One task that never awaits anything else does not keep the others from running for long."""
    monkeypatch.setattr(turns, "MOST_S", 0.0)
    monkeypatch.setattr(turns, "BESIDE_S", 60.0)
    seen = list[int]()

    async def work(session: webinfer.Session) -> None:
        asyncio.get_running_loop().call_soon(seen.append, 1)
        for _ in range(2):
            await session.run(X)
        assert seen

    with_session(work, saved([_n("Mul", "x two", "y")], {"x": [3]}, ["y"], **NUMBERS))


def _cells() -> bytes:
    """Steps of a small recurrent cell, as converters write them: the turn reads its row of x, and ends by a count."""
    float_, int_, bool_ = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
    body = helper.make_graph(
        [
            helper.make_node("Gather", ["x", "i"], ["row"]),
            helper.make_node("MatMul", ["h", "w"], ["m"]),
            helper.make_node("Add", ["row", "m"], ["s"]),
            helper.make_node("Tanh", ["s"], ["h2"]),
            helper.make_node("Add", ["total", "row"], ["total2"]),
            helper.make_node("Add", ["t", "one"], ["t2"]),
            helper.make_node("Less", ["t2", "most"], ["go2"]),
            helper.make_node("Mul", ["h2", "total2"], ["listed"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", int_, []), helper.make_tensor_value_info("go", bool_, []),
            helper.make_tensor_value_info("t", int_, []), helper.make_tensor_value_info("h", float_, [1, 6]),
            helper.make_tensor_value_info("total", float_, [6]),
        ],
        [
            helper.make_tensor_value_info("go2", bool_, []), helper.make_tensor_value_info("t2", int_, []),
            helper.make_tensor_value_info("h2", float_, [1, 6]), helper.make_tensor_value_info("total2", float_, [6]),
            helper.make_tensor_value_info("listed", float_, [1, 6]), helper.make_tensor_value_info("row", float_, [6]),
        ],
    )  # fmt: skip
    nodes = [
        helper.make_node(
            "Loop", ["ends", "yes", "zero", "h0", "total0"], ["t_", "h_", "total_", "y", "rows"], body=body
        )
    ]
    constants = {
        "w": DRAW.normal(size=(6, 6)).astype("f4"), "one": np.array(1), "zero": np.array(0), "yes": np.array(True),
        "h0": np.zeros((1, 6), "f4"), "total0": np.zeros(6, "f4"), "ends": np.array(2**31),
    }  # fmt: skip
    return saved(nodes, {"x": ["n", 6], "most": (int_, [])}, ["y", "rows", "h_", "total_"], **constants)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("backend", ["wasm", "reference"])
def test_what_turns_carry_stays_in_the_kernels_memory(
    backend: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, runs, run, area = _cells(), list[str](), LoadedPlan.run_at_once, LoadedPlan.area
    calls, run_turns = list[int](), LoadedPlan.run_turns

    def counted(plan: LoadedPlan, inputs: Any) -> Any:
        runs.append(plan.layout.name)
        return run(plan, inputs)

    def told(plan: LoadedPlan, address: int, count: int) -> int:
        calls.append(count)
        return run_turns(plan, address, count)

    def measured(plan: LoadedPlan, nbytes: int) -> int:
        assert nbytes < LONG * 6 * 4, "what all turns read alike is copied"
        return area(plan, nbytes)

    monkeypatch.setattr(LoadedPlan, "run_at_once", counted)
    monkeypatch.setattr(LoadedPlan, "area", measured)
    monkeypatch.setattr(LoadedPlan, "run_turns", told)
    monkeypatch.setattr("webinfer.backends.wasm.turns.LONG_MS", float("inf"))  # on the slowest machine

    async def work(session: webinfer.Session) -> None:
        for n, most in ((9, 9), (9, 4), (5, 5), (9, 9), (30, 17), (3, 1), (LONG, 5)):
            inputs = {"x": DRAW.normal(size=(n, 6)).astype("f4"), "most": np.array(most)}
            runs.clear()
            calls.clear()
            found = await session.run(inputs)
            assert calls == ([1, 2, 4, 8, 16][: most.bit_length()] if backend == "wasm" else [])
            assert len(runs) <= 2  # what is before the loop and behind it, and no turn
            for mine, want in zip(found.values(), judged(data, inputs), strict=True):
                np.testing.assert_allclose(mine.numpy(), want, rtol=1e-4, atol=1e-5)
            assert (await session.verify(inputs=inputs)).ok

    with_session(work, data, backend, threads=threads)


@pytest.mark.parametrize("read_bytes", [0, queued.READ_BYTES])
def test_turns_are_submitted_to_a_gpu_before_the_first_ones_end_is_known(
    read_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queued, "READ_BYTES", read_bytes)
    data, calls, turns_of = _cells(), list[int](), queued.QueuedTurns.turns

    async def counted(own: Any, most: int) -> Any:
        found = await turns_of(own, most)
        calls.append(found[0])
        return found

    monkeypatch.setattr(queued.QueuedTurns, "turns", counted)

    async def work(session: webinfer.Session) -> None:
        for n, most, want in ((9, 9, [1, 2, 4, 2]), (9, 4, [1, 2, 1]), (9, 1, [1]), (9, 7, [1, 2, 4])):
            inputs = {"x": DRAW.normal(size=(n, 6)).astype("f4"), "most": np.array(most)}
            calls.clear()
            found = await session.run(inputs)
            assert calls == (want if read_bytes else [1] * most)
            for mine, right in zip(found.values(), judged(data, inputs), strict=True):
                np.testing.assert_allclose(mine.numpy(), right, rtol=1e-3, atol=1e-4)

    with_session(work, data, "webgpu")
