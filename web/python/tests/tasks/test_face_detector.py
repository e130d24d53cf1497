"""A detector as its users meet it: thresholds, runs that overlap, losses, second visits, what it refuses."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import TARGETS, Target
from tests.session.models import spoil
from tests.session.visits import Visitor
from tests.tasks.photos import model_path, photo
from tests.tasks.test_blazeface import NAMES, corners

import webinfer
from webinfer.backends.wasm import compilation
from webinfer.backends.wasm.stored_plan import RestoredExecutor
from webinfer.errors import DeviceLostError, InputError, ModelFormatError
from webinfer.models.registry import MODELS
from webinfer.session import loading, recovery
from webinfer.session.plan_cache import entry_name
from webinfer.tasks import Face, FaceDetector
from webinfer.tasks.ssd import EXTENSION

NAME, PHOTO, GROUP = "blazeface_short_range", "astronaut.png", "couple.jpg"
EVERYWHERE = [t for t in TARGETS if dict(t.options).get("isa", "relaxed") == "relaxed"]
WEBGPU = next(t for t in TARGETS if t.backend == "webgpu")


def detector_on(backend: str | Sequence[str], **options: Any) -> FaceDetector:
    found: FaceDetector = run(FaceDetector.create(model_path(NAME), backend=backend, **options))
    return found


def same(one: Sequence[Face], other: Sequence[Face]) -> bool:
    """Whether these are the same faces, to a hundredth of a pixel."""
    return len(one) == len(other) and all(
        corners(a) == pytest.approx(corners(b), abs=0.01) and a.score == pytest.approx(b.score, abs=1e-4)
        for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("target", EVERYWHERE, ids=str)
def test_the_least_score_holds_from_the_next_picture_on(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    target.demand()
    with detector_on(target.backend, min_score=0.3) as detector:
        first = run(detector.detect(photo(PHOTO)))
        monkeypatch.setattr(recovery, "choose", None)  # compiling anew would fail
        for detector.min_score in (1.0, 0.0, 0.3):
            faces = run(detector.detect(photo(PHOTO)))
            assert all(face.score >= detector.min_score for face in faces)
            assert (len(faces) > 50) == (detector.min_score == 0.0)
        assert same(faces, first)


@pytest.mark.parametrize("target", EVERYWHERE, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_every_step_of_a_detector_agrees_with_the_reference(target: Target, name: str) -> None:
    target.demand()
    with run(FaceDetector.create(model_path(name), backend=target.backend, strict=True)) as detector:
        report = run(detector.session.verify())
        assert report.ok, report
        assert detector.session.plan().rows[-1].op == "ssd_detections"
        assert [o.shape for o in detector.session.outputs] == [(1, 100, 17)]


def test_pictures_in_flight_together_do_not_mix() -> None:
    WEBGPU.demand()
    pictures = [photo(PHOTO), photo(GROUP)] * 3
    with detector_on("webgpu", strict=True) as detector:
        alone = [run(detector.detect(picture)) for picture in pictures]

        async def together() -> list[list[Face]]:
            return await asyncio.gather(*(detector.detect(picture) for picture in pictures))

        assert all(map(same, run(together()), alone))
        assert not same(alone[0], alone[1])


def test_after_two_losses_the_same_faces_come_from_wasm() -> None:
    WEBGPU.demand()
    with detector_on(["webgpu", "wasm"]) as detector:
        faces = run(detector.detect(photo(PHOTO)))
        for backend in ("webgpu", "wasm"):
            spoil(detector.session, DeviceLostError("lost"))
            with pytest.raises(DeviceLostError):
                run(detector.detect(photo(PHOTO)))
            assert same(run(detector.detect(photo(PHOTO))), faces)
            assert detector.session.backend == backend


def test_a_second_visit_runs_the_detector_s_own_stored_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Visitor()

    async def visit() -> tuple[list[Face], type]:
        with await FaceDetector.create(NAME, backend="wasm", host=host) as detector:
            await asyncio.sleep(0.02)
            while compilation._tasks:
                await asyncio.sleep(0.01)
            return await detector.detect(photo(PHOTO)), type(detector.session.executor)

    first, _ = run(visit())
    assert host.place == entry_name(MODELS[NAME].sha256, EXTENSION)
    monkeypatch.setattr(loading, "read_model", None)  # a call would fail
    second, executor = run(visit())
    assert executor is RestoredExecutor
    assert same(first, second)


def test_the_model_itself_still_gives_its_raw_outputs() -> None:
    with run(webinfer.load(model_path(NAME), backend="wasm")) as session:
        assert sorted(o.shape for o in session.outputs) == [(1, 896, 1), (1, 896, 16)]


@pytest.mark.parametrize("apart", [False, True])
def test_another_model_is_refused(apart: bool) -> None:
    other = webinfer.GraphBuilder()
    other.output(other.node("relu", other.input("x", (1, 128, 128, 3))))
    with pytest.raises(ModelFormatError, match="not a BlazeFace face detector"):
        run(FaceDetector.create(other, backend="wasm", decode_apart=apart))
    with pytest.raises(InputError, match="min_score"):
        run(FaceDetector.create(model_path(NAME), backend="wasm", min_score=1.5))


def test_a_picture_that_waits_while_auto_goes_to_another_backend_is_looked_at() -> None:
    detector, other = detector_on("wasm"), detector_on("reference")
    session, image = detector.session, photo(PHOTO)
    want = run(detector.detect(image))
    before = session.executor

    async def change() -> list[Face]:
        live = session._live
        async with live.lock:  # as the measurement holds it
            looking = asyncio.ensure_future(detector.detect(image))
            await asyncio.sleep(0.05)
            live.selection.executor = other.session.executor
        return await looking

    assert same(run(change()), want)
    assert session.backend == "reference"
    session._live.selection.executor = before
    detector.close()
    other.close()
