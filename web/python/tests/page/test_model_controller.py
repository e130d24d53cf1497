"""What the page about a model is told: any of the formats, whole, damaged, too much, with open sizes."""

from __future__ import annotations

import asyncio
import io
import json
import zipfile
from array import array
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
import pytest
from tests.importers.format_samples import samples
from tests.importers.mutations import Tally, truncations
from tests.page.model_files import damaged, image, open_onnx, tfjs, tflite, unsupported

import webinfer
from webinfer.backends.base import Executor
from webinfer.dtypes import DType
from webinfer.errors import InputError
from webinfer.graph.ir import Graph
from webinfer.host.interface import ProgressEvent
from webinfer.importers import formats
from webinfer.page.model_controller import ModelController, StoppedError
from webinfer.session.verification import VerifyReport, compare_backends
from webinfer.tensor import Tensor


class Page:
    """A controller that is asked in turn; progress is noted."""

    def __init__(self) -> None:
        self.events: list[ProgressEvent] = []
        self.controller = ModelController(self.events.append)
        self.buffers: list[memoryview] = []

    def ask(self, action: str, **fields: Any) -> Any:
        """The answer, as the page receives it."""
        answer, self.buffers = asyncio.run(self.controller.answer(action, fields))
        return json.loads(json.dumps(answer))


@contextmanager
def page() -> Iterator[Page]:
    one = Page()
    try:
        yield one
    finally:
        one.controller.close()


def test_a_model_is_described_as_its_file_says() -> None:
    with page() as one:
        told = one.ask("open", files={"cat.tflite": memoryview(tflite())})
    assert (told["name"], told["format"], told["bytes"]) == ("cat.tflite", "TensorFlow Lite", len(tflite()))
    outline = told["outline"]
    assert [node["op"] for node in outline["nodes"]] == ["CONV_2D", "RELU", "RESHAPE"]
    assert outline["nodes"][0]["attributes"]["padding"] == "SAME"
    assert [outline["values"][key] for key in outline["inputs"]] == [
        {"name": "image", "type": "float32 [1, 4, 4, 2]", "bytes": 0}
    ]
    kernel = outline["values"][outline["nodes"][0]["inputs"][1]]
    assert kernel == {"name": "kernel", "type": "float32 [3, 2, 2, 2]", "bytes": 96}


@pytest.mark.parametrize("name", [name for name in samples() if name != "webnn"])
def test_every_format_is_described_compiled_and_run(name: str) -> None:
    data = samples()[name]
    with page() as one:
        told = one.ask("open", files={name: memoryview(data)})
        plan = one.ask("plan", backend="wasm")
        assert told["outline"]["nodes"]
        assert told["outline"]["outputs"]
        nodes, rows = plan["graph"]["nodes"], plan["rows"]
        assert all(0 <= row["node"] < len(nodes) for row in rows)
        assert [(row["op"], row["label"]) for row in rows] == [
            (nodes[row["node"]]["op"], nodes[row["node"]]["name"]) for row in rows
        ]
        ran = one.ask("run", backend="wasm", seed=3)
        assert len(ran["outputs"]) == len(one.buffers) >= 1


def test_files_of_weights_lie_beside_a_model() -> None:
    files = {name: memoryview(data) for name, data in tfjs().items()}
    with page() as one:
        assert one.ask("open", files=files)["bytes"] == sum(map(len, files.values()))
        assert "error" not in one.ask("plan", backend="wasm", brief=True)
        one.ask("open", files={"model.json": files["model.json"]})
        assert "was not given" in one.ask("plan", backend="wasm")["error"]["message"]


