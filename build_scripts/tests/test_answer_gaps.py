"""Answers of a page beside those of CPython: what counts as a gap, and how they travel."""

from __future__ import annotations

import array
import asyncio
import hashlib
import json
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from build_scripts.errors import BuildError
from build_scripts.judge import task_answers, tasks_in_page
from build_scripts.judge import tasks as judge_tasks
from build_scripts.judge.answer_gaps import Gaps
from build_scripts.judge.rows import Row
from build_scripts.judge.tasks_in_page import CASES, Case, decoded
from webinfer import tasks
from webinfer.tasks.crop import Region
from webinfer.tasks.landmarks import Landmarks
from webinfer.tasks.segmenter import Mask


def face(left: float, score: float = 0.9, **more: Any) -> dict[str, Any]:
    return {"box": {"left": left, "top": 0.0, "width": 100.0, "height": 100.0}, "score": score, **more}


def gaps(ours: list[Any], theirs: list[Any]) -> Gaps:
    found = Gaps()
    found.lists(ours, theirs)
    return found


def test_things_are_compared_with_those_that_lie_where_they_do() -> None:
    one, other = face(0, 0.9, label="cat"), face(300, 0.8, label="dog")
    assert gaps([one, other], [other, one]).told() == "the same"
    moved = gaps([one, other], [face(1, 0.89, label="cat"), {**other, "label": "cow"}])
    assert (moved.missed, moved.different) == (0, ["label: dog for cow"])
    assert (round(moved.overlap, 3), round(moved.score, 3)) == (0.98, 0.01)
    assert not moved.within(0.02, 0.1)
    assert gaps([one], [one, other]).missed == gaps([one, other], [one]).missed == 1
    assert gaps([one], [face(60)]).missed == 2, "boxes that hardly overlap are of two things"


def test_points_masks_texts_and_numbers_have_measures_of_their_own() -> None:
    points = {"eye": [10.0, 10.0], "nose": [20.0, 20.0]}
    found = gaps([face(0, keypoints=points)], [face(0, keypoints={**points, "eye": [10.0, 12.0]})])
    assert (found.points, found.numbers) == (1.0, 0.0)
    assert found.within(0.0, 1.0)
    assert not found.within(0.0, 0.9)
    assert found.within(0.0, 0.5, own=found), "as far as one side is from itself"
    assert not gaps([face(0)], []).within(0.0, 0.5, own=found)
    values = np.linspace(0, 1, 400, dtype=np.float32)
    mask = [{"width": 20, "height": 20, "values": each} for each in (values, values[::-1])]
    assert gaps(mask[:1], mask[1:]).mask == 0.0
    assert gaps([{"text": "wasm"}], [{"text": "warm"}]).told() == "1 of 4 letters"
    assert gaps([{"values": values}], [{"values": values + 1e-3}]).told() == "numbers 1.0e-03"
    assert gaps([face(0, mask=None)], [face(0, mask=mask[0])]).different


def test_answers_travel_as_text_with_their_arrays(monkeypatch: Any) -> None:
    class Task:
        async def run(self, given: str) -> list[Any]:
            values = memoryview(array.array("f", [0.25, 0.75]))
            points = Landmarks([0, 0, 0, 10, 5, 3], [0.5, 1, 1, 1])
            return [Mask(2, 1, values), {"landmarks": points, "text": given}]

        async def detect_for_video(self, given: str, time_ms: float) -> list[Any]:
            return [{"text": given, "time": time_ms}]

        @classmethod
        async def create(cls, **options: Any) -> Task:
            return cls()

    async def given(name: str) -> str:
        return name.upper()

    monkeypatch.setattr(task_answers, "task_class", lambda name: Task)

    async def asked(*samples: str, film: bool = False) -> list[Any]:
        found = await task_answers.opened("mask", {}, "wasm", given, film)
        return [decoded(await found.answer(sample)) for sample in samples]

    told = asyncio.run(asked("a", "b"))
    (mask, more), _ = told
    assert mask["values"].tolist() == [0.25, 0.75]
    assert more["landmarks"]["xyz"].tolist() == [0, 0, 0, 10, 5, 3]
    assert [found[1]["text"] for found in told] == ["A", "B"]
    assert gaps(told[0], told[0]).told() == "the same"
    told = asyncio.run(asked("a_33.500.png", film=True))
    assert told == [[{"text": "A_33.500.PNG", "time": 33.5}]]


class Page:
    """An engine that answers with what it was asked, and never to one sample."""

    silent = "second.png"

    def call(self, code: str, limit_s: float) -> str:
        if self.silent in code:
            raise BuildError(f"no answer within {limit_s:.0f} s")
        return json.dumps([[{"text": "a"}], []])


