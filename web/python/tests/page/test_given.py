"""What a page gives tasks that take no picture: sounds, texts and bytes reach them, and their results the page."""

from __future__ import annotations

import array
import json
from typing import Any

import pytest
from tests.ops.case_graphs import run
from tests.page.test_messages import fits
from tests.tasks.test_file_classifier import RULES, first_letter
from tests.tasks.test_sentence_embedder import PIECES, fixed_model
from tests.tasks.test_voice_detector import RATE, detector, recording

from webinfer.page.task_inputs import picture_size, taken
from webinfer.page.worker import EngineWorker
from webinfer.tasks import FileTypeClassifier, SentenceEmbedder
from webinfer.tasks.base import Task


class Shown:
    """A worker with a task at work, and what it tells."""

    def __init__(self, task: Task[Any]) -> None:
        self.heard: list[dict[str, Any]] = []
        self.arrays: list[memoryview] = []
        self.worker = EngineWorker(self._hear)
        self.worker._task = task

    def _hear(self, text: str, *arrays: memoryview) -> None:
        self.heard.append(json.loads(text))
        self.arrays = [*arrays]
        fits(self.heard[-1])

    def detect(self, given: Any, live: bool = False) -> dict[str, Any]:
        run(self.worker.detect(1, given, live))
        return self.heard[-1]


def sound(*parts: tuple[float, int]) -> dict[str, Any]:
    """What a page gives for a recording: Pyodide shows typed arrays as views of numbers or of bytes."""
    return {"samples": memoryview(recording(*parts).tobytes()), "rate": RATE}


def test_a_recording_is_heard_and_a_live_one_goes_on() -> None:
    with detector() as task:
        page = Shown(task)
        whole = page.detect(sound((0.0, 10), (0.9, 20), (0.0, 10)))
        assert (len(whole["found"]), whole["image"]) == (1, None)
        assert whole["beside"] == {"probabilities": {"array": 0}, "chunk_s": 0.032}
        assert len(page.arrays[0]) == 40
        assert page.detect(sound((0.0, 10), (0.9, 4)), live=True)["found"] == []  # starts anew: too short for speech
        assert len(page.detect(sound((0.9, 10), (0.0, 10)), live=True)["found"]) == 1
        assert len(page.arrays[0]) == 34
        assert page.detect(sound((0.0, 40)))["found"] == []
        assert page.detect(sound((0.9, 4)), live=True)["found"] == []
        assert len(page.arrays[0]) == 4


def test_texts_and_bytes_reach_their_tasks_and_code_has_them_by_name() -> None:
    with run(SentenceEmbedder.create(fixed_model(), vocabulary=PIECES, backend="wasm")) as task:
        page = Shown(task)
        answer = page.detect({"texts": ["cats", "a b"]})
        assert [one["text"] for one in answer["found"]] == ["cats", "a b"]
        assert len(answer["beside"]["similarities"]) == 1
        run(page.worker.run_code("print(texts[1])", {"texts": ["cats", "a b"]}))
        assert [one["text"] for one in page.heard if one["type"] == "printed"] == ["a b\n"]
    with run(FileTypeClassifier.create(first_letter(), rules=RULES, backend="wasm")) as other:
        page = Shown(other)
        assert page.detect({"data": memoryview(b"abcd")})["found"][0]["label"] == "a"
        run(page.worker.run_code("show([])\nprint(len(data))", {"data": memoryview(b"abcd")}))
        shown = next(one for one in page.heard if one["type"] == "shown")
        assert (shown["image"], shown["result"]["kind"]) == (None, "types")
        assert page.heard[-1]["problem"] is None


@pytest.mark.parametrize("letter", ["f", "B"])
def test_samples_are_numbers_however_they_come(letter: str) -> None:
    view = memoryview(array.array("f", [0.5, -0.5]))
    samples, rate = taken({"samples": view if letter == "f" else view.cast("B"), "rate": 16000.0}, "audio")
    assert (samples.tolist(), rate) == ([0.5, -0.5], 16000)
    assert picture_size(samples, "audio") is None
