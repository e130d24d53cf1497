"""A package of a model whose sizes are open runs at sizes that it never met, as the model does, bit for bit."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
from tests.ops.case_graphs import run
from tests.ops.targets import Target
from tests.package.altered import altered
from tests.session.test_open_plans import cached, picture, sentence

import webinfer
from build_scripts.judge.open_models import decoder, encoder, pictures
from webinfer.dtypes import DType
from webinfer.errors import InputError, UnsupportedOpError, WebinferError
from webinfer.graph.stored_trace import restored, written
from webinfer.graph.trace import Expressions, Trace
from webinfer.package import compile_model
from webinfer.package.container import Package, Writer
from webinfer.package.open_sizes import samples
from webinfer.session.inputs import TensorInfo

GIVEN = {
    "encoder": [sentence(5), sentence(37), sentence(1), sentence(9, 2), sentence(16)],
    "decoder": [cached(3), cached(40), cached(1), cached(5, 4), cached(64)],
    "pictures": [picture(64, 64), picture(33, 47), picture(49, 34), picture(64, 64)],
}
MODELS = {"encoder": encoder, "decoder": decoder, "pictures": pictures}


@cache
def package(name: str, backend: str = "wasm", *sizes: Any) -> bytes:
    options = {"builds": ("relaxed",), "threads": False, "sizes": [dict(sample) for sample in sizes]}
    return run(compile_model(MODELS[name](), backend=backend, **options))


@pytest.mark.parametrize("name", MODELS)
def test_a_package_gives_what_its_model_gives_at_sizes_that_it_never_met(name: str) -> None:
    with (
        run(webinfer.load(package(name), backend="wasm")) as session,
        run(webinfer.load(MODELS[name](), backend="wasm", threads=1)) as model,
    ):
        assert any(isinstance(size, str) for info in session.inputs for size in info.shape)
        for inputs in GIVEN[name]:
            found, want = run(session.run(inputs)), run(model.run(inputs))
            assert list(found) == list(want)
            for output, tensor in want.items():
                np.testing.assert_array_equal(found[output].numpy(), tensor.numpy())
        assert {"compiled into the package"} == {row.why for row in session.plan().rows}


def test_a_package_is_bound_on_a_gpu_too() -> None:
    Target("webgpu").demand()
    shapes = [(("x", (1, 3, 64, 64)),), (("x", (1, 3, 33, 47)),)]
    with (
        run(webinfer.load(package("pictures", "webgpu", *shapes), backend="webgpu")) as session,
        run(webinfer.load(pictures(), backend="wasm")) as model,
    ):
        for inputs in (picture(64, 64), picture(33, 47), picture(60, 56), picture(37, 43)):
            found, want = run(session.run(inputs))["y"].numpy(), run(model.run(inputs))["y"].numpy()
            np.testing.assert_allclose(found, want, atol=1e-5)


def begun(new: int) -> dict[str, Any]:
    """A decoder's first step: no past."""
    return {name: array if name == "ids" else array[:, :, :0] for name, array in cached(3, new).items()}


def test_a_decoder_begins_with_an_empty_past() -> None:
    with (
        run(webinfer.load(package("decoder"), backend="wasm")) as session,
        run(webinfer.load(decoder(), backend="wasm", threads=1)) as model,
    ):
        for inputs in (begun(3), begun(1), cached(4), begun(24), cached(1), begun(57), begun(2)):
            found, want = run(session.run(inputs)), run(model.run(inputs))
            for output, tensor in want.items():
                np.testing.assert_array_equal(found[output].numpy(), tensor.numpy())


def test_a_decoder_begins_with_an_empty_past_on_a_gpu() -> None:
    Target("webgpu").demand()
    shapes = [tuple((name, a.shape) for name, a in one.items()) for one in (begun(1), begun(4), cached(9))]
    with (
        run(webinfer.load(package("decoder", "webgpu", *shapes), backend="webgpu")) as session,
        run(webinfer.load(decoder(), backend="wasm")) as model,
    ):
        for inputs in (begun(1), cached(5), begun(8), begun(1), cached(70)):
            found, want = run(session.run(inputs)), run(model.run(inputs))
            for output, tensor in want.items():
                np.testing.assert_allclose(found[output].numpy(), tensor.numpy(), atol=1e-5)


def test_plans_of_an_empty_axis_hold_for_nothing_else() -> None:
    none = {name: array[:, :0] for name, array in sentence(5).items()}
    data = package("encoder", "wasm", *(tuple((n, a.shape) for n, a in one.items()) for one in (none, sentence(24))))
    with run(webinfer.load(data, backend="wasm")) as session:
        for inputs in (none, sentence(30), none):
            assert run(session.run(inputs))["b_y"].shape == (1, inputs["ids"].shape[1], 32)
    data = package("encoder", "wasm", tuple((n, a.shape) for n, a in none.items()))
    with run(webinfer.load(data, backend="wasm")) as session:
        assert run(session.run(none))["b_y"].shape == (1, 0, 32)
        with pytest.raises(InputError, match=r"holds while .*ids\[1\] <= 0"):
            run(session.run(sentence(24)))


