"""A pipeline is called in scripts and awaited in async code; it reads files and follows faces through films."""

from __future__ import annotations

import ast
import asyncio
import importlib.machinery
import importlib.util
import inspect
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import webinfer
from webinfer import tasks
from webinfer.errors import InputError
from webinfer.host.video import camera_frames
from webinfer.language.generator import TextGenerator
from webinfer.pipelines import Batch, Results
from webinfer.tasks import FaceDetector
from webinfer.tasks.names import ALIASES

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


class _Camera:
    """OpenCV's capture, of a camera that shows the photo twice and is gone then; its frames are BGR."""

    def __init__(self, number: int) -> None:
        self.number, self.left, self.released = number, 2, False
        CAMERAS.append(self)

    def isOpened(self) -> bool:
        return self.number == 0

    def read(self):
        self.left -= 1
        return self.left >= 0, np.asarray(Image.open(PHOTO).convert("RGB"))[..., ::-1]

    def release(self) -> None:
        self.released = True


CAMERAS: list[_Camera] = []


@pytest.fixture
def opencv(monkeypatch):
    CAMERAS.clear()
    module = types.ModuleType("cv2")
    module.__spec__ = importlib.machinery.ModuleSpec("cv2", None)
    module.VideoCapture = _Camera
    monkeypatch.setitem(sys.modules, "cv2", module)


@pytest.mark.parametrize("camera", [0, "camera:0"])
def test_a_camera_is_a_stream_and_its_faces_are_followed(faces, opencv, camera) -> None:
    truth = faces(Image.open(PHOTO).convert("RGB"))
    first, second = list(faces.stream(camera))
    assert (first.source, second.source) == ("camera:0#0", "camera:0#1")
    assert len(first) == len(truth)
    assert [one.id for one in first] == [one.id for one in second]
    assert [one.released for one in CAMERAS] == [True]


def test_a_camera_that_is_left_is_freed(faces, opencv) -> None:
    frames = camera_frames(0)
    next(frames)
    frames.close()
    assert CAMERAS[0].released


def test_a_camera_that_is_not_there_and_a_missing_library_are_named(faces, opencv, monkeypatch) -> None:
    with pytest.raises(InputError, match="there is no camera 3"):
        next(faces.stream(3))
    assert CAMERAS[0].released
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="camera 0 needs OpenCV: pip install"):
        next(faces.stream("camera:0"))


def test_type_checkers_know_the_class_behind_each_name() -> None:
    """Every name and alias has an overload of `pipeline`, which gives the class that it is at run time."""
    tree, found = ast.parse(Path(tasks.__file__).read_text()), {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "pipeline" and node.decorator_list:
            kind = node.args.args[0].annotation
            if isinstance(kind, ast.Subscript):
                names = kind.slice.elts if isinstance(kind.slice, ast.Tuple) else [kind.slice]
                found |= {name.value: ast.unparse(node.returns) for name in names}
    known = [*tasks.TASKS, *tasks.GIVEN_MODEL_TASKS]
    wanted = {name: name for name in known} | {alias: name for alias, name in ALIASES.items() if name in known}
    assert found == {name: f"Pipeline[{tasks.task_class(task).__name__}]" for name, task in wanted.items()}


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


def test_each_task_is_called_in_scripts_and_awaited_in_async_code() -> None:
    names = [*tasks.TASKS, *tasks.GIVEN_MODEL_TASKS, *tasks.LATE_TASKS]
    assert len(names) > 20
    for name in names:
        pending = webinfer.pipeline(name)  # which opens nothing
        assert callable(pending), name
        assert not inspect.iscoroutinefunction(type(pending).__call__), name
        assert hasattr(pending, "__await__"), name
        kind = TextGenerator if name in tasks.LATE_TASKS else tasks.task_class(name)
        assert inspect.iscoroutinefunction(kind.__call__), name


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: webinfer.pipeline("face-detction"), "did you mean 'face-detection'"),
        (lambda: webinfer.pipeline("face-detection", min_scor=0.3), "did you mean 'min_score'"),
        (lambda: webinfer.load_sync("blazeface_short_rang"), "did you mean 'blazeface_short_range'"),
        (lambda: webinfer.load_sync("blazeface_short_range", backend="wsm"), "did you mean 'wasm'"),
    ],
)
def test_a_name_that_nobody_knows_is_answered_with_the_nearest(wrong, said) -> None:
    with pytest.raises(webinfer.WebinferError, match=said):
        wrong()


@pytest.mark.parametrize("name", ["depth-estimation", "text-classification", "zero-shot-image-classification"])
def test_a_task_without_a_model_of_its_own_says_that_it_needs_one(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} has no model.* of its own; give model"):
        _ = webinfer.pipeline(name).task


def test_an_option_that_a_call_lacks_is_named(faces) -> None:
    with pytest.raises(InputError, match=r"has no option 'regon'; it has region; did you mean 'region'"):
        faces(PHOTO, regon=None)
