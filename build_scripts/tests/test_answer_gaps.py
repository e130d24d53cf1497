"""Answers of a page beside those of CPython: what counts as a gap, and how they travel."""

from __future__ import annotations

import array
import asyncio
from typing import Any

import numpy as np

from build_scripts.judge import task_answers
from build_scripts.judge.answer_gaps import Gaps
from build_scripts.judge.tasks_in_page import CASES, decoded
from webinfer import tasks
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

        def __enter__(self) -> Task:
            return self

        def __exit__(self, *error: object) -> None:
            """Closes nothing."""

    async def given(name: str) -> str:
        return name.upper()

    monkeypatch.setattr(task_answers, "task_class", lambda name: Task)
    told = decoded(asyncio.run(task_answers.answers("mask", {}, "wasm", ["a", "b"], given)))
    (mask, more), _ = told
    assert mask["values"].tolist() == [0.25, 0.75]
    assert more["landmarks"]["xyz"].tolist() == [0, 0, 0, 10, 5, 3]
    assert [found[1]["text"] for found in told] == ["A", "B"]
    assert gaps(told[0], told[0]).told() == "the same"
    told = decoded(asyncio.run(task_answers.answers("mask", {}, "wasm", ["a_33.500.png"], given, film=True)))
    assert told == [[{"text": "A_33.500.PNG", "time": 33.5}]]


def test_every_task_with_a_known_model_has_a_case() -> None:
    missing = {*tasks.TASKS, *tasks.GIVEN_MODEL_TASKS} - {case.task for case in CASES}
    assert missing <= {"depth-estimation", "text-classification", "text-generation"} | {
        "zero-shot-classification",
        "zero-shot-image-classification",
    }