def test_a_run_gives_the_numbers_of_the_reference() -> None:
    session = asyncio.run(webinfer.load(tflite(), backend="reference"))
    with session, page() as one:
        want = asyncio.run(session.run(image()))["y"].numpy()
        one.ask("open", files={"m": memoryview(tflite())})
        one.ask("plan", backend="wasm", brief=True)
        told = one.ask("run", backend="wasm", inputs={"image": memoryview(image().tobytes())})
        got = np.frombuffer(one.buffers[0], told["outputs"][0]["dtype"]).reshape(told["outputs"][0]["shape"])
        np.testing.assert_allclose(got, want, atol=1e-5)
        one.ask("run", backend="wasm", inputs={"image": "zeros"})
        assert not any(one.buffers[0])


def test_what_a_fused_step_computes_is_found_in_the_file() -> None:
    with page() as one:
        one.ask("open", files={"m": memoryview(tflite())})
        plan = one.ask("plan", backend="wasm")
        assert [node["op"] for node in plan["graph"]["nodes"]] == ["conv2d", "reshape"]
        assert plan["origins"] == [1, 2]  # the convolution ends with the activation
        assert {row["kernel"] for row in plan["rows"]} == {plan["rows"][0]["kernel"]}


def test_the_values_of_a_weight_are_those_of_the_file() -> None:
    with page() as one:
        one.ask("open", files={"m": memoryview(tflite())})
        plan = one.ask("plan", backend="wasm")
        values, nodes = plan["graph"]["values"], plan["graph"]["nodes"]
        kernel = next(key for key in nodes[0]["inputs"] if values[key]["bytes"] == 96)
        told = one.ask("weights", backend="wasm", key=kernel)
        assert told == {"name": values[kernel]["name"], "dtype": "float32", "shape": [3, 2, 2, 2]}
        np.testing.assert_array_equal(
            np.frombuffer(one.buffers[0], np.float32), np.linspace(-1, 1, 24, dtype=np.float32)
        )
        with pytest.raises(InputError, match="is not a constant"):
            one.ask("weights", backend="wasm", key=plan["graph"]["inputs"][0])
        with pytest.raises(InputError, match="is not a constant"):
            one.ask("weights", backend="wasm", key="no such value")


def test_open_sizes_are_asked_for() -> None:
    with page() as one:
        told = one.ask("open", files={"m.onnx": memoryview(open_onnx())})
        assert told["outline"]["facts"]["producer"] == "a test"
        plan = one.ask("plan", backend="wasm")
        assert plan["open"]
        assert "graph" not in plan
        assert plan["inputs"] == [{"name": "x", "dtype": "float32", "shape": ["rows", 3]}]
        assert not one.ask("plan", backend="wasm", shapes={"x": [5, 3]})["open"]
        assert one.ask("run", backend="wasm")["outputs"][0]["shape"] == [5, 3]
        assert one.ask("plan", backend="wasm", shapes={"x": [5, 4]})["error"]["code"] == "shape"
        with pytest.raises(InputError, match="not compiled for wasm"):
            one.ask("run", backend="wasm")


def test_all_that_is_unsupported_is_said_with_what_the_model_is() -> None:
    with page() as one:
        told = one.ask("open", files={"m.tflite": memoryview(unsupported())})
        error = one.ask("plan", backend="wasm")["error"]
    assert [node["op"] for node in told["outline"]["nodes"]][1] == "LSH_PROJECTION"
    assert (error["code"], error["operators"]) == ("unsupported-op", [1])
    assert error["problems"] == ["LSH_PROJECTION: not supported (operator 1)"]


def test_of_several_models_one_is_named() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a.tflite", tflite())
        archive.writestr("b.onnx", open_onnx())
    with page() as one:
        files = {"both.task": memoryview(packed.getvalue())}
        assert one.ask("open", files=files)["members"] == ["a.tflite", "b.onnx"]
        told = one.ask("open", files=files, member="a.tflite")
        assert (told["name"], told["format"]) == ("a.tflite", "TensorFlow Lite")
        assert one.ask("plan", backend="wasm")["graph"]["nodes"]


