"""The known models: their rows against the files that were published."""

from __future__ import annotations

from pathlib import Path

import pytest

from webinfer.errors import IntegrityError
from webinfer.host import current
from webinfer.importers import read_model
from webinfer.models.layouts import BLAZEFACE
from webinfer.models.registry import MODELS, check_integrity, known_model, locate_model
from webinfer.tasks import TASKS
from webinfer.tasks.ssd import attributes


@pytest.mark.parametrize("name", MODELS)
def test_a_row_fits_its_file(name: str) -> None:
    known = MODELS[name]
    data = memoryview(Path(locate_model(name, current().asset)).read_bytes())
    check_integrity(name, data)
    graph = read_model(data, name)
    assert [v.type.shape for v in graph.inputs] == [(1, known.input.height, known.input.width, 3)]
    if known.output is not None:
        anchors = attributes(known.output).anchors
        numbers = 4 + 2 * len(known.output.keypoints)
        assert {v.type.shape for v in graph.outputs} == {(1, anchors, numbers), (1, anchors, 1)}
        assert known.output.input is known.input


def test_every_task_that_can_be_run_has_a_model() -> None:
    assert {known.task for known in MODELS.values()} >= set(TASKS)
    assert all(known.output in BLAZEFACE for known in MODELS.values() if known.task == "face-detection")


def test_only_a_name_is_a_known_model() -> None:
    assert known_model("face_mesh") is MODELS["face_mesh"]
    assert known_model("face_mesh.tflite") is None
    assert known_model(b"face_mesh") is None


def test_other_bytes_than_the_published_ones_are_refused() -> None:
    with pytest.raises(IntegrityError, match="face_mesh"):
        check_integrity("face_mesh", memoryview(b"TFL3"))
