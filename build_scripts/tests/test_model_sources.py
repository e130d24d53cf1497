"""The verb that asks whether the packages of models are still there."""

import subprocess
from typing import Any

import pytest

from build_scripts.errors import BuildError
from build_scripts.judge import model_sources

FILES = {
    "m": {"package": "far", "members": ["http://127.0.0.1:1/m.tflite"]},
    "smollm2_135m_instruct_q4_1.gguf": {"package": "smollm2"},
    "magika_standard_v3_3.onnx": {"package": "magika"},
}
TABLE: dict[str, Any] = {
    "files": FILES,
    "packages": {
        "wheel": {"requirement": "models==1.0", "platform": "any", "python": "3.12", "sha256": "0", "megabytes": 1},
        "node": {"npm": "@models/models@1.0", "sha256": "0", "megabytes": 1},
        "far": {"repositories": "models of a test", "megabytes": 1},
    },
}


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What pip and npm answer."""
    answers: dict[str, Any] = {"pip": None, "npm": (0, "sha512-x\n", "")}

    def pip(*options: str) -> None:
        assert "--ignore-requires-python" in options, "a package for another Python is not lost"
        if answers["pip"]:
            raise BuildError(answers["pip"])

    def npm(command: list[str], **_: Any) -> Any:
        return subprocess.CompletedProcess(command, *answers["npm"])

    monkeypatch.setattr(model_sources, "published", lambda: TABLE)
    monkeypatch.setattr(model_sources, "pip", pip)
    monkeypatch.setattr(model_sources, "npm_command", lambda: ["npm"])
    monkeypatch.setattr(model_sources.subprocess, "run", npm)
    return answers


def test_sources_that_are_there_and_lost_ones_are_told(
    said: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert model_sources.run(["wheel", "node"]) == 0
    assert "there  models==1.0" in capsys.readouterr().out
    said.update(pip="pip failed\n    ERROR: No matching distribution found", npm=(1, "", "npm error code E404\nmore"))
    assert model_sources.run(["wheel", "node"]) == 1
    told = capsys.readouterr().out
    assert "LOST   models==1.0: ERROR: No matching distribution found" in told
    assert "LOST   @models/models@1.0: npm error code E404" in told
    (copies,) = (line for line in told.splitlines() if line.startswith("one source alone, a package with a copy: "))
    assert "smollm2-135m" in copies
    assert "magika" not in copies


def test_a_server_that_does_not_answer_is_named_in_words(
    said: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert model_sources.run(["far"]) == 1
    told = capsys.readouterr().out
    assert "LOST   models of a test: http://127.0.0.1:1/m.tflite: Connection refused" in told
    assert "urlopen" not in told
    with pytest.raises(BuildError, match="no package 'nothing'"):
        model_sources.run(["nothing"])
