"""Convolutions of high windows by rows, at sizes that its tiles do not divide."""

from __future__ import annotations

import pytest
from tests.ops.case_graphs import difference, outcomes, problem, run
from tests.ops.targets import Target as RingTarget
from tests.webgpu.devices import HARDWARE
from tests.webgpu.disguised import Disguised, HostWith
from tests.webgpu.extra_cases import _conv

from webinfer.backends import webgpu
from webinfer.backends.webgpu.lowerings import conv
from webinfer.dtypes import DType
from webinfer.host.native import NativeHost
from webinfer.ops.activation import Activation

CASES = (
    _conv("9x9, three channels", (1, 18, 19, 8), (3, 9, 9, 8)),
    _conv("9x9 picture", (2, 14, 13, 3), (8, 9, 9, 3), pads=(4, 3, 2, 4), activation=Activation.RELU),
    _conv("3x3", (1, 9, 11, 16), (8, 3, 3, 16)),
    _conv("odd channels", (1, 7, 9, 5), (6, 3, 5, 5), pads=(1, 1, 2, 2)),
    _conv("uneven along W", (1, 9, 17, 4), (5, 4, 3, 4), stride=(1, 2), dilation=(1, 3), pads=(0, 2, 5, 1)),
    _conv("one row", (1, 3, 9, 4), (2, 3, 3, 4)),
    _conv("uint8", (1, 9, 11, 3), (8, 5, 5, 3), DType.UINT8, pads=(2, 2, 2, 2)),
    _conv("float16", (1, 9, 10, 4), (7, 3, 3, 4), DType.FLOAT16),
)


def test_high_windows_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    RingTarget("webgpu").demand()
    monkeypatch.setattr(conv, "ROWS_FILLED", 1)
    monkeypatch.setattr(conv, "choose", lambda node, target: "any")
    problems = [problem(op, case) for op, case in CASES]
    for p in problems:
        assert any(d.shader == "conv2d_rows" for d in conv.conv2d(p.node, HARDWARE)), p.case.label
    host = HostWith(Disguised(run(NativeHost().gpu()), software=False))
    found = run(outcomes(webgpu, host, problems, {}))
    for p, (got,) in zip(problems, found, strict=True):
        assert not difference(got, p.want[0], p), p.case.label
