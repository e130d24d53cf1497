"""Results of every kind print, plot, save and become JSON, rows and data frames; sources are files, folders, arrays."""

from __future__ import annotations

import asyncio
import csv
import json
import types

import numpy as np
import pytest
from PIL import Image

from webinfer.errors import InputError
from webinfer.pipelines import Batch, Results
from webinfer.pipelines.drawing import KINDS
from webinfer.pipelines.results import run_lengths
from webinfer.pipelines.sources import eight_bits, read, sources_of
from webinfer.tasks import (
    TASKS,
    AudioSegment,
    BodyMask,
    Box,
    Category,
    DetectedObject,
    Embedding,
    Face,
    FileType,
    Mask,
    TextLine,
    pipeline,
)
from webinfer.tasks.face_landmarker import FaceLandmarks
from webinfer.tasks.landmarks import Landmarks

GREY = Image.new("RGB", (120, 90), (128, 128, 128))
BOX = Box(20, 30, 40, 50)
SIZE = (120, 90)


def _floats(*values: float) -> memoryview:
    return memoryview(np.array(values, np.float32)).cast("B").cast("f")


def _mask() -> Mask:
    values = np.zeros((90, 120), np.float32)
    values[10:40, 20:60] = 1
    return Mask(120, 90, memoryview(values).cast("B").cast("f"))