def test_a_damaged_file_is_an_answer_and_the_next_one_is_opened() -> None:
    with page() as one:
        told = one.ask("open", files={"m.tflite": memoryview(damaged())})
        assert told["error"]["code"] == "model-format"
        assert one.ask("plan", backend="wasm")["error"]["code"] == "model-format"
        assert "error" not in one.ask("open", files={"m.tflite": memoryview(tflite())})


def test_outlines_of_cut_files_end_in_typed_errors() -> None:
    tally = Tally()
    for data in samples().values():
        for label, cut in list(truncations(data))[::9]:
            with tally.attempt(label):
                formats.outline(formats.unpacked(memoryview(cut), label)[0], label)
                tally.results += 1
    assert tally.count > 100
    assert not tally.others, tally.others[0]


def test_profile_and_times_are_of_every_step() -> None:
    with page() as one:
        one.ask("open", files={"m": memoryview(tflite())})
        plan = one.ask("plan", backend="wasm")
        assert len(one.ask("profile", backend="wasm", rounds=1)["times"]) == len(plan["rows"])
        assert len(one.ask("time", backend="wasm", count=3)["times"]) == 3
        assert len(one.ask("time", backend="wasm", count=3, budget_ms=0)["times"]) == 1


def test_verify_compares_node_by_node_and_can_be_stopped() -> None:
    with page() as one:
        one.ask("open", files={"m": memoryview(tflite())})
        one.ask("plan", backend="wasm")
        told = one.ask("verify", backend="wasm", against="reference")
        assert told["ok"]
        assert [row["node"] for row in told["differences"]] == [0, 1]
        assert [event.stage for event in one.events if event.stage == "verify"]
        one.controller._progress = lambda event: one.controller.stop()
        with pytest.raises(StoppedError):
            one.ask("verify", backend="wasm", against="reference")
        one.controller._progress = one.events.append
        assert one.ask("verify", backend="wasm", against="reference")["ok"]  # what was stopped stands in nobody's way


def test_what_nobody_can_do_is_refused() -> None:
    with page() as one:
        with pytest.raises(InputError, match="unknown action 'close'"):
            one.ask("close")
        with pytest.raises(InputError, match="no model is open"):
            one.ask("plan", backend="wasm")


class Probed:
    """An executor that computes given numbers, and notes how many of them it was asked for."""

    def __init__(self, name: str, graph: Graph, numbers: Sequence[float]) -> None:
        self.backend, self.graph, self.numbers, self.asked = name, graph, numbers, 0

    async def probe(self, inputs: Any) -> AsyncIterator[tuple[Any, Any, Tensor]]:
        for node, number in zip(self.graph.nodes, self.numbers, strict=True):
            self.asked += 1
            yield node, node.output, Tensor(array("f", [number] * 3), (3,), DType.FLOAT32)


def compared(graph: Graph, ours: Sequence[float], theirs: Sequence[float]) -> tuple[VerifyReport, list[int]]:
    mine, other = Probed("mine", graph, ours), Probed("theirs", graph, theirs)
    ahead: list[int] = []

    async def step(done: int) -> None:
        ahead.append(other.asked - mine.asked)

    work = compare_backends(cast(Executor, mine), cast(Executor, other), {}, 1e-3, graph, step)
    return asyncio.run(work), ahead


def test_the_first_node_that_differs_is_named_and_both_go_side_by_side() -> None:
    builder = webinfer.GraphBuilder("g")
    x = builder.input("x", (3,))
    for _ in range(3):
        x = builder.node("relu", x)
    builder.output(x, "y")
    graph = builder.graph()
    report, ahead = compared(graph, [1] * len(graph.nodes), [1, 1.5, *[2] * (len(graph.nodes) - 2)])
    assert report.first is not None
    assert report.first.value == graph.nodes[1].output.name
    assert ahead == [0] * len(graph.nodes)
    assert compared(graph, [float("nan")] * len(graph.nodes), [1] * len(graph.nodes))[0].first is not None
