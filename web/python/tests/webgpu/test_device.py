"""The backend on a real adapter: other limits, other heuristics, errors, losses, looking inside."""

from __future__ import annotations

import asyncio
import os
import struct
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import Target as RingTarget
from tests.webgpu.disguised import HOST, Disguised, HostWith, assert_right, disguised
from tests.webgpu.extra_cases import EXTRA
from tests.webgpu.test_lowered_cases import is_refused
from tests.webgpu.test_schedule import relu, weights

from webinfer.backends import webgpu
from webinfer.backends.base import PlanEntry
from webinfer.backends.webgpu import compilation
from webinfer.backends.webgpu import executor as executor_module
from webinfer.backends.webgpu.lowerings import recurrent
from webinfer.dtypes import DType
from webinfer.errors import (
    BackendUnavailableError,
    ClosedError,
    DeviceLostError,
    GpuError,
    OutOfMemoryError,
    UnsupportedOpError,
)
from webinfer.graph.ir import Case, Constant, Graph, Op, Sparsity, TensorType, Value, apply
from webinfer.host.gpu import GpuOffer, PipelineSpec, Span
from webinfer.ops import OPS
from webinfer.ops.conv import Conv2dAttrs
from webinfer.ops.elementwise import BinaryAttrs
from webinfer.ops.gather import GatherAttrs
from webinfer.ops.matmul import MatmulAttrs
from webinfer.session.selection import LoadOptions, choose

TESTS = Path(__file__).parents[1]
KERNELS_WITH_CHOICES = (
    "conv2d",
    "depthwise_conv2d",
    "conv_transpose2d",
    "matmul",
    "add",
    "concat",
    "softmax",
    "transpose",
)


@pytest.fixture(autouse=True)
def _adapter() -> None:
    RingTarget("webgpu").demand()


@pytest.mark.parametrize(("op", "case"), [pytest.param(op, case, id=f"{op.name}-{case.label}") for op, case in EXTRA])
def test_shaders_that_no_operators_case_reaches(op: Op, case: Case) -> None:
    assert_right(op, [case], HOST)
    assert_right(op, [case], disguised())
    assert_right(op, [case], disguised(features=frozenset()))


@pytest.mark.parametrize("name", KERNELS_WITH_CHOICES)
def test_folded_dispatches_and_the_other_heuristics_give_the_same(name: str) -> None:
    assert_right(OPS[name], [case for case in OPS[name].cases if not is_refused(OPS[name], case)], disguised())


