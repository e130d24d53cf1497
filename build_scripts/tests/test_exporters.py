"""The judge of exporters: what it counts as a mistake, and how far an answer may be."""

import numpy as np

from build_scripts.judge.exported_answers import farness
from build_scripts.judge.exporters import told


def _row(verdict: str) -> dict[str, str]:
    return {"name": "one", "verdict": verdict, "said": ""}


def test_only_models_that_were_compared_can_be_wrong(capsys) -> None:
    fine = [_row(one) for one in ("equal", "as onnxruntime", "not exported", "not fitted", "does not run", "too large")]
    assert told(fine) == 0
    for wrong in ("different", "failed", "crash", "deadline"):
        assert told([*fine, _row(wrong)]) == 1
        assert f"1 {wrong}" in capsys.readouterr().out


def test_distances_are_parts_of_the_largest_value() -> None:
    assert farness(np.array([1.0, 99.0]), np.array([1.0, 100.0])) == 0.01
    assert farness(np.zeros((2, 1)), np.zeros((1, 2))) == float("inf")
    assert farness(np.zeros(0), np.zeros(0)) == 0
