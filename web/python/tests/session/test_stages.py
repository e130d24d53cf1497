"""Models whose course data decides: only the branch taken runs, sizes may be computed, and the plans are kept."""

from __future__ import annotations

import gc
import weakref
from collections import ChainMap
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper  # noqa: E402
from tests.importers.litert import judged as litert  # noqa: E402
from tests.importers.test_loops import _with_subgraphs  # noqa: E402
from tests.importers.tflite_writer import Writer  # noqa: E402
from tests.session.test_open_sizes import DRAW, judged, saved, shared, with_session  # noqa: E402

import webinfer  # noqa: E402
from webinfer.errors import InputError, LimitError, UnsupportedOpError  # noqa: E402
from webinfer.importers.onnx import convert  # noqa: E402
from webinfer.session import loading, selection, stages  # noqa: E402

BACKENDS = pytest.mark.parametrize("backend", ["wasm", "reference"])
SIZE = 5000  # elements from which a branch is worth a look at its condition


async def _never(session: webinfer.Session) -> None:
    raise AssertionError("it loads")


def _body(nodes: list[Any], inputs: list[Any], outputs: Any) -> Any:
    """A graph inside another; inputs are (name, type, shape)."""
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    return helper.make_graph(nodes, "body", [helper.make_tensor_value_info(*i) for i in inputs], ends)


def _branches(*sides: list[Any], after: tuple[Any, ...] = ()) -> bytes:
    """s = x * 2; where the sum of x is above 0, the first side, else the second; both see s and x, and give r."""
    graphs = [
        helper.make_graph(
            nodes, name, [], [helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)]
        )
        for name, nodes in zip(("yes", "no"), sides, strict=True)
    ]
    nodes = [
        helper.make_node("Mul", ["x", "two"], ["s"]),
        helper.make_node("ReduceSum", ["x"], ["total"], keepdims=0),
        helper.make_node("Greater", ["total", "zero"], ["above"]),
        helper.make_node("If", ["above"], ["r"], then_branch=graphs[0], else_branch=graphs[1]),
        *(after or (helper.make_node("Identity", ["r"], ["y"]),)),
    ]
    return saved(nodes, {"x": [SIZE]}, ["y"], two=np.array(2, "f4"), zero=np.array(0, "f4"), from_=np.array([3], "i8"),
                 to=np.array([7], "i8"))  # fmt: skip


def _ops(session: webinfer.Session) -> list[str]:
    return [row.op for row in session.plan().rows]


@BACKENDS
def test_only_the_branch_that_is_taken_runs(backend: str) -> None:
    """Its result may differ in shape from the other's; what was computed before the branch is not computed again."""
    yes = [helper.make_node("Exp", ["s"], ["p"])]
    no = [helper.make_node("Slice", ["s", "from_", "to"], ["q"])]
    data = _branches(yes, no)

    async def work(session: webinfer.Session) -> None:
        x = DRAW.normal(size=SIZE).astype(np.float32)
        for sign in (1, -1, -1, 1):
            inputs = {"x": sign * abs(x)}
            got = (await session.run(inputs))["y"].numpy()
            np.testing.assert_allclose(got, judged(data, inputs)[0], rtol=1e-5)
            ops = _ops(session)
            assert ("exp" in ops, "slice" in ops) == (sign > 0, sign < 0)
            assert ops.count("mul") + ops.count("linear") == 1
            assert (await session.verify(inputs=inputs)).ok
            assert len((await session.profile(inputs, rounds=1)).times_ms) == len(ops)
        assert "depends on data" in session.choice
        assert "mul" in session.graph_text() or "linear" in session.graph_text()

    with_session(work, data, backend)


def test_an_onnx_model_is_read_once_and_goes_on_from_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    read, reading = list[str](), loading.read_model
    monkeypatch.setattr(loading, "read_model", lambda data, *rest: read.append("") or reading(data, *rest))
    converted, mul = list[str](), convert.CONVERTERS["Mul"]
    counted = {"Mul": lambda op: converted.append(op.name) or mul(op)}
    monkeypatch.setattr(convert, "CONVERTERS", ChainMap(counted, convert.CONVERTERS))

    async def work(session: webinfer.Session) -> None:
        for sign in (1, 1, -1, 1):
            await session.run(sign * np.ones(SIZE, np.float32))
            assert (len(read), len(converted)) == (1, 1)

    sides = [helper.make_node("Exp", ["s"], ["p"])], [helper.make_node("Slice", ["s", "from_", "to"], ["q"])]
    with_session(work, _branches(*sides))


