"""Tuning on a real adapter: right results, what is remembered, shipped, damaged, rejected or lost."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import Target as RingTarget
from tests.session.models import opened
from tests.webgpu.disguised import Disguised

from webinfer import GraphBuilder, load
from webinfer.backends import webgpu
from webinfer.backends.webgpu import tuning
from webinfer.backends.webgpu.default_tunings import DATA, adapter_class, default_tunings
from webinfer.backends.webgpu.executor import WebGpuExecutor
from webinfer.backends.webgpu.fusion import SEPARATE
from webinfer.backends.webgpu.tuning import Tuner, about, export_log, import_log, recall, remember
from webinfer.dtypes import DType
from webinfer.errors import DeviceLostError, ModelFormatError, UnsupportedOpError
from webinfer.graph.ir import Constant, Graph, TensorType, Value, apply
from webinfer.host.interface import ProgressEvent
from webinfer.host.native import NativeHost
from webinfer.ops import OPS
from webinfer.ops.conv import Conv2dAttrs
from webinfer.tune.log import Log, Verdict
from webinfer.tune.search import Winner

DEVICE_HOST = NativeHost()
SHAPES = 3  # of `graph()`
TOLERANCE = 1e-3  # results reach 100; kernels add in different orders


@pytest.fixture(autouse=True)
def _adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    RingTarget("webgpu").demand()
    monkeypatch.setattr(tuning, "MIN_MS", 0.2)  # what is tested here is not which kernel is faster


class Memory:
    """The native host with a memory of its own."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    async def recall(self, name: str) -> str | None:
        return self.kept.get(name)

    async def remember(self, name: str, text: str) -> None:
        self.kept[name] = text

    def __getattr__(self, name: str) -> Any:
        return getattr(DEVICE_HOST, name)


def constant(name: str, *shape: int) -> Value:
    data = np.random.default_rng(len(name)).normal(size=shape).astype(np.float32)
    return Value(name, TensorType(shape), Constant(memoryview(data.tobytes()), DType.FLOAT32))


def graph() -> Graph:
    """Two 1x1 convolutions of one shape, a 3x3 one and a depthwise one."""
    x = Value("x", TensorType((1, 9, 9, 8)))
    first = apply(OPS["conv2d"], [x, constant("a", 8, 1, 1, 8)], Conv2dAttrs(), "first")
    second = apply(OPS["conv2d"], [first.output, constant("bb", 8, 1, 1, 8)], Conv2dAttrs(), "second")
    pads = Conv2dAttrs(pads=(1, 1, 1, 1))
    third = apply(OPS["conv2d"], [second.output, constant("ccc", 12, 3, 3, 8)], pads, "third")
    groups = Conv2dAttrs(pads=(1, 1, 1, 1), groups=12)
    last = apply(OPS["depthwise_conv2d"], [third.output, constant("dddd", 1, 3, 3, 12)], groups, "last")
    return Graph("small", [x], last.outputs, [first, second, third, last])


X = np.random.default_rng(9).normal(size=(1, 9, 9, 8)).astype(np.float32)


def outputs_of(executor: WebGpuExecutor) -> np.ndarray:
    (tensor,) = run(executor.run({"x": memoryview(X.tobytes())})).values()
    return np.array(tensor.tolist(), np.float32)


def build(host: Any, **options: Any) -> WebGpuExecutor:
    executor: WebGpuExecutor = run(webgpu.build(graph(), host, **options))
    return executor


def origins(executor: WebGpuExecutor) -> list[str]:
    return [row.why.rpartition("; ")[2] for row in executor.rows()]


def recall_empty(host: Any) -> Log:
    return Log(about(run(host.gpu())))


def tuner(host: Any) -> Tuner:
    device = run(host.gpu())
    return Tuner(graph(), host, device, run(recall(host, device)))


def other_choices(host: Any) -> dict[str, str]:
    """For each shape the candidate that the default is not."""
    return {key: shape.names[-1] for key, shape in tuner(host).shapes.items()}


def plant(host: Any, choices: dict[str, str], kept: bool | None = None) -> None:
    """A log in which these choices won."""
    found = tuner(host)
    log = found.log
    log.winners |= {key: Winner(key, choice, 1.0, 2.0) for key, choice in choices.items()}
    if kept is not None:
        log.verdicts[found.plan] = Verdict(found.plan, "small", 2.0, 1.0, len(choices), kept)
    run(remember(host, found.device, log))


