"""A pipeline is called in scripts and awaited in async code; it reads files and follows faces through films."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import webinfer
from webinfer.pipelines import Batch, Results
from webinfer.tasks import FaceDetector

PHOTO = Path(__file__).resolve().parents[4] / "build" / "images" / "astronaut.png"
pytestmark = pytest.mark.skipif(not PHOTO.is_file(), reason=f"there is no {PHOTO}: run build_scripts setup")


@pytest.fixture(scope="module")
def faces():
    with webinfer.pipeline("face-detection", backend="wasm") as found:
        yield found


def test_a_call_waits_and_takes_what_files_and_arrays_there_are(faces, tmp_path) -> None:
    picture = Image.open(PHOTO).convert("RGB")
    picture.save(tmp_path / "a.png")
    truth = faces(picture)
    assert isinstance(truth, Results)
    assert len(truth) >= 1
    array = np.asarray(picture)
    for given in (tmp_path / "a.png", str(tmp_path / "a.png"), (tmp_path / "a.png").read_bytes(), array, array / 255.0):
        found = faces(given)
        assert [face.box for face in found] == [face.box for face in truth]
    assert faces(tmp_path / "a.png").source == str(tmp_path / "a.png")
    assert truth.size == picture.size
    assert truth.plot().size == picture.size
    batch = faces([picture, tmp_path / "a.png"])
    assert isinstance(batch, Batch)
    assert [len(one) for one in batch] == [len(truth)] * 2
    assert isinstance(faces(tmp_path), Batch)


def test_streams_give_results_one_after_the_other(faces) -> None:
    picture = Image.open(PHOTO).convert("RGB")
    seen = [(one.source, len(one)) for one in faces.stream(picture for _ in range(2))]
    assert [name for name, _ in seen] == ["0", "1"]
    assert all(count >= 1 for _, count in seen)


def test_awaited_it_is_the_task_whose_calls_are_awaited() -> None:
    async def main() -> list[object]:
        task = await webinfer.pipeline("face-detection", backend="wasm")
        with task:
            picture = Image.open(PHOTO)
            found = await task(picture)
            streamed = [one async for one in task.stream([picture, picture])]
            return [task, found, streamed, await task.run(picture)]

    task, found, streamed, plain = asyncio.run(main())
    assert isinstance(task, FaceDetector)
    assert list(found) == plain
    assert [list(one) for one in streamed] == [plain] * 2


def test_a_script_inside_a_running_loop_may_call_it(faces) -> None:
    async def main() -> int:
        return len(faces(Image.open(PHOTO)))

    assert asyncio.run(main()) >= 1
