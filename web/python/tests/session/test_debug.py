"""Each level of the debug ladder prints what its table says, and what the levels below it print."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.ops.case_graphs import run
from tests.session.models import IMAGE, model

import webinfer
from webinfer.dump import dump
from webinfer.flags import LEVELS, set_debug_level
from webinfer.passes.pipeline import PIPELINE


@pytest.fixture(autouse=True)
def quiet_again() -> Iterator[None]:
    yield
    set_debug_level(0)


def printed(level: int, capsys: pytest.CaptureFixture[str]) -> str:
    """What loading and running the model on wasm prints."""
    set_debug_level(level)
    with run(webinfer.load(model(), backend="wasm")) as session:
        loaded = capsys.readouterr().err
        run(session.run(IMAGE))
    assert not capsys.readouterr().err, "runs print nothing"
    return loaded


def test_level_0_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(0, capsys) == ""


def test_level_1_tells_the_backend_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert "webinfer[1] model: wasm was asked for\n" in printed(1, capsys)


def test_level_2_tells_the_time_of_each_step(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(2, capsys)
    assert "webinfer[1] " in text
    assert "webinfer[2] model on wasm: " in text
    table = text[text.index("webinfer[2] ") :].splitlines()
    assert table[2].split()[:3] == ["#", "op", "kernel"]
    assert [line.split()[1] for line in table[4:]] == ["conv2d", "max_pool2d"]
    assert "[3]" not in text


def test_level_3_tells_fusions_and_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(3, capsys)
    for rewrite in PIPELINE:
        assert f"webinfer[3] pass {rewrite.__name__}: " in text
    assert "webinfer[3] model on wasm: wasm was asked for\n2 steps, constants " in text
    assert "webinfer[2] " in text


def test_level_4_tells_the_generated_wgsl(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    set_debug_level(4)
    run(dump(model(), tmp_path, ["webgpu"]))  # on a stand-in for a GPU: this test needs none
    text = capsys.readouterr().err
    shaders = sorted((tmp_path / "webgpu").glob("*.wgsl"))
    assert len(shaders) >= 2
    for shader in shaders:
        assert f"webinfer[4] {shader.stem.rpartition('_')[0]}\n{shader.read_text()}" in text
    assert "webinfer[5]" not in text


def test_level_5_tells_the_graph_after_each_pass(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(5, capsys)
    assert "webinfer[5] imported\ngraph model(" in text
    for rewrite in PIPELINE:
        after = text.split(f"webinfer[5] after {rewrite.__name__}, ")[1]
        assert after.split("\n", 1)[1].startswith("graph model(")


def test_there_is_a_test_for_each_level() -> None:
    assert sorted(LEVELS) == [int(name.split("_")[2]) for name in sorted(globals()) if name.startswith("test_level_")]
