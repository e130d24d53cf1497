"""The real device as others would be: with other limits and features, so that other kernels are chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.ops.case_graphs import difference, outcomes, problem, run

from webinfer.backends import webgpu
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Case, Op
from webinfer.host.native import NativeHost

HOST = NativeHost()


class Disguised:
    """The real device with other facts about it."""

    def __init__(self, device: Any, **facts: Any) -> None:
        self._device = device
        self.__dict__.update(facts)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)


class HostWith:
    """The native host with another device."""

    def __init__(self, *devices: Any) -> None:
        self._devices = list(devices)

    async def gpu(self) -> Any:
        return self._devices.pop(0) if len(self._devices) > 1 else self._devices[0]

    def __getattr__(self, name: str) -> Any:
        return getattr(HOST, name)


def disguised(**facts: Any) -> HostWith:
    """A device that says it is hardware and folds every longer dispatch."""
    device = run(HOST.gpu())
    limits = {**device.limits, "maxComputeWorkgroupsPerDimension": 40}
    return HostWith(Disguised(device, limits=limits, software=False, **facts))


def assert_right(op: Op, cases: Sequence[Case], host: Any) -> None:
    problems = [problem(op, case) for case in cases]
    for p, outcome in zip(problems, run(outcomes(webgpu, host, problems, {})), strict=True):
        assert not isinstance(outcome, UnsupportedOpError), outcome
        for got, want in zip(outcome, p.want, strict=True):
            wrong = difference(got, want, p)
            assert not wrong, f"{op.name}, {p.case.label}: {wrong}"
