"""Sessions and tasks that travel: small pickles, one model a process, and another model under the same name refused."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from array import array
from pathlib import Path

import pytest
from tests.session.test_processes import ROOT, doubling

import webinfer
from webinfer.package import compile_model
from webinfer.session.pickling import KEPT, OpenModels
from webinfer.tasks import pipeline
from webinfer.tasks.face_detector import FaceDetector

X = array("f", range(600))
RUN = """
import pickle, sys, time, webinfer
sessions = [pickle.loads(bytes.fromhex(line)) for line in sys.stdin.read().split()]
x = bytes(__import__("array").array("f", range(600)))
print(len({id(s.session) for s in sessions}), sum(sessions[0].run(x)["y"].tolist()))
"""


@pytest.fixture(scope="module")
def package() -> bytes:
    """The model that doubles, compiled: 600 numbers."""
    return bytes(webinfer.run_sync(compile_model(doubling(), backend="wasm", threads=False)))


@pytest.fixture
def path(package: bytes, tmp_path: Path) -> Path:
    (tmp_path / "doubling.webinfer").write_bytes(package)
    return tmp_path / "doubling.webinfer"


def test_a_pickled_session_is_small_and_runs_in_another_process_once(path: Path) -> None:
    with webinfer.load_sync(path, backend="wasm", threads=1) as session:
        data = pickle.dumps(session)
        told = sum(session.run(X.tobytes())["y"].tolist())
    assert len(data) < 1000
    done = subprocess.run(
        [sys.executable, "-c", RUN], input=f"{data.hex()} {data.hex()}", env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["1", str(told)]


def test_pickles_of_one_content_share_a_session_until_it_is_closed(path: Path, package: bytes) -> None:
    with webinfer.load_sync(path, backend="wasm") as one, webinfer.load_sync(path, backend="wasm", threads=1) as other:
        first, second = (pickle.loads(pickle.dumps(one.session)) for _ in range(2))
        assert first is second
        assert first is not one.session
        assert pickle.loads(pickle.dumps(other)).session is not first, "other options"
        first.close()
        third = pickle.loads(pickle.dumps(one.session))
        assert not third.closed
        assert pickle.loads(pickle.dumps(third)) is third
        third.close()
    with webinfer.load_sync(package, backend="wasm") as from_bytes:
        data = pickle.dumps(from_bytes)
        assert len(package) < len(data) < len(package) + 1000
        assert pickle.loads(data).run(X.tobytes())["y"].tolist() == [2 * x for x in X]


def test_a_file_that_changed_is_refused(path: Path) -> None:
    session = webinfer.load_sync(path, backend="wasm", device="sustained")  # as no other test, whose model is open here
    data = pickle.dumps(session)
    session.close()
    other = webinfer.GraphBuilder("tripling")
    other.output(other.node("linear", other.input("x", (2, 300)), a=3.0, b=0.0), "y")
    path.write_bytes(bytes(webinfer.run_sync(compile_model(other, backend="wasm", threads=False))))
    with pytest.raises(webinfer.IntegrityError, match=r"'doubling' is not the one that was pickled.*the same file"):
        pickle.loads(data)
    path.unlink()
    with pytest.raises(webinfer.ModelFormatError, match=r"doubling\.webinfer"):
        pickle.loads(data)


def test_what_cannot_be_pickled_says_why() -> None:
    with webinfer.load_sync(doubling(), backend="wasm") as session:
        for one in (session, session.session):
            with pytest.raises(webinfer.InputError, match=r"GraphBuilder 'doubling' cannot be pickled.*compile_model"):
                pickle.dumps(one)


def test_tasks_are_pickled_by_what_they_were_created_from(faces: Path) -> None:
    with webinfer.run_sync(FaceDetector.create(backend="wasm", min_score=0.6)) as task:
        with pytest.raises(webinfer.InputError, match="is a task's: pickle that"):
            pickle.dumps(task.session)
        data = pickle.dumps(task)
        assert len(data) < 1000
        first, second = pickle.loads(data), pickle.loads(data)
        assert first is second
        assert first is not task
        assert webinfer.run_sync(first(faces)) == webinfer.run_sync(task(faces))
        first.close()
    with pipeline("face-detection", backend="wasm", min_score=0.6) as script:
        one, two = (pickle.loads(pickle.dumps(script)) for _ in range(2))
        assert one is not two
        assert one.task is two.task
        assert one(faces) == script(faces)
        one.close()


@pytest.fixture
def faces() -> Path:
    """A photo with a face."""
    return Path(__file__).parents[4] / "build" / "images" / "astronaut.png"


def test_threads_that_open_one_model_wait_for_the_first() -> None:
    class Model:
        closed = False

        def close(self) -> None:
            self.closed = True

    opened, models, begin = list[str](), OpenModels[Model](lambda model: model.closed), threading.Barrier(4)
    found: list[Model] = []

    def open_one() -> Model:
        opened.append("a")
        return Model()

    def work() -> None:
        begin.wait(10)
        found.append(models.get("a", open_one))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert opened == ["a"]
    assert len(set(map(id, found))) == 1
    for i in range(KEPT):
        models.get(str(i), Model)
    assert models.get("a", Model) is not found[0], "the one used last stays"
    assert not found[0].closed, "who has one keeps it"
