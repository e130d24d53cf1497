"""Our graphs through MLGraphBuilder: the same numbers as without, and refusals by the context's limits."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.webnn.stand_in import StandIn

import webinfer
from webinfer.backends import registry
from webinfer.backends.webnn import LOWERINGS, UNSUPPORTED
from webinfer.errors import UnsupportedOpError
from webinfer.host.native import NativeHost
from webinfer.ops import OPS
from webinfer.session.loading import load

ROOT = Path(__file__).resolve().parents[4]


class Host(NativeHost):
    """CPython with a context of WebNN."""

    def __init__(self, ml: StandIn) -> None:
        super().__init__()
        self.ml = ml

    async def webnn(self, device: str = "") -> Any:
        self.ml.origin = f"the test's own, for {device or 'any device'}"
        return self.ml


async def _both(model: Any, ml: StandIn, **options: Any) -> tuple[Any, float]:
    host = Host(ml)
    with await load(model, backend="webnn", host=host, **options) as session:
        options.pop("device", None)
        with await load(model, backend="wasm", threads=1, tuning_ms=0, host=host, **options) as other:
            inputs = session.noise(1)
            got, want = await session.run(inputs), await other.run(inputs)
            worst = max(abs(a - b) for name in want for a, b in zip(got[name].flat(), want[name].flat(), strict=True))
            return session.plan(), worst


def test_blazeface_gives_the_same_numbers() -> None:
    plan, worst = asyncio.run(_both("blazeface_short_range", StandIn(), device="low-power"))
    assert plan.backend == "webnn"
    assert worst < 1e-4
    assert "device='low-power' was asked for" in plan.choice
    assert plan.rows[0].why == "the test's own, for low-power"
    assert {row.kernel for row in plan.rows if row.op == "depthwise_conv2d"} >= {"cast cast conv2d"}


def _small() -> webinfer.GraphBuilder:
    g = webinfer.GraphBuilder("small")
    x = g.input("x", (1, 8, 8, 4))
    y = g.node("conv2d", x, g.constant([0.1] * 144, (4, 3, 3, 4)), None, pads=(1, 1, 1, 1), activation="hard_swish")
    z = g.node("softmax", g.node("reshape", g.node("tanh", y), shape=(64, 4)), axis=1, beta=2.0)
    g.output(g.node("mul", z, g.node("sigmoid", z)), "z")
    return g


def test_what_the_limits_leave_out_runs_elsewhere_and_the_plan_says_why() -> None:
    ml = StandIn(without=["tanh", "softmax"])
    plan, worst = asyncio.run(_both(_small(), ml))
    assert plan.backend == "webnn+wasm"
    assert worst < 1e-6
    reasons = {row.op: row.why for row in plan.rows if row.backend == "wasm"}
    assert "this context has no tanh" in reasons["tanh"]
    assert "this context has no softmax" in reasons["softmax"]
    assert not {"tanh", "softmax"} & {name for calls in ml.builders for name in calls.called}


MOBILENET = ROOT.parent / "shared" / "models" / "mobilenet_v2_100_224_quant.tflite"


@pytest.mark.skipif(not MOBILENET.is_file(), reason="MobileNet v2 is not beside the checkout")
def test_mobilenet_gives_the_same_numbers() -> None:
    plan, worst = asyncio.run(_both(MOBILENET.read_bytes(), StandIn(), dequantize=True))
    assert plan.backend == "webnn"
    assert worst < 1e-4
    assert any("dequantizeLinear" in row.kernel for row in plan.rows)


def test_every_operator_is_called_or_refused_with_a_reason() -> None:
    assert not LOWERINGS.keys() & UNSUPPORTED.keys()
    assert {*LOWERINGS, *UNSUPPORTED} == {*OPS.values()}


def test_element_types_are_held_to_the_limits() -> None:
    ml = StandIn()
    ml.limits["input"]["dataTypes"] = ["float16"]
    with pytest.raises(UnsupportedOpError, match="no input of type float32"):
        asyncio.run(load(_small(), backend="webnn", host=Host(ml), strict=True))


def test_an_unknown_kind_of_device_is_refused() -> None:
    with pytest.raises(webinfer.InputError, match="low-power"):
        asyncio.run(webinfer.load("blazeface_short_range", device="fast"))
    assert registry.taking("device") == ["webgpu", "webnn"]
