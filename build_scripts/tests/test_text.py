"""The verb that compares language models: its site's pieces, and the table of what a page posted."""

import json
from pathlib import Path

import pytest

from build_scripts.bench import text
from build_scripts.bench.page_reports import posted
from build_scripts.errors import BuildError

OURS = {
    "system": "webinfer", "backend": "wasm", "threads": 1, "load_ms": 1500.0, "copy_gbytes": 10.0, "prompt_words": 238,
    "answer_words": 63, "prompt": 80.0, "prompt_best": 90.0, "answer": 40.0, "answer_best": 50.0, "gbytes": 5.0,
}  # fmt: skip
WLLAMA = {
    "system": "wllama", "backend": "wasm", "threads": 1, "load_ms": 2500.0, "prompt_words": 238, "answer_words": 64,
    "prompt": 10.0, "prompt_best": 15.0, "answer": 8.0, "answer_best": 12.5, "gbytes": 1.2,
}  # fmt: skip
STUCK = {"system": "wllama", "backend": "wasm", "threads": 2, "error": "loadModel took more\nthan 120 s"}


def test_a_model_in_pieces_is_the_model_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "PIECE_BYTES", 100)
    model = tmp_path / "model.gguf"
    model.write_bytes(bytes(range(250)))
    names = text.split(model, tmp_path)
    assert names == ["model.gguf.0", "model.gguf.1", "model.gguf.2"]
    assert b"".join((tmp_path / name).read_bytes() for name in names) == model.read_bytes()


def test_a_log_with_a_rival_that_hung_still_makes_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [["about", {}], ["doing", "0.1 s: opens"], *(["row", row] for row in (OURS, WLLAMA, STUCK)), ["done", True]]
    log = "a browser's own tokens\n" + "".join(f"{json.dumps(line)}\n" for line in lines)
    assert text.report(posted(log), tmp_path / "text.json") == 0
    shown = capsys.readouterr().out
    assert "| 238 | 80.0 | 90.0 | 40.0 | 50.0 | 5.0 | 50 % | 1.50 | 8.00 (6.00) | 5.00 (4.00) |" in shown
    assert "| wllama | wasm | 2 | | failed: loadModel took more than 120 s |" in shown
    assert len(json.loads((tmp_path / "text.json").read_text())["rows"]) == 3


def test_a_long_answer_has_a_line_of_its_own() -> None:
    found = {"tokens": 2000, "first": 30.04, "last": 21.0, "before": 260_000_000, "after": 260_100_000}
    said = text.table([{**OURS, "long": found}, WLLAMA]).splitlines()[-1]
    assert said.startswith("webinfer wasm 1: an answer of 2000 tokens begins with 30.0 and ends with 21.0 tokens/s;")
    assert "memory 260.0 MB before, 260.1 MB after" in said


def test_a_page_that_broke_is_a_failure(tmp_path: Path) -> None:
    lines = [["row", OURS], ["failed", "the page was silent for 180 s"], ["done", False]]
    assert text.report(lines, tmp_path / "text.json") == 1


@pytest.mark.parametrize("argv", [["--tokens", "1"], ["--rounds", "0"], ["--limit", "0"], ["--long", "9"]])
def test_impossible_options_are_refused(argv: list[str]) -> None:
    with pytest.raises(BuildError, match="start at"):
        text.parse(argv)
