"""Constants belong to the model: the programs of its regimes bind one copy of each weight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
from tests.ops.case_graphs import run
from tests.ops.targets import Target
from tests.session.test_open_plans import cached, sentence

import webinfer
from build_scripts.judge import open_models
from webinfer.backends.webgpu import loaded_program
from webinfer.host import current
from webinfer.session.session import Session

GIVEN: dict[str, tuple[Callable[[], bytes], list[Any]]] = {
    "encoder": (open_models.encoder, [sentence(t, b) for t, b in ((20, 1), (24, 1), (5, 1), (12, 2))]),
    "decoder": (open_models.decoder, [cached(p, n) for p, n in ((5, 1), (6, 1), (9, 4))]),
}  # fmt: skip


def held(device: Any) -> int:
    """Bytes of all buffers that programs on the device bind."""
    buffers = {buffer for program in device.programs for buffer in program._buffers[:-1]}
    return sum(buffer.size for buffer in buffers)


def ran(name: str) -> tuple[Session, list[Any], int]:
    """A session that met all sizes, its results, and the bytes on the device that are its own."""
    device = run(current().gpu())
    make, rows = GIVEN[name]
    before = held(device)
    session = run(webinfer.load(make(), backend="webgpu"))
    found = [{n: t.numpy() for n, t in run(session.run(row)).items()} for row in rows]
    return session, found, held(device) - before


@pytest.mark.parametrize("name", GIVEN)
def test_regimes_bind_one_copy_of_each_weight(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Target("webgpu").demand()
    device = run(current().gpu())
    with monkeypatch.context() as patch:
        patch.setattr(loaded_program.LoadedProgram, "share_with", lambda *_: None)
        session, wanted, apart = ran(name)
        regimes = len(session._live._beside())
        session.close()
    start = held(device)
    session, found, together = ran(name)
    for one, other in zip(found, wanted, strict=True):
        for output, array in other.items():
            np.testing.assert_array_equal(one[output], array)
    assert regimes >= 3
    reports = [executor.memory() for executor in dict.fromkeys(session._live._beside())]
    constants, shared = (sum(getattr(r, key) for r in reports) for key in ("constants", "shared"))
    assert constants - shared < 1.2 * max(report.constants for report in reports)
    print(name, regimes, apart, together)
    assert apart - together >= 0.9 * shared > 0
    session.close()
    assert held(device) == start
    assert not device.shared


def test_a_regime_that_is_closed_leaves_weights_to_the_others() -> None:
    Target("webgpu").demand()
    session, wanted, _ = ran("encoder")
    with session:
        first = session._live._open_plans.executors()[0]
        session._live._open_plans.drop(first)
        first.close()
        for row, values in zip(GIVEN["encoder"][1][::-1], wanted[::-1], strict=True):
            for name, tensor in run(session.run(row)).items():
                np.testing.assert_allclose(tensor.numpy(), values[name], atol=1e-5)
        run(session.restore())
        assert run(session.run(GIVEN["encoder"][1][0]))
