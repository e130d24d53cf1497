"""The verb that compares decoders of ONNX: its site, and the table of what a page posted."""

import json
from pathlib import Path

import pytest

from build_scripts.bench import decoder
from build_scripts.bench.page_reports import posted
from build_scripts.errors import BuildError

OURS = {
    "system": "webinfer", "backend": "wasm", "threads": 1, "load_ms": 500.0, "prompt": 50.0, "prompt_best": 45.0,
    "token": 5.0, "token_best": 4.5, "first_prompt": 300.0, "first_token": 320.0, "apart": 1e-6,
}  # fmt: skip
THEIRS = {**OURS, "system": "ortweb", "prompt": 100.0, "token": 60.0, "load_ms": 700.0}
WRONG = {**OURS, "threads": 2, "error": "its numbers are 0.5 of their range from ONNX Runtime Web's"}


def test_a_log_makes_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [["about", {}], ["doing", "opens"], *(["row", row] for row in (OURS, THEIRS)), ["done", True]]
    assert decoder.report(posted("\n".join(map(json.dumps, lines))), tmp_path / "decoder.json") == 0
    assert "| 50.0 | 45.0 | 5.0 | 4.5 | 300.0 | 320.0 | 500.0 | 2.00 | 12.00 |" in capsys.readouterr().out
    assert len(json.loads((tmp_path / "decoder.json").read_text())["rows"]) == 2


@pytest.mark.parametrize("rows", [[THEIRS], [OURS, WRONG, THEIRS]])
def test_no_answer_or_a_wrong_one_is_a_failure(tmp_path: Path, rows: list[dict[str, object]]) -> None:
    lines = [*(["row", row] for row in rows), ["done", True]]
    assert decoder.report(lines, tmp_path / "decoder.json") == 1


def test_impossible_options_are_refused(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"")
    with pytest.raises(BuildError, match="names the ONNX file"):
        decoder.parse(["--model", str(tmp_path / "absent.onnx")])
    with pytest.raises(BuildError, match="start at 1"):
        decoder.parse(["--model", str(tmp_path / "model.onnx"), "--tokens", "0"])