def test_sizes_of_another_kind_are_refused_with_what_the_closest_plan_needs() -> None:
    data = package("encoder", "wasm", (("ids", (1, 24)), ("mask", (1, 24))))
    with run(webinfer.load(data, backend="wasm")) as session:
        run(session.run(sentence(30)))
        with pytest.raises(InputError, match=r"no plan for 'ids' \(2, 30\).*holds while .*ids\[0\].* == 0"):
            run(session.run(sentence(30, 2)))
        with pytest.raises(InputError, match=r"has the shape|cannot run|no plan"):
            run(session.run({"ids": np.zeros((1, 2, 3), np.int64), "mask": np.zeros((1, 2, 3), np.int64)}))
        np.testing.assert_array_equal(run(session.run(sentence(24)))["b_y"].shape, (1, 24, 32))


def test_sizes_that_a_caller_wants_are_checked() -> None:
    with pytest.raises(InputError, match="give a number for each open size"):
        package("encoder", "wasm", (("ids", (1,)), ("mask", (1, 24))))
    with pytest.raises(UnsupportedOpError, match="cannot stay open in a package"):
        package("encoder", "wasm", (("ids", (1, 24)), ("mask", (1, 25))))


def test_what_the_file_gives_one_name_has_one_size_in_every_sample() -> None:
    infos = [
        TensorInfo("ids", DType("int64"), ("b", "t"), None),
        TensorInfo("past", DType("float32"), ("b", 4, "p"), None),
    ]
    drawn = list(samples(infos))
    assert all(sample["ids"][0] == sample["past"][0] and sample["past"][1] == 4 for sample in drawn)
    assert {"ids": (1, 1), "past": (1, 4, 32)} in drawn[:3]  # one new token, a long past
    assert drawn == list(samples(infos))
    assert not any(0 in shape for sample in drawn for shape in sample.values())
    begun = list(samples(infos, [("past", 2)]))
    assert [sample["past"][2] for sample in begun[1:6]] == [0] * 5
    assert all(0 not in sample["ids"] for sample in begun)


def test_a_trace_is_stored_and_read() -> None:
    trace = Trace({"t": 12, "u": 5})
    with trace.active():
        t, u = trace.size("t"), trace.size("u")
        expressions = Expressions(trace)
        sizes = [(t * u + 3) // 4, t % 5, t * 7 - u, webinfer.graph.dims.minimum(t, u * 3)]
        numbers = [expressions.number(size) for size in sizes]
        assert t > u
    again, values = restored(json.loads(json.dumps(written(trace, expressions))))
    for pair in ((12, 5), (100, 7), (8, 3)):
        assert [values.evaluate(pair)[i] for i in numbers] == [
            (pair[0] * pair[1] + 3) // 4, pair[0] % 5, 7 * pair[0] - pair[1], min(pair[0], 3 * pair[1]),
        ]  # fmt: skip
    empty = Trace({"t": 0, "u": 5})
    with empty.active():
        assert empty.size("t") == 0
        numbers = Expressions(empty)
        numbers.number(empty.size("u") * 3 + empty.size("t"))
    stored, values = restored(json.loads(json.dumps(written(empty, numbers))))
    assert values.evaluate((0, 7)) == [21]
    assert [stored.compile_guards()(pair) for pair in ((0, 7), (1, 7), (0, 0))] == [True, False, False]
    holds = again.compile_guards()
    assert [holds(pair) for pair in ((9, 8), (8, 9), (0, -1))] == [True, False, False]
    assert again.broken((8, 9)) == ["t + -1*u > 0"]


def test_altered_facts_are_refused_before_anything_runs() -> None:
    data = package("pictures", "wasm", (("x", (1, 3, 64, 64)),))
    facts = Package(memoryview(data), "open").json("wasm/relaxed")
    regime = facts["regimes"][0]
    keys = ("first", "count", "program", "plain", "offsets", "pointers", "blocks", "shapes", "sizes")
    short = {key: regime[key][:1] if isinstance(regime[key], list) else regime[key] for key in keys if key != "sizes"}
    short["sizes"] = {key: rows[:1] for key, rows in regime["sizes"].items()}
    tried = [changed for _, changed in altered(short)]
    for changed in tried[:: max(len(tried) // 16, 1)]:  # each loads a package
        other = {key: _merged(regime[key], short[key], changed[key]) for key in keys if key in changed}
        whole = {key: value for key, value in regime.items() if key not in keys} | other
        with (
            pytest.raises(WebinferError),
            run(webinfer.load(repacked(data, {**facts, "regimes": [whole]}), backend="wasm")) as session,
        ):
            run(session.run(picture(64, 64)))


def _merged(own: Any, part: Any, changed: Any) -> Any:
    """The whole of what was shortened to `part`, with its first row changed."""
    if isinstance(own, dict) and isinstance(changed, dict):
        return {key: _merged(own[key], part[key], changed[key]) for key in own if key in changed}
    return [*changed, *own[len(part) :]] if isinstance(own, list) and isinstance(changed, list) else changed


def repacked(data: bytes, facts: Any) -> bytes:
    """The package with other facts of its plan, and right hashes."""
    opened = Package(memoryview(data), "open")
    writer = Writer()
    for name in opened._rows:
        writer.sections[name] = bytes(opened.section(name))
    writer.sections["wasm/relaxed"] = json.dumps(facts).encode()
    header = {key: value for key, value in opened.header.items() if key != "sections"}
    return writer.file(header)
