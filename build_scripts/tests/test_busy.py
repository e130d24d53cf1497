"""The benchmark of threads beside busy processes."""

from pathlib import Path

import pytest

from build_scripts.bench.busy import WAYS, Timing, table, timings_of
from build_scripts.bench.compare import parse


def test_every_way_is_timed_while_a_process_is_busy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    np = pytest.importorskip("numpy")
    pytest.importorskip("wasmtime")
    from tests.importers.tflite_writer import Writer

    w = Writer()
    x, y = w.input("x", (1, 8, 8, 4)), w.tensor("y", (1, 8, 8, 8))
    kernel, bias = w.constant("w", np.ones((8, 1, 1, 4), np.float32)), w.constant("b", np.ones(8, np.float32))
    w.node("CONV_2D", [x, kernel, bias], [y], padding=0, stride_w=1, stride_h=1)
    path = tmp_path / "small.tflite"
    path.write_bytes(w.finish(y))
    found = timings_of(path, [0], threads=2, rounds=1, turn_s=0.02)
    assert [(t.model, t.busy, t.way) for t in found] == [("small", 1, way) for way in WAYS]
    assert all(0 < t.least <= t.median and t.runs > 0 for t in found)


def test_the_table_has_a_row_for_each_model_and_load() -> None:
    timings = [Timing("face", busy, way, 9, 1.0, 2.0, 3.0 + busy) for busy in (0, 1) for way in WAYS]
    assert table(timings).splitlines()[2:] == [
        "| face | 0 | 3.00 (2.00) | 3.00 (2.00) | 3.00 (2.00) |",
        "| face | 1 | 4.00 (2.00) | 4.00 (2.00) | 4.00 (2.00) |",
    ]


def test_the_command_line_takes_the_number_of_busy_processes() -> None:
    assert parse(["--busy", "1", "--threads", "2"]).busy == 1