@pytest.mark.parametrize("limit", ["MOST_SHARED", "MAX_TURNS"])
def test_recurrent_layers_go_on_where_a_dispatch_ends(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that no workgroup holds go step by step; where loops end early, a few steps at a time."""
    monkeypatch.setattr(recurrent, limit, 90 if limit == "MAX_TURNS" else 0)
    assert_right(OPS["recurrent"], OPS["recurrent"].cases, HOST)


def test_sparse_constants_are_spread_right() -> None:
    rng = np.random.default_rng(3)
    dense = rng.normal(size=(6, 8)).astype(np.float16)
    dense[rng.uniform(size=(6, 8)) < 0.7] = 0
    segments, indices, stored = [0], [], []
    for row in dense:
        (columns,) = np.nonzero(row)
        indices += columns.tolist()
        stored += row[columns].tolist()
        segments.append(len(indices))
    sparsity = Sparsity((0, 1), (), (("dense", 6), ("csr", tuple(segments), tuple(indices))))
    data = memoryview(np.array(stored, np.float16).tobytes())
    w = Value("w", TensorType((6, 8)), Constant(data, DType.FLOAT16, sparsity))
    assert np.array_equal(_sum_with(w), dense.astype(np.float32))


def test_sparse_blocks_are_spread_right() -> None:
    """4x1 blocks along the first axis, as TFLite stores pruned 1x1 convolutions."""
    dense = np.arange(32, dtype=np.float32).reshape(8, 4)
    dense[0:4, [1, 3]] = 0
    dense[4:8, [0, 1]] = 0
    stored = np.concatenate([dense[0:4, 0], dense[0:4, 2], dense[4:8, 2], dense[4:8, 3]])
    formats = (("dense", 2), ("csr", (0, 2, 4), (0, 2, 2, 3)), ("dense", 4))
    sparsity = Sparsity((0, 1, 2), (0,), formats)
    w = Value("w", TensorType((8, 4)), Constant(memoryview(stored.tobytes()), DType.FLOAT32, sparsity))
    assert np.array_equal(_sum_with(w), dense)


def _sum_with(w: Value) -> Any:
    x = Value("x", w.type)
    total = apply(OPS["add"], [x, w], BinaryAttrs(), "add")
    executor = run(webgpu.build(Graph("g", [x], total.outputs, [total]), HOST))
    found = run(executor.run({"x": memoryview(bytes(w.type.nbytes))}))
    executor.close()
    return found[total.output.name].numpy()


def small_net() -> Graph:
    x = Value("x", TensorType((1, 5, 6, 8)))
    conv = apply(OPS["conv2d"], [x, weights("w", (8, 1, 1, 8), DType.FLOAT16)], Conv2dAttrs(), "conv")
    last = relu(conv.output, "last")
    return Graph("small", [x], last.outputs, [conv, last])


INPUT = {"x": memoryview(np.linspace(-1, 1, 240, dtype=np.float32).tobytes())}


def test_probe_gives_every_result_and_the_last_is_the_runs() -> None:
    executor = run(webgpu.build(small_net(), HOST))

    async def probe() -> list[tuple[str, bytes]]:
        return [(node.label, tensor.tobytes()) async for node, _, tensor in executor.probe(INPUT)]

    seen = run(probe())
    assert [label for label, _ in seen] == ["conv", "last"]
    assert seen[1][1] == run(executor.run(INPUT))["last"].tobytes()
    assert np.array_equal(np.maximum(np.frombuffer(seen[0][1], np.float32), 0), np.frombuffer(seen[1][1], np.float32))


def test_rows_and_times_go_together() -> None:
    executor = run(webgpu.build(small_net(), HOST))
    rows, times = executor.rows(), run(executor.profile(INPUT, 2))
    assert [row.kernel for row in rows] == ["conv2d_1x1_vec4", "elementwise_unary"]
    assert len(times) == len(rows)
    assert all(t >= 0 for t in times)
    memory = executor.memory()
    assert memory.arena >= memory.arena_bound > 0
    assert memory.constants == 8 * 8 * 4


def test_a_dispatch_is_timed_as_often_as_it_must_be_to_last(monkeypatch: pytest.MonkeyPatch) -> None:
    executor = run(webgpu.build(small_net(), HOST))
    takes, asked = (3.0, 0.01), (list[int](), list[int]())  # ms of each dispatch, once
    begin: list[int] = []

    async def time(_: object, first: int, count: int, repeats: int) -> float:
        if not count:
            begin.append(first)
            return 0.0
        asked[first - begin[0]].append(repeats)
        return takes[first - begin[0]]

    monkeypatch.setattr("webinfer.host.gpu_native_program.NativeProgram.time", time)
    assert run(executor.profile(INPUT, 1)) == pytest.approx([3.0, 0.01])
    assert asked == ([1], [1, 8, 64, 240])


def test_results_do_not_depend_on_earlier_runs() -> None:
    executor = run(webgpu.build(small_net(), HOST))
    first = run(executor.run(INPUT))["last"].tobytes()
    run(executor.run({"x": memoryview(bytes(960))}))
    assert run(executor.run(INPUT))["last"].tobytes() == first


class Opening(HostWith):
    """A host that says what its device will be, with other facts where these are given."""

    def __init__(self, late_s: float = 0.0, **facts: Any) -> None:
        super().__init__(run(HOST.gpu()))
        self._late_s, self._facts = late_s, facts

    async def gpu(self) -> Any:
        await asyncio.sleep(self._late_s)
        return await super().gpu()

    async def gpu_offer(self) -> GpuOffer:
        device = await HOST.gpu()
        limits = {**device.limits, **self._facts.get("limits", {})}
        offer = GpuOffer(device.name, device.runtime, device.software, device.features, limits)
        return replace(offer, **{**self._facts, "limits": limits})

    async def remember_bytes(self, name: str, data: bytes) -> None:
        """Keeps nothing."""


OTHERS = ({"limits": {"maxStorageBuffersPerShaderStage": 4}}, {"features": frozenset()}, {"name": "another"})


@pytest.mark.parametrize("late_s", [0.0, 0.3])
@pytest.mark.parametrize("facts", [{}, *OTHERS])
def test_a_graph_is_lowered_while_the_device_is_opened_and_again_if_that_becomes_another(
    facts: dict[str, Any], late_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    again: list[Any] = []
    make = executor_module.make_schedule
    monkeypatch.setattr(executor_module, "make_schedule", lambda *given: (again.append(given[1]), make(*given))[1])
    executor = run(compilation.opened(small_net(), Opening(late_s, **facts), tuning_ms=0, entry=PlanEntry("small")))
    assert [target.limits for target in again] == ([run(HOST.gpu()).limits] if facts else [])
    plain = run(webgpu.build(small_net(), HOST))
    assert run(executor.run(INPUT))["last"].tobytes() == run(plain.run(INPUT))["last"].tobytes()
    assert [row.kernel for row in executor.rows()] == [row.kernel for row in plain.rows()]


def test_a_device_that_cannot_be_had_says_why() -> None:
    class Refusing(Opening):
        async def gpu(self) -> Any:
            raise BackendUnavailableError("webgpu: no device")

    with pytest.raises(BackendUnavailableError, match="no device"):
        run(compilation.opened(small_net(), Refusing(), tuning_ms=0, entry=PlanEntry("small")))


def test_what_no_device_can_run_is_refused_with_its_device() -> None:
    bad = small_net()
    bad.inputs[0] = bad.nodes[0].inputs[0] = Value("q", TensorType((1, 5, 6, 8), DType.INT8))
    with pytest.raises(UnsupportedOpError, match="conv"):
        run(compilation.opened(bad, Opening(), tuning_ms=0, entry=PlanEntry("bad")))


def test_equal_kernels_of_two_models_share_a_pipeline() -> None:
    device = run(HOST.gpu())
    run(webgpu.build(small_net(), HOST))
    before = len(device._pipelines)
    run(webgpu.build(small_net(), HOST))
    assert len(device._pipelines) == before


def test_a_closed_session_says_so() -> None:
    executor = run(webgpu.build(small_net(), HOST))
    executor.close()
    executor.close()
    with pytest.raises(ClosedError, match="'small' is closed"):
        run(executor.run(INPUT))


def test_a_broken_shader_is_named_and_the_device_stays_usable() -> None:
    device = run(HOST.gpu())
    with pytest.raises(GpuError, match="shader broken"):
        device.start_pipelines([PipelineSpec("broken", "fn main() { this is not WGSL }", ())])
    executor = run(webgpu.build(small_net(), HOST))
    assert run(executor.run(INPUT))["last"].shape == (1, 5, 6, 8)


def test_buffers_beyond_all_memory_are_a_typed_error_and_a_smaller_model_runs() -> None:
    device = run(HOST.gpu())
    with pytest.raises((OutOfMemoryError, GpuError)):
        run(device.program("huge", [1 << 44], b"", []))
    assert run(run(webgpu.build(small_net(), HOST)).run(INPUT))


def test_readback_gives_the_bytes_that_were_written() -> None:
    device = run(HOST.gpu())
    program = run(device.program("echo", [32, 16], b"", []))
    program.write(0, struct.pack("<5f", 1, 2, 3, 4, 5))
    program.write(1, b"\x01\x02\x03")
    data = run(program.run(0, 0, [Span(0, 4, 8), Span(1, 0, 3)]))
    assert [bytes(d) for d in data] == [struct.pack("<2f", 2, 3), b"\x01\x02\x03"]
    program.close()


class Losing:
    """A device that is lost in the run after `good` good ones."""

    def __init__(self, device: Any, good: int) -> None:
        self._device, self._good, self.lost = device, good, ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    async def program(self, *args: Any) -> Any:
        real = await self._device.program(*args)
        return Disguised(real, run=self._run(real))

    def _run(self, real: Any) -> Any:
        async def run_or_lose(first: int, count: int, reads: Sequence[Span], inputs: Any = ()) -> list[memoryview]:
            if reads:
                self._good -= 1
            if self._good < 0:
                self.lost = "unknown: pulled out"
                raise DeviceLostError(self.lost)
            found: list[memoryview] = await real.run(first, count, reads, inputs)
            return found

        return run_or_lose


def test_a_loss_fails_the_run_in_flight_and_the_next_one_is_restored_once() -> None:
    device = run(HOST.gpu())
    host = HostWith(Losing(device, 1), Losing(device, 1))
    executor = run(webgpu.build(small_net(), host))
    first = run(executor.run(INPUT))["last"].tobytes()
    with pytest.raises(DeviceLostError, match="pulled out"):
        run(executor.run(INPUT))
    assert run(executor.run(INPUT))["last"].tobytes() == first
    with pytest.raises(DeviceLostError, match="pulled out"):
        run(executor.run(INPUT))
    with pytest.raises(DeviceLostError, match="lost again"):
        run(executor.run(INPUT))


@pytest.mark.parametrize("bits", [128, 512])
def test_subgroups_of_other_sizes_give_the_same(bits: int) -> None:
    """Mesa's software driver makes subgroups of as many invocations as its vectors have elements, usually eight."""
    if "llvmpipe" not in str(run(HOST.gpu()).name):
        pytest.skip("only Mesa's software driver can be told how large its subgroups are")
    code = (
        "from tests.webgpu.extra_cases import SHARED\n"
        "from tests.webgpu.disguised import assert_right, disguised\n"
        "for op, case in SHARED: assert_right(op, [case], disguised())\n"
    )
    environment = {**os.environ, "LP_NATIVE_VECTOR_WIDTH": str(bits)}
    subprocess.run([sys.executable, "-c", code], cwd=TESTS.parent, env=environment, check=True, timeout=120)


def test_what_reads_a_table_too_large_for_a_binding_runs_on_wasm() -> None:
    rng = np.random.default_rng(11)
    table, w = rng.normal(size=(300, 32)).astype(np.float32), rng.normal(size=(32, 8)).astype(np.float32)
    ids = Value("ids", TensorType((5,), DType.INT32))
    constants = [Value(n, TensorType(a.shape), Constant(memoryview(a.tobytes()), DType.FLOAT32)) for n, a in
                 (("table", table), ("w", w))]  # fmt: skip
    rows = apply(OPS["gather"], [constants[0], ids], GatherAttrs(0))
    node = apply(OPS["matmul"], [rows.output, constants[1]], MatmulAttrs())
    graph = Graph("g", [ids], node.outputs, [rows, node])
    device = run(HOST.gpu())
    host = HostWith(Disguised(device, limits={**device.limits, "maxStorageBufferBindingSize": 1 << 15}))
    found = run(choose(graph, host, ["webgpu", "wasm"], LoadOptions()))
    assert found.executor.backend == "wasm+webgpu"
    assert "'table' has 38400 bytes, a binding of this device at most 32768" in found.reason
    (y,) = run(found.executor.run({"ids": memoryview(np.arange(5, dtype=np.int32).tobytes())})).values()
    np.testing.assert_allclose(y.numpy(), table[:5] @ w, rtol=1e-5, atol=1e-5)  # sums of 32 near 1, in another order
    found.executor.close()