def test_a_sample_that_is_not_answered_in_time_is_named_in_a_red_row() -> None:
    case, names = Case("text", "prints"), {name: [] for name in ("first.png", "second.png", "third.png")}
    answers = tasks_in_page._in_page(Page(), case, "webgpu", names, {})  # type: ignore[arg-type]
    row = tasks_in_page._row(case, "3 prints", "webgpu", [[{"text": "a"}]] * 3, answers)
    assert not row.right
    assert row.distance == "text on webgpu in the page, second.png: no answer within 600 s"


def test_a_few_values_of_pictures_and_sounds_are_moved_by_one_level(tmp_path: Path) -> None:
    random, picture, sound = np.random.default_rng(1), tmp_path / "p.png", tmp_path / "s.wav"
    Image.fromarray(np.full((300, 400, 3), 100, np.uint8)).save(picture)
    tasks_in_page._nudged_picture(picture, tmp_path / "other.png", random)
    pixels = np.asarray(Image.open(tmp_path / "other.png")).astype(int) - 100
    assert set(np.unique(pixels)) == {0, 1}
    assert 1 <= pixels.any(2).sum() <= 40, "one of 10,000"
    with wave.open(str(sound), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(np.full(100_000, -7, "<i2").tobytes())
    tasks_in_page._nudged_sound(sound, tmp_path / "other.wav", random)
    with wave.open(str(tmp_path / "other.wav")) as file:
        samples = np.frombuffer(file.readframes(100_000), "<i2")
    assert set(np.unique(samples)) == {-8, -7}
    assert 1 <= (samples == -8).sum() <= 40


def test_models_under_another_name_are_known_by_their_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given, renamed = tmp_path / "given", tmp_path / "renamed"
    given.mkdir()
    (given / "other_name.tflite").write_bytes(b"a model")
    (given / "unknown.tflite").write_bytes(b"another")
    listed = {"files": {"known.tflite": {"sha256": hashlib.sha256(b"a model").hexdigest()}, "no_hash.tflite": {}}}
    monkeypatch.setattr(tasks_in_page, "published", lambda: listed)
    monkeypatch.setattr(tasks_in_page, "RENAMED", renamed)
    monkeypatch.setattr(tasks_in_page, "GIVEN", (given, tmp_path / "nothing"))
    monkeypatch.setattr(tasks_in_page, "FOLDERS", (given, renamed))
    tasks_in_page._rename_given()
    assert [file.name for file in renamed.iterdir()] == ["known.tflite"]


def test_rows_that_agree_stand_in_a_run_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def rows(folder: Path, photos: list[Path], only: list[str], known: list[Row], keep: Any) -> list[Row]:
        stood.append([row.task for row in known])
        found = [*known, Row("faces", "wasm", 1, 1, "the same", True), Row("masks", "wasm", 1, 0, "far", False)]
        keep(found)
        return found

    stood: list[list[str]] = []
    monkeypatch.setattr(tasks_in_page, "rows", rows)
    monkeypatch.setattr(judge_tasks, "_originals", lambda images: [])
    arguments = ["--page", "--json", str(tmp_path / "rows.json")]
    assert judge_tasks.run(arguments) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "too far: masks, wasm: far"
    assert judge_tasks.run([*arguments, "--resume"]) == 1
    assert stood == [[], ["faces"]]
    with pytest.raises(BuildError, match="--json"):
        judge_tasks.run(["--page", "--resume"])


def test_frames_of_a_film_are_looked_at_where_the_other_side_looked(monkeypatch: pytest.MonkeyPatch) -> None:
    class Follower:
        """Goes one pixel to the right of where it looks."""

        _tracked: tuple[tuple[Region, str], ...] = ((Region(5, 5, 2, 2), "a"),)

        async def detect_for_video(self, given: str, time_ms: float) -> list[Any]:
            ((region, track),) = self._tracked
            self._tracked = ((Region(region.x + 1, region.y, 2, 2), track),)
            return [{"x": region.x, "track": track}]

    async def given(name: str) -> str:
        return name

    answers = task_answers.Answers(Follower(), given, film=True)
    assert answers.followed() == [(5, 5, 2, 2, 0.0)]
    assert decoded(asyncio.run(answers.answer("a_1.png"))) == [{"x": 5, "track": "a"}]
    assert answers.followed() == [(6, 5, 2, 2, 0.0)]
    told = asyncio.run(answers.answer("a_2.png", [(40.0, 5, 2, 2, 0.0)]))
    assert decoded(told) == [{"x": 40.0, "track": "a"}]
    told = asyncio.run(answers.answer("a_3.png", [(1.0, 5, 2, 2, 0.0)] * 2))
    assert decoded(told) == [{"x": 41.0, "track": "a"}], "the other side follows another number of things"


def test_every_task_with_a_known_model_has_a_case() -> None:
    missing = {*tasks.TASKS, *tasks.GIVEN_MODEL_TASKS} - {case.task for case in CASES}
    assert missing <= {"depth-estimation", "text-classification", "text-generation"} | {
        "zero-shot-classification",
        "zero-shot-image-classification",
    }
