"""What a session promises its user, on a model of three operators."""

from __future__ import annotations

import dataclasses
import html
import json
import time
from array import array
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.importers.tflite_writer import Writer
from tests.ops.case_graphs import run
from tests.session.models import IMAGE, model, open_model, opened, spoil

import webinfer
from webinfer.backends import registry
from webinfer.backends.base import PlanRow
from webinfer.backends.wasm import WasmExecutor
from webinfer.errors import (
    BackendUnavailableError,
    ClosedError,
    DeviceLostError,
    InputError,
    KernelError,
    ModelFormatError,
)
from webinfer.session import selection
from webinfer.session.inputs import TensorInfo, random_inputs
from webinfer.session.reports import Profile
from webinfer.session.roofline import Peaks
from webinfer.session.session import Session
from webinfer.session.verification import distance


def test_arrays_buffers_and_tensors_give_the_same() -> None:
    with opened() as session:
        want = run(session.run({"image": IMAGE}))["y"].numpy()
        assert want.shape == (1, 36)
        tensor = webinfer.Tensor(IMAGE.tobytes(), (1, 6, 6, 2), session.inputs[0].dtype)
        for form in (IMAGE.tobytes(), array("f", IMAGE.ravel().tolist()), memoryview(IMAGE), tensor):
            np.testing.assert_array_equal(run(session.run(form))["y"].numpy(), want)


def test_two_backends_agree() -> None:
    with opened("wasm") as fast, opened("reference") as slow:
        got, want = (run(s.run(IMAGE))["y"].numpy() for s in (fast, slow))
    np.testing.assert_allclose(got, want, atol=1e-5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"picture": IMAGE}, "no input 'picture'; its inputs are image"),
        ({}, "needs input 'image'"),
        (IMAGE.astype(np.float64), "has type float64, needs float32"),
        (IMAGE[:, :5], r"has shape \(1, 5, 6, 2\), needs \(1, 6, 6, 2\)"),
        (b"123", "has 3 bytes, needs 288"),
        (array("d", [0.0] * 36), "holds d, needs float32|holds float64"),
        ("text", "give an array"),
    ],
)
def test_a_wrong_input_is_named_and_the_next_run_works(given: Any, message: str) -> None:
    with opened() as session:
        with pytest.raises(InputError, match=message):
            run(session.run(given))
        assert run(session.run(IMAGE))["y"].shape == (1, 36)


def test_a_closed_session_says_so() -> None:
    session = opened()
    session.close()
    session.close()
    with pytest.raises(ClosedError, match="load the model again"):
        run(session.run(IMAGE))
    assert "closed" in repr(session)


def test_the_plan_names_backend_kernel_shapes_and_reason() -> None:
    with opened() as session:
        plan = session.plan()
        assert [row.op for row in plan.rows] == ["conv2d", "max_pool2d"]
        assert plan.rows[0].shapes == "1x6x6x2, 4x3x3x2, 4 -> 1x6x6x4"
        assert plan.rows[0].flops == 2 * 6 * 6 * 4 * 3 * 3 * 2
        assert "wasm was asked for" in str(plan)
        assert json.loads(plan.json())["rows"][0]["backend"] == "wasm"
        assert session.memory().arena >= session.memory().arena_bound > 0
        assert plan._repr_html_() == f"<pre>{html.escape(str(plan))}</pre>"
        assert "<td>input</td><td>image</td><td>float32</td><td>1 x 6 x 6 x 2</td>" in session._repr_html_()


def test_the_profile_is_a_table_json_and_a_picture() -> None:
    with opened() as session:
        profile = run(session.profile({"image": IMAGE}, rounds=1))
        assert len(profile.times_ms) == len(session.plan().rows)
        assert profile.total_ms > 0
        assert json.loads(profile.json())["steps"][0]["ms"] > 0
        assert profile.svg().count("<rect") == 3  # two steps and what is outside them
        assert 0 <= profile.overhead_ms <= profile.run_ms == json.loads(profile.json())["run_ms"]
        assert "GFLOP/s" in str(profile)


