"""The known models: their rows against the files that were published."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
from pathlib import Path
from typing import Any

import pytest

import webinfer
from build_scripts.paths import MODELS as BUILT
from webinfer.errors import IntegrityError
from webinfer.host import current
from webinfer.host.interface import Progress
from webinfer.host.native import NativeHost
from webinfer.importers import read_model
from webinfer.models.layouts import BLAZEFACE
from webinfer.models.registry import MODELS, check_found, known_model, locate_model, published_hashes
from webinfer.session.loading import fetched
from webinfer.tasks import TASKS
from webinfer.tasks.base import Task
from webinfer.tasks.ssd import attributes


@pytest.mark.parametrize("name", MODELS)
def test_a_row_fits_its_file(name: str) -> None:
    known = MODELS[name]
    fetched = known.source.startswith("npm @mediapipe/") and not known.source.startswith("npm @mediapipe/pose@")
    if not fetched and not (BUILT / known.file).is_file():
        pytest.skip(f"{known.file} is fetched by `python3 -m build_scripts build models`, if by anything")
    for file, sha256 in known.beside:
        check_found(file, hashlib.sha256((BUILT / file).read_bytes()).hexdigest(), (sha256,))
    data = memoryview(Path(locate_model(name, current().asset)).read_bytes())
    check_found(name, hashlib.sha256(data).hexdigest(), published_hashes(name))
    if known.input is None:
        return
    graph = read_model(data, name)
    size = known.input.height, known.input.width
    assert [v.type.shape for v in graph.inputs] in ([(1, *size, 3)], [(1, 3, *size)])
    if known.output is not None:
        anchors = attributes(known.output).anchors
        numbers = 4 + 2 * len(known.output.keypoints)
        assert {v.type.shape for v in graph.outputs} == {(1, anchors, numbers), (1, anchors, 1)}
        assert known.output.input is known.input


def defaults(task: type[Task[Any]]) -> set[str]:
    """The options of a task that may be left out."""
    options = inspect.signature(task.create).parameters.values()
    return {o.name for o in options if o.default is not inspect.Parameter.empty}


def test_every_task_that_can_be_run_has_a_model() -> None:
    own = {name for name, task in TASKS.items() if "model" in defaults(task)}
    others = {"holistic-landmarks"}  # the models of three other tasks
    assert {known.task for known in MODELS.values()} >= own - others
    assert set(TASKS) == own
    assert {task.takes for task in TASKS.values()} <= {"picture", "audio", "text", "bytes"}
    assert all(known.output in BLAZEFACE for known in MODELS.values() if known.task == "face-detection")


def test_only_a_name_is_a_known_model() -> None:
    assert known_model("face_mesh") is MODELS["face_mesh"]
    assert known_model("face_mesh.tflite") is None
    assert known_model(b"face_mesh") is None


def test_other_bytes_than_the_published_ones_are_refused() -> None:
    with pytest.raises(IntegrityError, match="face_mesh"):
        check_found("face_mesh", hashlib.sha256(b"TFL3").hexdigest(), published_hashes("face_mesh"))


class Damaging(NativeHost):
    """A host whose stored copies have a flipped bit; `fresh` ones have it too if `always`."""

    def __init__(self, always: bool) -> None:
        super().__init__()
        self.always, self.fetched = always, list[bool]()

    async def fetch(self, url: str, progress: Progress | None = None, fresh: bool = False) -> memoryview:
        self.fetched.append(fresh)
        data = bytearray(await super().fetch(url, progress))
        if self.always or not fresh:
            data[-40] ^= 1
        return memoryview(data)


def test_a_model_that_came_damaged_is_fetched_again_once(caplog: pytest.LogCaptureFixture) -> None:
    host = Damaging(always=False)
    asyncio.run(webinfer.load("blazeface_short_range", backend="wasm", host=host)).close()
    assert host.fetched == [False, True]
    assert "came damaged" in caplog.text
    host = Damaging(always=True)
    with pytest.raises(IntegrityError, match="blazeface_short_range"):
        asyncio.run(webinfer.load("blazeface_short_range", backend="wasm", host=host))
    assert host.fetched == [False, True]


def test_files_of_all_kinds_that_came_damaged_are_fetched_again_once() -> None:
    async def fetched_by(host: Damaging) -> memoryview:
        return (await fetched("the file", str(file), (sha256,), host))[0]

    file = Path(__file__)
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    host = Damaging(always=False)
    assert asyncio.run(fetched_by(host)) == file.read_bytes()
    assert host.fetched == [False, True]
    with pytest.raises(IntegrityError, match="the file"):
        asyncio.run(fetched_by(Damaging(always=True)))