def test_tuning_times_every_shape_once_and_results_stay_right() -> None:
    host, heard = Memory(), list[ProgressEvent]()
    want = outputs_of(build(host))
    tuned = build(host, tuning_ms=60_000.0, progress=heard.append)
    np.testing.assert_allclose(outputs_of(tuned), want, atol=TOLERANCE)
    report = tuned.tuning
    assert report is not None
    assert (report.timed, report.known, report.shapes) == (SHAPES, 0, SHAPES)
    assert report.verdict.default_ms > 0
    steps = [(e.done, e.total) for e in heard if e.stage == "tune"]
    assert steps[0] == (0, SHAPES)
    assert steps[-1] == (SHAPES, SHAPES)
    again = build(host, tuning_ms=60_000.0).tuning
    assert again is not None
    assert (again.timed, again.known, again.verdict) == (0, SHAPES, report.verdict)


def test_what_was_found_is_applied_at_load_and_the_plan_says_so() -> None:
    host = Memory()
    assert set(origins(build(host))) == {"default"}
    want = outputs_of(build(host))
    plant(host, other_choices(host), kept=True)
    tuned = build(host)
    assert set(origins(tuned)) == {"tuned"}
    assert [row.kernel for row in tuned.rows()] != [row.kernel for row in build(Memory()).rows()]
    np.testing.assert_allclose(outputs_of(tuned), want, atol=TOLERANCE)


def test_with_a_budget_of_nothing_the_defaults_run() -> None:
    host = Memory()
    plant(host, other_choices(host), kept=True)
    assert set(origins(build(host, tuning_ms=0.0))) == {"default"}


def test_times_without_timestamps_come_from_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    executor = build(Memory())
    device = run(DEVICE_HOST.gpu())
    monkeypatch.setattr(type(device), "timer", lambda self: None)
    assert 0 < run(executor.elapsed(50)) < 60_000


def test_a_plan_that_lost_to_the_default_is_not_used() -> None:
    host = Memory()
    plant(host, other_choices(host), kept=False)
    assert set(origins(build(host))) == {"default"}


def test_choices_that_do_not_exist_are_ignored() -> None:
    host = Memory()
    plant(host, dict.fromkeys(other_choices(host), "kernel_of_tomorrow"), kept=True)
    assert set(origins(build(host))) == {"default"}