def test_a_profile_says_what_share_of_the_devices_peak_each_step_reaches() -> None:
    with opened() as session:
        profile = run(session.profile({"image": IMAGE}, rounds=1))
        again = run(session.profile({"image": IMAGE}, rounds=1))
    peaks = profile.peaks["wasm"]
    assert again.peaks["wasm"].copies is peaks.copies  # of the device, measured once
    assert peaks.gflops > 0.1
    assert [nbytes for nbytes, _ in peaks.copies] == [1 << 17, 1 << 21, 1 << 25]
    assert all(least > 0 for least in profile.least_ms)
    assert [step["least_ms"] for step in json.loads(profile.json())["steps"]] == profile.least_ms
    assert "of peak" in str(profile)
    assert f"wasm reaches {peaks.gflops:.1f} GFLOP/s" in str(profile)


def test_the_least_time_of_a_step_is_that_of_what_bounds_it() -> None:
    peaks = Peaks(50.0, ((1000, 0.001), (3000, 0.005), (9000, 0.05)))

    def row(flops: int, nbytes: int) -> PlanRow:
        return PlanRow(0, "step", "conv2d", "wasm", "kernel", "", flops, nbytes, "")

    times = {500: 0.0005, 1000: 0.001, 2000: 0.003, 6000: 0.0275, 18000: 0.1}  # between copies, and beyond them
    assert {nbytes: round(peaks.least_ms(row(0, nbytes)), 9) for nbytes in times} == times
    assert peaks.least_ms(row(1_000_000, 1000)) == pytest.approx(0.02)
    assert [peaks.bound(row(flops, 1000)) for flops in (1_000_000, 10)] == ["arithmetic", "memory"]
    assert Peaks(0.0, ()).least_ms(row(10**9, 10**9)) == 0


def test_no_step_takes_less_than_the_least_time() -> None:
    timed = Peaks(50.0, ((1000, 0.001),))  # while the device was busy
    rows = [
        PlanRow(i, "step", "conv2d", "wasm", "kernel", "", flops, 1000, "") for i, flops in enumerate((10**7, 10**6))
    ]
    times = [0.1, 0.001]
    peaks = timed.raised(zip(rows, times, strict=True))
    assert peaks.gflops == pytest.approx(100)  # the second is too short to tell
    assert timed.raised([(rows[0], 1.0)]) is timed
    assert timed.raised([(dataclasses.replace(rows[0], saves=True), 0.1)]) is timed
    assert Peaks(0.0, ()).raised([(rows[0], 1.0)]).gflops == 0
    profile = Profile("model", "wasm", rows, times, 0.2, 0.1, {"wasm": peaks})
    assert profile.least_ms == pytest.approx([0.1, 0.001])


def test_the_time_of_a_step_does_not_hold_what_a_call_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened() as session:
        kernels = session.executor.kernels
        call = type(kernels).run

        def slow(self: Any, program: int, first: int, count: int) -> None:
            time.sleep(0.01)
            call(self, program, first, count)

        monkeypatch.setattr(type(kernels), "run", slow)
        assert max(run(session.executor.profile({"image": memoryview(IMAGE.tobytes())}, 3))) < 2.5


def test_verify_finds_no_difference_and_names_one_when_there_is() -> None:
    with opened() as session:
        report = run(session.verify("reference"))
        assert report.ok, report
        executor = session.executor
        assert isinstance(executor, WasmExecutor)
        at = executor.layout.outputs[0].address
        original = executor._call

        def spoiled(kernels: Any, first: int, count: int) -> None:
            original(kernels, first, count)
            kernels.write(at, np.float32([1e6]).tobytes())

        executor._call = spoiled  # type: ignore[method-assign]
        report = run(session.verify("reference"))
    assert not report.ok
    assert report.first is not None
    assert report.first.op == "max_pool2d"
    assert "differ first at" in str(report)


@pytest.mark.parametrize("data", [b"", b"TFL3", b"<!doctype html><title>404</title>", bytes(range(256)) * 4])
def test_a_bad_file_is_refused_and_a_good_one_loads_after_it(data: bytes) -> None:
    with pytest.raises(ModelFormatError):
        run(webinfer.load(data, backend="wasm"))
    opened().close()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelFormatError, match=r"nowhere\.tflite"):
        run(webinfer.load(tmp_path / "nowhere.tflite"))


