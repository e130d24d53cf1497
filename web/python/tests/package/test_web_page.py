"""A package with its page: a folder for any static host."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import webinfer
from build_scripts.site.bundle import player_page
from webinfer.cli import main
from webinfer.errors import InputError, IntegrityError
from webinfer.package import compile_model, web_page
from webinfer.package.web_page import MARK, export_page


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    builder = webinfer.GraphBuilder("small")
    builder.output(builder.node("relu", builder.input("x", (1, 4))), "y")
    path = tmp_path_factory.mktemp("packages") / "a <b>.webinfer"
    path.write_bytes(asyncio.run(compile_model(builder, backend="wasm", builds=("scalar",))))
    return path


def test_the_folder_holds_all_that_the_page_asks_for_by_relative_names(package: Path, tmp_path: Path) -> None:
    files = export_page(package, tmp_path / "site", player_page())
    there = {path.name: path.stat().st_size for path in (tmp_path / "site").iterdir()}
    assert there == {**files, MARK: 0, ".nojekyll": 0}
    assert (tmp_path / "site" / "model.webinfer").read_bytes() == package.read_bytes()
    page = (tmp_path / "site" / "index.html").read_text()
    assert "<h1>a &lt;b&gt;</h1>" in page
    assert "data-sample" not in page
    for name in ("demo.css", "demo.js", "player.js", "model.webinfer"):
        assert f'="{name}"' in page
        assert name in files
    script = (tmp_path / "site" / "player.js").read_text()
    assert 'from "' not in script  # one file
    assert "player_worker.js" in script
    export_page(package, tmp_path / "site", player_page())  # in its own place


def test_other_files_are_never_replaced(package: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    for folder in (tmp_path, tmp_path / "mine"):
        with pytest.raises(InputError, match="other files"):
            export_page(package, folder, player_page())
    assert (tmp_path / "mine").read_text() == "x"
    damaged = tmp_path / "damaged.webinfer"
    damaged.write_bytes(package.read_bytes()[:50])
    with pytest.raises(IntegrityError):
        export_page(damaged, tmp_path / "site", player_page())
    assert not (tmp_path / "site").exists()


def test_the_installed_command_writes_it_and_a_checkout_says_what_does(
    package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["export", "--package", str(package), str(tmp_path / "site")]
    monkeypatch.setattr(web_page, "PARTS", tmp_path / "wheel")
    assert main(arguments) == 2
    assert "build_scripts export --package" in capsys.readouterr().err
    (tmp_path / "wheel").mkdir()
    for name, data in player_page().items():
        (tmp_path / "wheel" / f"player_{name}").write_bytes(data)
    assert main(arguments) == 0
    assert "7 files" in capsys.readouterr().out
    assert (tmp_path / "site" / "index.html").is_file()