def _bodies() -> BodyMask:
    parts = np.zeros((90, 120), np.uint8)
    parts[10:40, 20:60] = 3
    return BodyMask(120, 90, _mask().values, memoryview(parts).cast("B"), memoryview(parts // 3).cast("B"), [])


def _face_points() -> FaceLandmarks:
    xyz = [value for i in range(478) for value in (20 + i % 40, 30 + i // 10, 0.0)]
    return FaceLandmarks(BOX, 0.9, Landmarks(xyz), None, SIZE)


QUAD = {"top_left": (10.0, 10.0), "top_right": (60.0, 12.0), "bottom_right": (60.0, 30.0), "bottom_left": (10.0, 28.0)}
POINTS = ((30.0, 40.0, 0.9), (50.0, 60.0, 0.1))
# task -> what it found, and whether that is drawn on a picture
FOUND = {
    "face-detection": ([Face(BOX, 0.9, {"nose": (40.0, 50.0)}, None, SIZE)], True),
    "object-detection": (
        [DetectedObject(BOX, 0.8, Category(1, "cat", 0.8), None, SIZE, _mask()),
         DetectedObject(BOX, 0.7, Category(2, "dog", 0.7), None, SIZE, None, POINTS, tuple(QUAD.values()))],
        True,
    ),
    "face-landmarks": ([_face_points()], True),
    "segmentation": ([_mask()], True),
    "body-segmentation": ([_bodies()], True),
    "classification": ([Category(1, "cat", 0.8), Category(2, "", 0.1)], True),
    "text": ([TextLine("Hello", 0.99, QUAD, BOX)], True),
    "voice-activity": ([AudioSegment(0.5, 1.5, 0.9)], False),
    "file-type": ([FileType("python", 0.99, "python", "text/x-python", "code", "Python source")], False),
    "sentence-embedding": ([Embedding("a", (1.0, 0.0), 1), Embedding("b", (0.6, 0.8), 1)], False),
}  # fmt: skip


def _results(task: str) -> Results:
    found, on_picture = FOUND[task]
    return Results(found, task, TASKS[task].result, "photo.jpg", GREY if on_picture else None)


def test_every_kind_of_result_has_a_drawing() -> None:
    assert {task.result.kind for task in TASKS.values()} == set(KINDS)
    assert {TASKS[name].result.kind for name in FOUND} == set(KINDS)


@pytest.mark.parametrize("task", FOUND)
def test_results_print_plot_save_and_convert(task, tmp_path) -> None:
    results = _results(task)
    assert list(results) == FOUND[task][0]
    assert str(results).startswith(f"{TASKS[task].result.title}: {len(results)} in photo.jpg\n#")
    image = results.plot()
    assert image.size == (SIZE if FOUND[task][1] else (640, 360))
    plain = np.asarray(GREY if FOUND[task][1] else Image.new("RGB", image.size, (16, 24, 28)))
    assert (np.asarray(image) != plain).any()
    html = results._repr_html_()
    assert html.startswith("<img")
    assert "<pre>" in html
    told = json.loads(results.to_json())
    assert told == json.loads(json.dumps(results.to_dict()))
    assert (told["task"], told["source"], len(told["results"])) == (task, "photo.jpg", len(results))
    for name in ("out.png", "out.json", "out.jsonl", "out.csv"):
        assert results.save(tmp_path / name) == str(tmp_path / name)
    assert Image.open(tmp_path / "out.png").size == image.size
    assert json.loads((tmp_path / "out.json").read_text()) == json.loads((tmp_path / "out.jsonl").read_text()) == told
    with (tmp_path / "out.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(results)


def test_rows_are_flat(tmp_path) -> None:
    (row,) = _results("face-detection").rows()
    assert (row["source"], row["box_left"], row["score"]) == ("photo.jpg", 20, 0.9)
    assert json.loads(row["keypoints_nose"]) == [40.0, 50.0]
    assert _results("object-detection").rows()[0]["category_label"] == "cat"


def test_other_suffixes_are_refused(tmp_path) -> None:
    with pytest.raises(InputError, match=r"'\.xyz'; results are saved as \.png"):
        _results("text").save(tmp_path / "out.xyz")


def test_nothing_found_is_a_picture_and_an_empty_list(tmp_path) -> None:
    nothing = Results([], "face-detection", TASKS["face-detection"].result, "", GREY)
    assert str(nothing) == "Faces found: 0"
    assert np.array_equal(np.asarray(nothing.plot()), np.asarray(GREY))
    assert nothing.to_dict()["results"] == []
    assert (nothing.size, nothing.rows()) == (None, [])


def test_a_data_frame_comes_from_what_is_installed(monkeypatch) -> None:
    import importlib

    real = importlib.import_module
    made = types.SimpleNamespace(DataFrame=lambda rows: ("polars", rows))

    def found(name, *more):
        if name == "pandas":
            raise ImportError
        return made if name == "polars" else real(name, *more)

    monkeypatch.setattr(importlib, "import_module", found)
    assert _results("text").to_dataframe()[0] == "polars"
    made = None

    def none(name, *more):
        raise ImportError

    monkeypatch.setattr(importlib, "import_module", none)
    with pytest.raises(InputError, match="pip install pandas"):
        _results("text").to_dataframe()


def test_batches_save_a_picture_each_or_one_file(tmp_path) -> None:
    batch = Batch([_results("text"), _results("text")])
    assert batch.save(tmp_path / "out") == [str(tmp_path / "out" / f"photo{end}.png") for end in ("", "-2")]
    batch.save(tmp_path / "out.jsonl")
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 2
    assert len(json.loads(batch.to_json())) == len(batch.plot()) == 2
    assert len(batch.rows()) == 2
    with pytest.raises(InputError, match="give a folder"):
        batch.save(tmp_path / "one.png")


def test_background_removal_leaves_the_subject_alone(tmp_path) -> None:
    """Where files cannot be transparent, in front of white."""
    picture = Image.new("RGB", (120, 90), (10, 20, 200))
    values = np.zeros((90, 120), np.float32)
    values[:, :60] = 1
    mattes = [Mask(120, 90, memoryview(values.ravel()))]
    results = Results(mattes, "background-removal", TASKS["background-removal"].result, "photo.jpg", picture)
    results.save(tmp_path / "cut.png")
    results.save(tmp_path / "cut.jpg")
    clear, white = Image.open(tmp_path / "cut.png"), Image.open(tmp_path / "cut.jpg")
    assert clear.getpixel((20, 45)) == (10, 20, 200, 255)
    assert clear.getpixel((100, 45))[3] == 0
    assert min(white.getpixel((100, 45))) > 250
    assert np.abs(np.subtract(white.getpixel((20, 45)), (10, 20, 200))).max() < 6


def test_masks_are_arrays_and_run_lengths() -> None:
    mask, bodies = _mask(), _bodies()
    array = np.asarray(mask)
    assert (array.shape, array.dtype, array.sum()) == ((90, 120), np.float32, 1200)
    assert bodies.array("parts").dtype == np.uint8
    counts = run_lengths(mask.values)["counts"]
    assert (sum(counts), counts[0], sum(counts[1::2])) == (90 * 120, 10 * 120 + 20, 1200)
    assert run_lengths(_floats(1, 1, 0)) == {"counts": [0, 2, 1]}
    assert run_lengths(bodies.parts)["numbers"][:3] == [0, 3, 0]


# ----- sources


def test_sources_are_files_folders_patterns_lists_and_things_in_memory(tmp_path) -> None:
    for name in ("b.png", "a.jpg", "notes.txt", ".hidden.png"):
        (tmp_path / name).write_bytes(b"x")
    found, several = sources_of(tmp_path, "picture")
    assert ([one.name for one in found], several) == ([str(tmp_path / "a.jpg"), str(tmp_path / "b.png")], True)
    found, several = sources_of(f"{tmp_path}/*.png", "picture")
    assert ([one.name for one in found], several) == ([str(tmp_path / "b.png")], True)
    assert sources_of(str(tmp_path / "a.jpg"), "picture")[1] is False
    found, several = sources_of([GREY, str(tmp_path / "a.jpg"), tmp_path], "picture")
    assert ([one.name for one in found][:2], len(found), several) == (["0", str(tmp_path / "a.jpg")], 4, True)
    assert sources_of((b"samples", 16000), "audio")[1] is False
    (texts,), several = sources_of(["one", "two"], "text")
    assert (texts.value, several) == (["one", "two"], False)


@pytest.mark.parametrize(
    ("given", "text"),
    [("phto.jpg", "did you mean '.*photo.jpg'"), ("empty", "has no picture"), ("none*.jpg", "no file matches"),
     ("a.mp4", "stream")],
)  # fmt: skip
def test_sources_that_are_not_there_say_so(given, text, tmp_path) -> None:
    (tmp_path / "photo.jpg").write_bytes(b"x")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=text):
        sources_of(str(tmp_path / given), "picture")


def test_arrays_of_real_numbers_become_bytes() -> None:
    assert eight_bits(np.array([[0.0, 0.5, 1.0]])).tolist() == [[0, 128, 255]]
    assert eight_bits(np.array([[0.0, 254.6]])).tolist() == [[0, 255]]
    assert eight_bits(np.array([[True, False]])).tolist() == [[255, 0]]
    assert eight_bits(GREY) is GREY
    with pytest.raises(InputError, match="from 0 to 1"):
        eight_bits(np.array([[-1.0]]))


def test_files_that_are_no_pictures_are_read_whole(tmp_path) -> None:
    (tmp_path / "a.py").write_bytes(b"print(1)")
    (source,), _ = sources_of(tmp_path / "a.py", "bytes")
    assert asyncio.run(read(source, "bytes", None)) == b"print(1)"


# ----- names


@pytest.mark.parametrize(
    ("given", "name"),
    [("image-classification", "classification"), ("FaceDetector", "face-detection"), ("ocr", "text"),
     ("face_landmarker", "face-landmarks"), ("Object Detection", "object-detection"),
     ("feature-extraction", "sentence-embedding")],
)  # fmt: skip
def test_names_of_other_libraries_are_known(given, name) -> None:
    assert pipeline(given).name == name


def test_unknown_names_and_options_are_refused_at_once() -> None:
    with pytest.raises(InputError, match="did you mean 'object-detection'"):
        pipeline("object-detectoin")
    with pytest.raises(InputError, match="has no option 'scroe'"):
        pipeline("face-detection", scroe=1)