def test_something_that_is_no_model_is_named() -> None:
    with pytest.raises(ModelFormatError, match="cannot be read from a float"):
        run(webinfer.load(1.5))
    with pytest.raises(ModelFormatError, match="holds no model"):
        run(webinfer.load({}))


@pytest.mark.parametrize(
    ("backend", "message"),
    [("cuda", "no backend is called 'cuda'"), ([], "give one name"), (["auto", "wasm"], "without 'auto'")],
)
def test_a_wrong_backend_is_named(backend: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        opened(backend)


def test_a_backend_that_is_missing_gives_way_with_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    with opened(["webnn", "wasm"]) as session:
        assert session.backend == "wasm"
        assert "webnn" in session.choice
        assert "falls back from webnn" in caplog.text


def test_strict_refuses_to_give_way() -> None:
    with pytest.raises(BackendUnavailableError, match="webnn"):
        opened(["webnn", "wasm"], strict=True)


def test_progress_reports_every_stage(tmp_path: Path) -> None:
    path = tmp_path / "small.tflite"
    path.write_bytes(model())
    seen: list[webinfer.ProgressEvent] = []
    run(webinfer.load(path, backend="wasm", progress=seen.append)).close()
    assert seen[0].stage == "model"
    assert {"compile", "weights"} <= {e.stage for e in seen}
    assert all(e.done <= e.total for e in seen)
    assert [e.done for e in seen if e.stage == "compile"] == [0, 1]


def test_a_trapped_kernel_fails_one_run_and_the_next_has_a_new_instance() -> None:
    with opened() as session:
        want = run(session.run(IMAGE))["y"].numpy()
        trapped = spoil(session, KernelError("trapped"))
        with pytest.raises(KernelError):
            run(session.run(IMAGE))
        np.testing.assert_array_equal(run(session.run(IMAGE))["y"].numpy(), want)
        assert trapped.closed  # its memory is free


def test_a_device_lost_twice_is_left_for_the_next_backend() -> None:
    session = opened(["reference", "wasm"])
    for _ in range(2):
        spoil(session, DeviceLostError("lost"))
        with pytest.raises(DeviceLostError):
            run(session.run(IMAGE))
        assert run(session.run(IMAGE))["y"].shape == (1, 36)
    assert session.backend == "wasm"
    assert session.choice == "wasm, because the GPU was lost 2 times"
    session.close()


@pytest.mark.parametrize(("losses", "choice"), [(1, "wasm was asked for"), (2, "reference, because wasm: lost")])
def test_a_device_lost_while_a_model_is_opened_is_replaced_once_without_asking(
    losses: int, choice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    built, left = selection._built, [losses]

    async def losing(name: str, *rest: Any) -> Any:
        if name == "wasm" and left[0]:
            left[0] -= 1
            raise DeviceLostError("lost")
        return await built(name, *rest)

    monkeypatch.setattr(selection, "_built", losing)
    with opened(["wasm", "reference"]) as session:
        assert run(session.run(IMAGE))["y"].shape == (1, 36)
        assert session.choice.startswith(choice)
    left[0] = 2
    with pytest.raises(DeviceLostError, match="lost"):
        opened(["wasm"])


def test_a_device_lost_between_runs_fails_none_and_counts() -> None:
    with opened(["reference", "wasm"]) as session:
        want = run(session.run(IMAGE))["y"].numpy()
        for backend in ("reference", "wasm"):
            spoil(session, DeviceLostError("not raised"), times=0, lost="unplugged")
            np.testing.assert_allclose(run(session.run(IMAGE))["y"].numpy(), want, rtol=1e-5)
            assert session.backend == backend
        assert "lost 2 times" in session.choice


def test_auto_measures_and_says_what_it_found(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, auto in (("webgpu", False), ("reference", True)):
        monkeypatch.setitem(registry.ROWS, name, dataclasses.replace(registry.ROWS[name], auto=auto))
    with opened("auto") as session:
        assert session.choice.startswith(f"auto chose {session.backend}: measured")
        assert "reference" in session.choice
        assert "wasm" in session.choice


def test_runs_at_the_same_time_are_queued() -> None:
    import asyncio

    async def many(session: Session) -> list[Any]:
        return await asyncio.gather(*(session.run(IMAGE * k) for k in range(6)))

    with opened() as session:
        results = run(many(session))
        for k, outputs in enumerate(results):
            np.testing.assert_array_equal(outputs["y"].numpy(), run(session.run(IMAGE * k))["y"].numpy())


def test_another_size_makes_another_plan_where_the_model_leaves_it_open() -> None:
    draw = np.random.default_rng(1)
    with run(webinfer.load(open_model(), backend="wasm", shapes={"image": (1, 6, 6, 2)})) as session:
        for height, width in ((6, 6), (9, 5), (9, 5), (6, 6)):
            image = draw.normal(size=(1, height, width, 2)).astype(np.float32)
            got = run(session.run({"image": image}))["y"].numpy()
            assert session.inputs[0].shape == image.shape
            with run(webinfer.load(open_model(), backend="reference", shapes={"image": image.shape})) as judge:
                np.testing.assert_allclose(got, run(judge.run(image))["y"].numpy(), atol=1e-5)


def test_a_size_that_does_not_fit_leaves_the_plan_as_it_was() -> None:
    with run(webinfer.load(open_model(), backend="wasm", shapes={"image": (1, 6, 6, 2)})) as session:
        with pytest.raises(InputError, match=r"needs \(1, 6, 6, 2\)"):
            run(session.run(np.zeros((1, 6, 6, 3), np.float32)))
        assert run(session.run(IMAGE))["y"].shape == (1, 6, 6, 4)


def test_a_profile_reports_every_round() -> None:
    events: list[webinfer.ProgressEvent] = []
    with opened() as session:
        run(session.profile(rounds=3, progress=events.append))
    assert [(event.done, event.total) for event in events if event.stage == "profile"] == [(0, 3), (1, 3), (2, 3)]


def test_backends_agree_to_a_thousandth_unless_told_otherwise() -> None:
    with opened() as session:
        assert run(session.verify()).tolerance == 1e-3


def test_a_backend_without_tuning_says_who_has_it() -> None:
    with opened("reference") as session, pytest.raises(InputError, match="runs on reference; only sessions on webgpu"):
        run(session.tune())


@pytest.mark.parametrize(("want", "relative"), [([0.0, 0.0], 0.5), ([2.0, -1.0], 0.5 / 3), ([5.0, 4.5], 0.1)])
def test_a_difference_is_relative_to_the_range_or_else_absolute(want: list[float], relative: float) -> None:
    got = [want[0] + 0.5, want[1]]
    a, b = (webinfer.Tensor(array("f", numbers), (2,), webinfer.DType.FLOAT32) for numbers in (got, want))
    assert distance(a, b) == (0.5, pytest.approx(relative))


def test_a_quantised_model_stays_quantised_unless_told_otherwise() -> None:
    w = Writer()
    x, y = w.input("x", (1, 8), "int8", (0.5, 3)), w.tensor("y", (1, 8), "int8", (0.25, -1))
    w.node("ADD", [x, x], [y])
    data = w.finish(y)
    for options, dtype in (({}, "int8"), ({"dequantize": True}, "float32")):
        with run(webinfer.load(data, backend="wasm", **options)) as session:
            assert str(session.outputs[0].dtype) == dtype


def test_nothing_differs_from_nothing() -> None:
    empty = webinfer.Tensor(b"", (0, 3), webinfer.DType.FLOAT32)
    assert distance(empty, empty) == (0.0, 0.0)


def test_random_inputs_are_the_same_in_every_call_and_on_both_sides_of_zero() -> None:
    infos = [TensorInfo("x", webinfer.DType.FLOAT32, (1000,), None)]
    numbers = np.frombuffer(random_inputs(infos)["x"], np.float32)
    assert (-1 <= numbers.min() < -0.9, 0.9 < numbers.max() < 1) == (True, True)
    np.testing.assert_array_equal(np.frombuffer(random_inputs(infos)["x"], np.float32), numbers)


def test_infinities_are_no_part_of_a_range() -> None:
    infinity = float("inf")
    a, b = (webinfer.Tensor(array("f", row), (2,), webinfer.DType.FLOAT32) for row in ([infinity, 1.5], [infinity, 1]))
    assert distance(a, b) == (0.5, 0.5)
