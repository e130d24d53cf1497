"""The benchmark of single kernels: one row each, from the same cases as the tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.ops.targets import BUILDS

from build_scripts.bench.wasm_kernels import bench_wasm_kernels

TASKS = ("u8_picture_to_f32", "u8_cut_quad", "u8_resize_to_planes", "f32_mask_to_picture")
NAMES = ("f32_pack_conv_weights", "f32_conv2d_nhwc_6x8", *TASKS)  # of the load, of a run, of tasks


def test_each_kernel_gets_a_row_with_its_rate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    BUILDS[-1].demand()
    assert bench_wasm_kernels(NAMES, tmp_path / "kernels.json") == 0
    rows = {row["kernel"]: row for row in json.loads((tmp_path / "kernels.json").read_text())["kernels"]}
    assert sorted(rows) == sorted(NAMES)
    assert all(row["ms"] > 0 and row["gbytes"] > 0 for row in rows.values())
    assert rows["f32_conv2d_nhwc_6x8"]["gflops"] > 0
    assert rows["f32_pack_conv_weights"]["gflops"] is None
    assert all(name in capsys.readouterr().out for name in NAMES[:1])
