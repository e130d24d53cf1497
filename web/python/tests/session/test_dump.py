"""What `webinfer dump` writes: the same files on every machine, and all that a model is compiled to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.custom.test_builder import small
from tests.ops.case_graphs import run
from tests.session.models import model

import webinfer
from webinfer.cli import main
from webinfer.dump import TARGETS, dump


def written(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}


def test_a_dump_holds_graph_plan_steps_shaders_and_dispatches(tmp_path: Path) -> None:
    file = tmp_path / "three.tflite"
    file.write_bytes(model())
    assert main(["dump", str(file), "--to", str(tmp_path / "out")]) == 0
    files = written(tmp_path / "out")
    assert "max_pool2d" in files["graph.txt"]
    assert [row["op"] for row in json.loads(files["wasm/plan.json"])["rows"]] == ["conv2d", "max_pool2d"]
    (pool,) = (line for line in files["wasm/steps.txt"].splitlines() if line.startswith("f32_max_pool2d_nhwc units="))
    assert "n=1 ih=6 iw=6 c=4 oh=3 ow=3 kh=2 kw=2" in pool
    dispatches = json.loads(files["webgpu/dispatches.json"])["dispatches"]
    assert {f"webgpu/{row['kernel']}.wgsl" for row in dispatches} == {
        n for n in files if n.startswith("webgpu/") and n.endswith(".wgsl")
    }
    assert all("@compute" in text for name, text in files.items() if name.endswith(".wgsl"))
    assert str(tmp_path) not in "".join(files.values())


def test_two_dumps_of_a_model_are_equal(tmp_path: Path) -> None:
    for name in ("a", "b"):
        run(dump(model(), tmp_path / name))
    assert written(tmp_path / "a") == written(tmp_path / "b")
    assert {path.split("/")[0] for path in written(tmp_path / "a")} == {*TARGETS, "graph.txt"}
    run(dump(small(), tmp_path / "a"))
    run(dump(small(), tmp_path / "c"))
    assert written(tmp_path / "a") == written(tmp_path / "c"), "nothing is left of the dump before"


def test_a_changed_weight_changes_the_dump(tmp_path: Path) -> None:
    g = webinfer.GraphBuilder("other")
    x = g.input("x", (1, 6, 6, 2))
    g.output(g.node("mul", x, [0.25, 0.5]), "y")
    h = webinfer.GraphBuilder("other")
    x = h.input("x", (1, 6, 6, 2))
    h.output(h.node("mul", x, [0.25, 0.75]), "y")
    for name, builder in (("a", g), ("b", h)):
        run(dump(builder, tmp_path / name, ["wasm", "webgpu"]))
    before, after = written(tmp_path / "a"), written(tmp_path / "b")
    assert [name for name in before if before[name] != after[name]]


def test_what_cannot_be_read_is_an_error_and_what_cannot_run_is_told(tmp_path: Path) -> None:
    with pytest.raises(webinfer.ModelFormatError):
        run(dump(b"no model", tmp_path))
    g = webinfer.GraphBuilder("too large")
    x = g.input("x", (1, 1 << 13, 1 << 13, 7))  # 1.75 GiB: three of them are more than a memory
    g.output(g.node("add", g.node("relu", x), g.node("exp", x)), "y")
    run(dump(g, tmp_path, ["webgpu"]))
    assert (tmp_path / "webgpu" / "refused.txt").read_text().startswith("limit: ")
    run(dump(small(), tmp_path, ["wasm"]))