def _ragged(weights: np.ndarray[Any, Any]) -> bytes:
    """A product, those of its rows whose first number is positive, and a product of these with the first's own sum."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("ReduceSum", ["r"], ["total"], keepdims=0),
        helper.make_node("Gather", ["h", "zero"], ["first"], axis=1),
        helper.make_node("Greater", ["first", "level"], ["up"]),
        helper.make_node("NonZero", ["up"], ["at"]),
        helper.make_node("Squeeze", ["at", "axis"], ["rows"]),
        helper.make_node("Gather", ["r", "rows"], ["kept"]),
        helper.make_node("MatMul", ["kept", "w"], ["again"]),
        helper.make_node("Add", ["again", "total"], ["y"]),
    ]
    constants = {"w": weights, "zero": np.array(0), "level": np.float32(0), "axis": np.array([0])}
    return saved(nodes, {"x": ["n", len(weights)]}, ["y"], **constants)


@pytest.mark.parametrize("backend", ["wasm", "reference"])
def test_parts_of_all_sizes_are_built_once_and_share_weights(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = DRAW.normal(size=(128, 128)).astype(np.float32)
    weights[:, 0] = abs(weights[:, 0])  # all rows are kept: both products are of one kernel
    data, built, choose = _ragged(weights), list[str](), selection.choose

    async def counted(graph: Any, *rest: Any, **more: Any) -> Any:
        built.append(graph.name)
        return await choose(graph, *rest, **more)

    monkeypatch.setattr(selection, "choose", counted)

    async def work(session: webinfer.Session) -> None:
        for n in (32, 48, 40, 64):
            inputs, before = {"x": DRAW.uniform(size=(n, 128)).astype(np.float32)}, len(built)
            got = (await session.run(inputs))["y"].numpy()
            np.testing.assert_allclose(got, judged(data, inputs)[0], rtol=1e-4, atol=1e-3)
            assert len(built) - before <= 3  # parts: up to how many rows are kept, which rows, what is made of them
            if backend == "wasm" and n != 32:
                report = session.memory()
                assert report.constants - report.shared < weights.nbytes / 4

    with_session(work, data, backend)


def test_memory_of_closed_plans_is_used_again_and_nothing_holds_them() -> None:
    data = _ragged(DRAW.normal(size=(128, 128)).astype(np.float32))
    ends, executors = list[int](), list[Any]()

    async def work(session: webinfer.Session) -> None:
        for n in (64, *range(20, 60)):
            await session.run({"x": DRAW.uniform(size=(n, 128)).astype(np.float32)})
            executors.append(weakref.ref(session.executor))
            memory = session.executor.kept()[0].memory_of_kernels  # type: ignore[attr-defined]
            ends.append(memory.end)
            assert memory.dead < 1 << 20
        gc.collect()
        assert [ref() is None for ref in executors] == [True] * 38 + [False] * 3
        assert ends[-1] - ends[8] < 1 << 18  # programs, which lie behind all others: 4 KB a size

    with_session(work, data)


def test_what_only_the_other_branch_lacks_does_not_matter() -> None:
    strange = [helper.make_node("StringNormalizer", ["s"], ["q"])]
    data = _branches([helper.make_node("Exp", ["s"], ["p"])], strange)

    async def work(session: webinfer.Session) -> None:
        x = np.ones(SIZE, np.float32)
        assert (await session.run(x))["y"].shape == (SIZE,)
        with pytest.raises(UnsupportedOpError, match="StringNormalizer"):
            await session.run(-x)
        assert (await session.run(x))["y"].shape == (SIZE,)

    with_session(work, data)


def test_what_is_not_supported_is_known_when_the_model_is_loaded() -> None:
    after = (helper.make_node("StringNormalizer", ["r"], ["y"]),)
    sides = [helper.make_node("Exp", ["s"], ["p"])], [helper.make_node("Slice", ["s", "from_", "to"], ["q"])]
    with pytest.raises(UnsupportedOpError, match="StringNormalizer"):
        with_session(_never, _branches(*sides, after=after))


def test_small_branches_are_both_computed() -> None:
    """That is cheaper than to wait for the condition, and the plan stays one."""
    sides = [_body([helper.make_node(op, ["x"], [op])], [], [op]) for op in ("Exp", "Abs")]
    nodes = [helper.make_node("If", ["c"], ["y"], then_branch=sides[0], else_branch=sides[1])]
    data = saved(nodes, {"x": [4], "c": (TensorProto.BOOL, [])}, ["y"])

    async def work(session: webinfer.Session) -> None:
        for c in (True, False):
            inputs = {"x": np.float32([-1, 0, 1, 2]), "c": np.array(c)}
            np.testing.assert_allclose((await session.run(inputs))["y"].numpy(), judged(data, inputs)[0], rtol=1e-6)
        assert {"exp", "abs", "where"} <= {*_ops(session)}

    with_session(work, data)


@BACKENDS
def test_shapes_may_be_inputs(backend: str) -> None:
    """One plan for each shape; sizes of x are open as well."""
    nodes = [
        helper.make_node("Reshape", ["x", "shape"], ["r"]),
        helper.make_node("Softmax", ["r"], ["y"], axis=-1),
    ]
    data = saved(nodes, {"x": ["n"], "shape": (TensorProto.INT64, [2])}, ["y"])

    async def work(session: webinfer.Session) -> None:
        for n, shape in ((12, (3, 4)), (12, (2, 6)), (6, (2, 3)), (12, (3, -1))):
            inputs = {"x": DRAW.normal(size=n).astype("f4"), "shape": np.array(shape)}
            got = (await session.run(inputs))["y"].numpy()
            np.testing.assert_allclose(got, judged(data, inputs)[0], atol=1e-6)
        with pytest.raises(InputError, match=r"values computed from these inputs; .* 12 elements"):
            await session.run({"x": np.zeros(12, "f4"), "shape": np.array((5, 5))})
        assert (await session.run({"x": np.zeros(12, "f4"), "shape": np.array((3, 4))}))["y"].shape == (3, 4)

    with_session(work, data, backend)


@BACKENDS
def test_tflite_sizes_may_be_computed(backend: str) -> None:
    """y = x in the shape [rows, -1] that a maximum decides; begin and size of a slice are inputs."""
    w = Writer()
    x, at = w.input("x", (2, 6)), w.input("at", (2,), "int32")
    sizes, rows = w.input("sizes", (2,), "int32"), w.tensor("rows", (2,), "int32")
    y, z = w.tensor("y", (4, 3)), w.tensor("z", (1, 1))
    w.node("MAXIMUM", [sizes, w.constant("least", np.int32([1, -1]))], [rows])
    w.node("RESHAPE", [x, rows], [y])
    w.node("SLICE", [x, at, w.constant("one", np.int32([1, 2]))], [z])
    data = w.finish(y, z)

    async def work(session: webinfer.Session) -> None:
        x = DRAW.normal(size=(2, 6)).astype("f4")
        for rows, at in ((4, (0, 1)), (3, (1, 4)), (4, (0, 1))):
            got = await session.run({"x": x, "at": np.int32(at), "sizes": np.int32([rows, -7])})
            np.testing.assert_array_equal(got["y"].numpy(), x.reshape(rows, -1))
            np.testing.assert_array_equal(got["z"].numpy(), x[at[0] : at[0] + 1, at[1] : at[1] + 2])

    with_session(work, data, backend)


def test_a_model_that_branches_on_the_sampling_rate() -> None:
    path, judge = shared("silero_vad_v6.onnx")

    async def work(session: webinfer.Session) -> None:
        for rate, length in ((16000, 576), (8000, 288)):
            state = np.zeros((2, 1, 128), np.float32)
            for _ in range(2):
                x = DRAW.normal(size=(1, length)).astype(np.float32)
                inputs = {"input": x, "state": state, "sr": np.array(rate)}
                got = list((await session.run(inputs)).values())
                for mine, want in zip(got, judge.run(None, inputs), strict=True):
                    np.testing.assert_allclose(mine.numpy(), want, atol=1e-5)
                state = got[1].numpy().copy()

    with_session(work, path)


def _doubling(trips: bool = False) -> bytes:
    """Doubles v and adds b until its sum is above a limit; lists each v and the number of the turn times two."""
    body = _body(
        [
            helper.make_node("Mul", ["v", "two"], ["w"]),
            helper.make_node("Add", ["w", "s"], ["v2"]),
            helper.make_node("ReduceSum", ["v2"], ["total"], keepdims=0),
            helper.make_node("Less", ["total", "limit"], ["go"]),
            helper.make_node("Identity", ["v2"], ["seen"]),
            helper.make_node("Cast", ["i"], ["number"], to=1),
        ],
        [("i", TensorProto.INT64, []), ("c", TensorProto.BOOL, []), ("v", TensorProto.FLOAT, [3])],
        ["v2", "seen", "number"],
    )
    body.output.insert(0, helper.make_tensor_value_info("go", TensorProto.BOOL, []))
    nodes = [
        helper.make_node("Mul", ["x", "two"], ["s"]),
        helper.make_node("Loop", ["most" if trips else "", "", "x"], ["last", "all", "numbers"], body=body),
        helper.make_node("Add", ["last", "s"], ["y"]),
    ]
    inputs: dict[str, Any] = {"x": [3]} | ({"most": (TensorProto.INT64, [])} if trips else {})
    return saved(nodes, inputs, ["y", "all", "numbers"], two=np.array(2, "f4"), limit=np.array(1000, "f4"))


@BACKENDS
def test_a_loop_turns_until_its_data_ends_it(backend: str) -> None:
    """What it lists is as long as it turned; its turn is planned once."""
    data = _doubling()

    async def work(session: webinfer.Session) -> None:
        for x in ([1, 2, 3], [100, 50, 3], [500, 500, 500], [1, 2, 3]):
            inputs = {"x": np.float32(x)}
            got = await session.run(inputs)
            for mine, want in zip(got.values(), judged(data, inputs), strict=True):
                np.testing.assert_array_equal(mine.numpy(), want)
            assert (await session.verify(inputs=inputs)).ok
            assert len((await session.profile(inputs, rounds=1)).times_ms) == len(_ops(session))
        assert "turn{20}of" in session.graph_text()

    with_session(work, data, backend)


@BACKENDS
def test_a_loop_turns_as_often_as_its_data_says(backend: str) -> None:
    data = _doubling(trips=True)

    async def work(session: webinfer.Session) -> None:
        for most in (2, 100, 5, 1, 0):
            inputs = {"x": np.float32([1, 2, 3]), "most": np.array(most)}
            got = await session.run(inputs)
            for mine, want in zip(got.values(), judged(data, inputs), strict=True):
                np.testing.assert_array_equal(mine.numpy(), want)

    with_session(work, data, backend)


def _while(factor: float) -> bytes:
    """TFLite: x grows by a factor while its largest number is below 9."""

    def main(w: Writer) -> None:
        x, start = w.input("x", (2, 3)), w.constant("start", np.array(0, np.int32))
        count, y = w.tensor("count", (), "int32"), w.tensor("y", (2, 3))
        w.node("WHILE", [start, x], [count, y], cond_subgraph_index=1, body_subgraph_index=2)
        w.graph.outputs = [count, y]

    def test(w: Writer) -> None:
        _, v = w.input("i", (), "int32"), w.input("v", (2, 3))
        w.node("REDUCE_MAX", [v, w.constant("axes", [0, 1])], [most := w.tensor("most", ())])
        w.node("LESS", [most, w.constant("limit", np.array(9, np.float32))], [less := w.tensor("less", (), "bool")])
        w.graph.outputs = [less]

    def turn(w: Writer) -> None:
        i, v = w.input("i", (), "int32"), w.input("v", (2, 3))
        more, grown = w.tensor("more", (), "int32"), w.tensor("grown", (2, 3))
        w.node("ADD", [i, w.constant("step", np.array(1, np.int32))], [more])
        w.node("MUL", [v, w.constant("factor", np.array(factor, np.float32))], [grown])
        w.graph.outputs = [more, grown]

    return _with_subgraphs(main, test, turn)


@BACKENDS
def test_a_tflite_loop_turns_until_its_data_ends_it(backend: str) -> None:
    data = _while(1.5)

    async def work(session: webinfer.Session) -> None:
        for x in (1, 5, 20, 1):
            inputs = np.full((2, 3), x, np.float32)
            got = await session.run(inputs)
            count, grown = litert(data, [inputs])
            assert got["count"].numpy() == count
            np.testing.assert_array_equal(got["y"].numpy(), grown)

    with_session(work, data, backend)


def test_a_loop_without_an_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "MAX_TURNS", 100)

    async def work(session: webinfer.Session) -> None:
        with pytest.raises(LimitError, match=r"turns of .*WHILE"):
            await session.run(np.zeros((2, 3), np.float32))
        assert (await session.run(np.full((2, 3), 10, np.float32)))["count"].numpy() == 0

    with_session(work, _while(1.5))


def _detections(seen: np.random.Generator, center: int) -> dict[str, Any]:
    corners = np.sort(seen.uniform(size=(2, 2, 30, 2)).astype("f4"), 0)  # first and second corner
    boxes = np.concatenate(list(corners if not center else (corners.mean(0), corners[1] - corners[0])), -1)
    return {"boxes": boxes, "scores": seen.uniform(size=(2, 3, 30)).astype("f4")}


@BACKENDS
@pytest.mark.parametrize("center", [0, 1])
def test_how_many_boxes_are_kept_is_data(backend: str, center: int) -> None:
    attributes = {"center_point_box": center}
    nodes = [
        helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["kept"], **attributes),
        helper.make_node("Slice", ["kept", "first", "second", "first"], ["rows"]),
        helper.make_node("Cast", ["kept"], ["y"], to=1),
    ]
    constants = {"most": np.array([4]), "overlap": np.float32([0.3]), "first": np.array([1]), "second": np.array([2])}
    inputs: dict[str, Any] = {"boxes": [2, 30, 4], "scores": [2, 3, 30], "least": [1]}
    data = saved([nodes[0], nodes[2]], inputs, ["y"], **constants)
    seen = np.random.default_rng(center)

    async def work(session: webinfer.Session) -> None:
        for least in (0.4, 0.9, 2.0, 0.4):
            inputs = _detections(seen, center) | {"least": np.float32([least])}
            got = (await session.run(inputs))["y"].numpy()
            np.testing.assert_array_equal(got, judged(data, inputs)[0])

    with_session(work, data, backend)


@BACKENDS
def test_how_many_elements_are_found_is_data(backend: str) -> None:
    """NonZero, what it finds as positions, and Compress; none, some and all."""
    nodes = [
        helper.make_node("Greater", ["x", "limit"], ["above"]),
        helper.make_node("NonZero", ["above"], ["at"]),
        helper.make_node("Transpose", ["at"], ["rows"], perm=[1, 0]),
        helper.make_node("GatherND", ["x", "rows"], ["y"]),
        helper.make_node("Cast", ["at"], ["places"], to=1),
        helper.make_node("Compress", ["x", "wanted"], ["z"], axis=1),
    ]
    inputs: dict[str, Any] = {"x": [3, 4, 5], "limit": [], "wanted": (TensorProto.BOOL, [3])}
    data = saved(nodes, inputs, ["y", "places", "z"])

    async def work(session: webinfer.Session) -> None:
        for limit, wanted in ((0.5, (1, 0, 1)), (-9, (0, 0, 1)), (9, (0, 0, 0)), (0.4, (1, 1, 1))):
            inputs = {"x": DRAW.normal(size=(3, 4, 5)).astype("f4"), "limit": np.array(limit, "f4"),
                      "wanted": np.array(wanted, bool)}  # fmt: skip
            got = await session.run(inputs)
            for mine, want in zip(got.values(), judged(data, inputs), strict=True):
                np.testing.assert_array_equal(mine.numpy(), want)

    with_session(work, data, backend)


@BACKENDS
def test_where_of_tflite_lists_what_is_true(backend: str) -> None:
    w = Writer()
    x, y = w.input("x", (3, 4)), w.tensor("y", (1, 2), "int64", shape_signature=[-1, 2])
    w.node("WHERE", [x], [y])
    data = w.finish(y)

    async def work(session: webinfer.Session) -> None:
        for rows in ([[0, 1, 0, -2], [0, 0, 0, 0], [3, 0, 0, 0.5]], np.zeros((3, 4)), np.ones((3, 4))):
            x = np.array(rows, np.float32)
            want = (
                litert(data, [x])[0] if x.any() else np.zeros((0, 2), np.int64)
            )  # of which LiteRT's API knows nothing
            np.testing.assert_array_equal((await session.run(x))["y"].numpy(), want)

    with_session(work, data, backend)


@BACKENDS
def test_different_elements_of_tflite_come_in_their_order(backend: str) -> None:
    w = Writer()
    x = w.input("x", (8,), "int32")
    y, places = w.tensor("y", (1,), "int32", shape_signature=[-1]), w.tensor("places", (8,), "int64")
    w.node("UNIQUE", [x], [y, places], idx_out_type=4)
    data = w.finish(y, places)

    async def work(session: webinfer.Session) -> None:
        for row in ([5, 3, 5, -1, 3, 9, 9, 5], [2] * 8, range(8, 0, -1)):
            x = np.array(row, np.int32)
            for mine, want in zip((await session.run(x)).values(), litert(data, [x]), strict=True):
                np.testing.assert_array_equal(mine.numpy(), want)

    with_session(work, data, backend)
