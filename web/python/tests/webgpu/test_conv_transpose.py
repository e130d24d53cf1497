"""Transposed convolutions by rows: every share of the work, at sizes that none divides."""

from __future__ import annotations

from typing import Any

import pytest
from tests.ops.case_graphs import Problem, difference, outcomes, problem, run
from tests.ops.targets import Target as RingTarget
from tests.webgpu.devices import HARDWARE
from tests.webgpu.disguised import Disguised, HostWith

from webinfer.backends import webgpu
from webinfer.backends.webgpu.lowerings import conv_transpose
from webinfer.dtypes import DType
from webinfer.graph.ir import Case, TensorType
from webinfer.host.native import NativeHost
from webinfer.ops import OPS
from webinfer.ops.activation import Activation
from webinfer.ops.conv import ConvTranspose2dAttrs, quantized_conv_case

INF, NAN = float("inf"), float("nan")


def _problem(
    label: str, x: tuple[int, ...], w: tuple[int, ...], dtype: DType = DType.FLOAT32, *,
    values: dict[int, tuple[float, ...]] | None = None, **attrs: Any,
) -> Problem:  # fmt: skip
    inputs = (TensorType(x, dtype), TensorType(w, dtype), TensorType((w[0],), dtype))
    a = ConvTranspose2dAttrs(**attrs)
    case = Case(label, inputs, a, low=-1, high=1, constant=(1, 2), values=values or {})
    return problem(OPS["conv_transpose2d"], case)


PROBLEMS = (
    _problem("2x2 stride 2", (2, 5, 7, 32), (8, 2, 2, 32), stride=(2, 2), activation=Activation.RELU),
    _problem("3x3 stride 2, cut on all sides", (1, 5, 6, 64), (6, 3, 3, 64), stride=(2, 2), pads=(1, 2, 3, 1)),
    _problem("3x3 stride 4: pixels that nothing reaches", (1, 4, 5, 16), (3, 3, 3, 16), stride=(4, 4)),
    _problem("4x5 stride 3 by 2", (1, 3, 6, 8), (5, 4, 5, 8), stride=(3, 2), output_padding=(2, 1)),
    _problem("5x5 stride 1", (1, 4, 9, 24), (4, 5, 5, 24), pads=(2, 2, 2, 2)),
    _problem("float16", (1, 3, 5, 16), (7, 3, 3, 16), DType.FLOAT16, stride=(2, 2), pads=(0, 1, 0, 1)),
    _problem("wide strides", (1, 2, 3, 4), (4, 2, 7, 4), stride=(5, 17)),
    _problem("a NaN and infinities", (1, 2, 3, 8), (2, 2, 2, 8), stride=(2, 2),
        values={0: tuple({3: NAN, 17: INF, 40: -INF}.get(i, 0.5) for i in range(48))}),
    problem(OPS["conv_transpose2d"], quantized_conv_case("uint8", (1, 4, 3, 32), (6, 3, 3, 32), DType.UINT8, None, 6,
        ConvTranspose2dAttrs, stride=(2, 2), pads=(0, 1, 0, 1))),
)  # fmt: skip


# So many invocations keep a core busy: four cells an invocation, or one that others share.
@pytest.mark.parametrize("busy", [0, 1024])
def test_every_share_of_a_row_is_right(monkeypatch: pytest.MonkeyPatch, busy: int) -> None:
    RingTarget("webgpu").demand()
    monkeypatch.setattr(conv_transpose, "BUSY", busy)
    host = HostWith(Disguised(run(NativeHost().gpu()), software=False))
    found = run(outcomes(webgpu, host, PROBLEMS, {}))
    for p, (got,) in zip(PROBLEMS, found, strict=True):
        assert not difference(got, p.want[0], p), p.case.label


def test_work_is_shared_so_that_a_large_device_is_filled() -> None:
    shares = conv_transpose._shares
    assert shares(1800, 320, 4, 16, HARDWARE) == (4, 1)  # many pixels
    assert shares(256 * 9, 128, 2, 8, HARDWARE) == (2, 1)
    assert shares(16 * 16, 8, 2, 32, HARDWARE) == (1, 16)  # few pixels, long sums
    assert shares(32 * 2, 16, 2, 2, HARDWARE) == (1, 1)  # short sums stay whole