def test_a_damaged_memory_costs_nothing_but_its_lines() -> None:
    host = Memory()
    plant(host, other_choices(host), kept=True)
    (name,) = host.kept
    whole = host.kept[name]
    want = outputs_of(build(Memory()))
    for text in (
        "",
        "{",
        "\x00" * 50,
        whole[: len(whole) // 2],
        whole.replace('"choice"', '"chioce"'),
        "[1]\n" + whole,
    ):
        host.kept[name] = text
        np.testing.assert_allclose(outputs_of(build(host)), want, atol=TOLERANCE)
    assert set(origins(build(host))) == {"tuned"}, "the good lines of the last text count"
    host.kept[name] = "{"
    report = build(host, tuning_ms=60_000.0).tuning
    assert report is not None
    assert report.timed == SHAPES


def test_a_slower_plan_never_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Memory()
    plant(host, other_choices(host))
    real = WebGpuExecutor.elapsed

    async def elapsed(self: WebGpuExecutor, repeats: int) -> float:
        slower = 2.0 if "tuned" in origins(self) else 1.0
        return slower * (await real(self, repeats))

    monkeypatch.setattr(WebGpuExecutor, "elapsed", elapsed)
    executor = build(host, tuning_ms=60_000.0)
    assert executor.tuning is not None
    assert not executor.tuning.verdict.kept
    assert executor.tuning.gain == 0
    assert set(origins(executor)) == {"default"}
    assert set(origins(build(host))) == {"default"}, "and at the next load neither"


def test_a_device_lost_while_tuning_leaves_the_default_and_the_shape_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Memory()

    async def elapsed(self: WebGpuExecutor, repeats: int) -> float:
        raise DeviceLostError("the watchdog bites")

    with monkeypatch.context() as patch:
        patch.setattr(WebGpuExecutor, "elapsed", elapsed)
        executor = build(host, tuning_ms=60_000.0)
    assert executor.tuning is None
    assert outputs_of(executor).size
    report = build(host, tuning_ms=60_000.0).tuning
    assert report is not None
    assert (report.known, report.timed) == (1, SHAPES - 1)


def test_the_model_is_refused_before_anything_is_timed() -> None:
    host = Memory()
    bad = graph()
    bad.inputs[0] = bad.nodes[0].inputs[0] = Value("q", TensorType((1, 9, 9, 8), DType.INT8))
    with pytest.raises(UnsupportedOpError):
        run(webgpu.build(bad, host, tuning_ms=60_000.0))
    assert not host.kept


class Hardware(Memory):
    """A host whose adapter says that it is not software, so that nodes are fused."""

    async def gpu(self) -> Any:
        return Disguised(await DEVICE_HOST.gpu(), software=False)


def fusable() -> Graph:
    """A depthwise convolution, the 1x1 one of it, and one more."""
    x = Value("x", TensorType((1, 9, 9, 8)))
    pads = Conv2dAttrs(pads=(1, 1, 1, 1), groups=8)
    first = apply(OPS["depthwise_conv2d"], [x, constant("a", 1, 3, 3, 8)], pads, "first")
    second = apply(OPS["conv2d"], [first.output, constant("bb", 16, 1, 1, 8)], Conv2dAttrs(), "second")
    last = apply(OPS["conv2d"], [second.output, constant("ccc", 8, 3, 3, 16)], Conv2dAttrs(), "last")
    return Graph("fusable", [x], last.outputs, [first, second, last])


def test_fused_nodes_are_one_choice_and_their_own_kernels_matter_only_apart() -> None:
    host = Hardware()
    default = run(webgpu.build(fusable(), host))
    assert next(row.kernel for row in default.rows()) == "depthwise_pointwise"
    tuner = Tuner(fusable(), host, run(host.gpu()), run(recall(host, run(host.gpu()))))
    (fused,) = [key for key, shape in tuner.shapes.items() if len(shape.nodes) == 2]
    for name, timed in ((tuner.shapes[fused].names[0], 1), (SEPARATE, 3)):
        log = recall_empty(host)
        log.winners[fused] = Winner(fused, name, 1.0, 1.0, name)
        run(remember(host, run(host.gpu()), log))
        executor = run(webgpu.build(fusable(), host, tuning_ms=60_000.0))
        assert executor.tuning is not None
        assert (executor.tuning.timed, executor.tuning.known) == (timed, 1)
        np.testing.assert_allclose(outputs_of(executor), outputs_of(default), atol=TOLERANCE)


def test_logs_travel_between_hosts_of_one_kind() -> None:
    here, there = Memory(), Memory()
    plant(here, other_choices(here), kept=True)
    text = run(export_log(here))
    assert {json.loads(line)["adapter"] for line in text.splitlines()} == {run(here.gpu()).name}
    assert len(run(import_log(there, text)).winners) == SHAPES
    assert set(origins(build(there))) == {"tuned"}
    foreign = text.replace(json.dumps(run(here.gpu()).name), '"another GPU"')
    assert run(import_log(there, foreign)).skipped == SHAPES + 1
    with pytest.raises(ModelFormatError, match="line 2"):
        run(import_log(there, text.splitlines()[0] + "\n{"))


def test_shipped_choices_come_before_defaults_and_after_tuned_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Memory()
    choices = other_choices(host)
    key = next(iter(choices))
    monkeypatch.setattr(tuning, "default_tunings", lambda name, software: {key: choices[key], "of another": "x"})
    assert set(origins(build(host))) == {"default", "shipped"}
    plant(host, {key: choices[key]})
    assert set(origins(build(host))) == {"default", "tuned"}


@pytest.mark.parametrize(
    ("name", "software", "expected"),
    [
        ("nvidia hopper NVIDIA H200", False, "nvidia"),
        ("NVIDIA GeForce RTX 4090", False, "nvidia"),
        ("apple metal-3", False, "apple"),
        ("intel gen-12lp Intel(R) Iris(R) Xe Graphics", False, "intel"),
        ("amd rdna-3 AMD Radeon RX 7900", False, "amd"),
        ("qualcomm adreno-7xx", False, "qualcomm"),
        ("google swiftshader", True, "software"),
        ("arm valhall", False, ""),
    ],
)
def test_adapters_have_a_class(name: str, software: bool, expected: str) -> None:
    assert adapter_class(name, software) == expected


def test_every_shipped_class_says_whether_it_was_measured() -> None:
    assert set(DATA) == {"nvidia", "apple", "intel", "amd", "qualcomm", "software"}
    for name, entry in DATA.items():
        assert entry["measured"] or not entry["choices"], name
    assert default_tunings("arm valhall", False) == {}


def test_a_session_tells_how_far_its_tuning_is() -> None:
    heard = list[ProgressEvent]()
    builder = GraphBuilder("product")
    weights = np.random.default_rng(2).normal(size=(64, 96)).astype(np.float32)
    builder.output(builder.node("matmul", builder.input("x", (48, 64)), weights), "y")
    with run(load(builder, backend="webgpu", strict=True)) as session:
        run(session.tune(budget_ms=0.0, progress=heard.append))
        again = run(session.tune(budget_ms=0.0))
    assert "tune" in {event.stage for event in heard}
    assert again.shapes == 1


def test_any_session_gives_what_was_found_on_this_device() -> None:
    with opened("webgpu", strict=True) as session:
        run(session.tune(budget_ms=0.0))
        found = run(session.export_tuning())
    assert found
    with opened("wasm") as session:
        assert run(session.export_tuning()) == found
