"""Verbs of tasks: results as tables, JSON lines, pictures and files; a bad source is a line of its own and status 2."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.compat.onnx_files import model

from webinfer.cli import main
from webinfer.task_verbs import TASK_VERBS
from webinfer.tasks import TASKS

PHOTO = Path(__file__).resolve().parents[3] / "build" / "images" / "astronaut.png"
needs_photo = pytest.mark.skipif(not PHOTO.is_file(), reason=f"there is no {PHOTO}: run build_scripts setup")
WASM = ["--backend", "wasm"]


def test_verbs_name_tasks() -> None:
    unknown = {row.verb for row in TASK_VERBS if row.task not in TASKS}
    assert unknown <= {"transcribe"}  # whose task is to come
    assert len({row.verb for row in TASK_VERBS}) == len(TASK_VERBS)


@needs_photo
def test_faces_are_printed_saved_and_counted(tmp_path, capsys) -> None:
    assert main(["faces", str(PHOTO), *WASM]) == 0
    assert capsys.readouterr().out.startswith(f"Faces found: 1 in {PHOTO}\n")
    out = tmp_path / "new" / "out.jpg"
    assert main(["faces", str(PHOTO), "--json", "-o", str(out), *WASM]) == 0
    printed = capsys.readouterr()
    (line,) = printed.out.splitlines()
    assert len(json.loads(line)["results"]) == 1
    assert printed.err == f"{out}\n"
    assert Image.open(out).size == Image.open(PHOTO).size
    assert (
        main(["task", "FaceDetector", str(PHOTO), "--min-score", "1", "--set", "min_suppression_threshold=0.5", *WASM])
        == 0
    )
    assert capsys.readouterr().out.startswith("Faces found: 0")


@needs_photo
def test_several_sources_go_into_one_file_or_a_folder(tmp_path, capsys) -> None:
    for name in ("a.png", "b.png"):
        Image.open(PHOTO).save(tmp_path / name)
    assert main(["faces", str(tmp_path), "--json", "-o", str(tmp_path / "out.csv"), *WASM]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 3
    assert main(["faces", f"{tmp_path}/*.png", "-o", str(tmp_path / "drawn"), *WASM]) == 0
    assert sorted(path.name for path in (tmp_path / "drawn").iterdir()) == ["a.png", "b.png"]


@needs_photo
def test_a_bad_source_is_one_line_and_the_others_are_run(tmp_path, capsys) -> None:
    (tmp_path / "bad.png").write_bytes(b"no picture")
    assert main(["faces", str(tmp_path / "none.png"), str(tmp_path / "bad.png"), str(PHOTO), *WASM]) == 2
    printed = capsys.readouterr()
    assert printed.out.startswith("Faces found: 1")
    assert [line.startswith("webinfer: ") for line in printed.err.splitlines()] == [True, True]


def test_no_model_is_opened_for_files_that_do_not_exist(tmp_path, monkeypatch, capsys) -> None:
    def opened(*_: Any, **__: Any) -> None:
        raise AssertionError("the model was opened, which may be a download of minutes")

    monkeypatch.setattr("webinfer.task_verbs.pipeline", opened)
    assert main(["detect", str(tmp_path / "none.jpg"), str(tmp_path / "*.png"), str(tmp_path)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert ["none.jpg" in lines[0], "*.png" in lines[1], "has no picture" in lines[2], len(lines)] == [*[True] * 3, 3]


@needs_photo
def test_standard_input_is_a_source(monkeypatch, capsys) -> None:
    import sys

    class Input:
        buffer = io.BytesIO(PHOTO.read_bytes())

    monkeypatch.setattr(sys, "stdin", Input)
    assert main(["faces", "-", *WASM]) == 0
    assert capsys.readouterr().out.startswith("Faces found: 1")


@pytest.mark.parametrize(
    "arguments",
    [["faces"], ["task", "no-such-task", "a.png"], ["faces", "a.png", "--set", "x"],
     ["faces", "a.png", "--set", "scroe=1"], ["filetype", "a", "--min-score", "0.5"]],
    ids=" ".join,
)  # fmt: skip
def test_what_is_wrong_is_one_line(arguments, capsys) -> None:
    try:
        status = main([*arguments, *WASM])
    except SystemExit as end:  # argparse ends the process itself
        status = int(end.code or 0)
    assert status == 2
    told = capsys.readouterr().err
    assert told.startswith("webinfer: ")
    assert told.count("\n") == 1


# ----- `run` on pictures


def _same(shape, kind=1) -> bytes:
    from onnx import helper

    ends = [("image", kind, list(shape))], [("same", kind, list(shape))]
    return model([helper.make_node("Identity", ["image"], ["same"])], *ends)


@pytest.mark.parametrize("first", [True, False], ids=["channels first", "channels last"])
def test_a_picture_is_a_models_input(first, tmp_path, capsys) -> None:
    file, picture = tmp_path / "same.onnx", tmp_path / "red.png"
    file.write_bytes(_same((1, 3, 4, 6) if first else (1, 4, 6, 3)))
    Image.new("RGB", (12, 8), (255, 0, 128)).save(picture)
    for given in (str(picture), f"image={picture}"):
        assert main(["run", str(file), given, "--output", str(tmp_path / "out"), *WASM]) == 0
        found = np.load(tmp_path / "out" / "same.npy")
        pixel = found[0, :, 0, 0] if first else found[0, 0, 0]
        assert np.allclose(pixel, [1, 0, 128 / 255])
    assert main(["run", str(file), str(picture), "--values=-1,1", "--output", str(tmp_path / "out"), *WASM]) == 0
    assert np.load(tmp_path / "out" / "same.npy").min() == -1


@pytest.mark.parametrize(
    ("shape", "kind", "arguments"),
    [((1, 5), 1, []), ((1, 3, 4, 4), 6, []), ((1, 3, 4, 4), 1, ["--values", "black"]),
     ((1, 3, 4, 4), 1, ["other=red.png"])],
    ids=["shape", "type", "values", "name"],
)  # fmt: skip
def test_other_inputs_take_no_pictures(shape, kind, arguments, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("same.onnx").write_bytes(_same(shape, kind))
    Image.new("RGB", (4, 4)).save("red.png")
    given = arguments if arguments and "=" in arguments[0] else ["red.png", *arguments]
    assert main(["run", "same.onnx", *given, *WASM]) == 2
    assert capsys.readouterr().err.count("\n") == 1
