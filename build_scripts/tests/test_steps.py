"""Set-up steps run when they must and not otherwise."""

from pathlib import Path

import pytest

from build_scripts.errors import BuildError
from build_scripts.files import digest_of
from build_scripts.steps import Step, run_steps


def make_step(folder: Path, log: list[str], version: int = 1) -> Step:
    source, output = folder / "source", folder / "output"

    def copy() -> None:
        log.append("ran")
        output.write_bytes(source.read_bytes())

    return Step("copy", "copy a file", lambda: [source], (output,), copy, folder / ".stamp", version)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "source").write_text("one")
    return tmp_path


def test_a_step_runs_once_while_its_inputs_stay(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log: list[str] = []
    run_steps([make_step(folder, log)])
    run_steps([make_step(folder, log)])
    assert log == ["ran"]
    assert "unchanged" in capsys.readouterr().out


def test_a_changed_input_a_lost_output_and_a_new_version_run_it_again(folder: Path) -> None:
    log: list[str] = []
    run_steps([make_step(folder, log)])
    (folder / "source").write_text("two")
    run_steps([make_step(folder, log)])
    assert (folder / "output").read_text() == "two"
    (folder / "output").unlink()
    run_steps([make_step(folder, log)])
    run_steps([make_step(folder, log, version=2)])
    assert log == ["ran"] * 4


def test_a_step_that_fails_runs_again(folder: Path) -> None:
    broken: list[int] = []

    def fail_once() -> None:
        broken.append(1)
        if len(broken) == 1:
            raise BuildError("no")
        (folder / "output").write_text("made")

    step = Step("fragile", "fail", lambda: ["text"], (folder / "output",), fail_once, folder / ".stamp")
    with pytest.raises(BuildError):
        run_steps([step])
    run_steps([step])
    assert len(broken) == 2


def test_a_step_without_its_output_is_an_error_that_names_it(folder: Path) -> None:
    from build_scripts.paths import ROOT

    missing = ROOT / "build" / "never-made"
    step = Step("lazy", "do nothing", lambda: [], (missing,), lambda: None, folder / ".stamp")
    with pytest.raises(BuildError, match="never-made"):
        run_steps([step])


def test_a_step_may_run_steps_of_its_own(folder: Path) -> None:
    log: list[str] = []
    inner = make_step(folder, log)
    outer = Step("outer", "nest", lambda: [], (), lambda: run_steps([inner]), folder / ".outer")
    run_steps([outer])
    assert log == ["ran"]


def test_a_digest_sees_names_and_contents_but_no_caches(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    first = digest_of(tmp_path)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "a.pyc").write_text("y")
    (tmp_path / ".stamp").write_text("z")
    assert digest_of(tmp_path) == first
    (tmp_path / "a").rename(tmp_path / "b")
    assert digest_of(tmp_path) != first


def test_a_linked_environment_is_not_emptied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from build_scripts.setup import environment

    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "kept").write_text("")
    (tmp_path / ".venv").symlink_to(tmp_path / "theirs")
    monkeypatch.setattr(environment, "VENV", tmp_path / ".venv")
    with pytest.raises(BuildError, match="is a link to"):
        environment._venv_step().action()
    assert (tmp_path / "theirs" / "kept").exists()
