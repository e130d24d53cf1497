"""`judge tasks --page`: what tasks find in the site's own page beside what they find in CPython, in the same samples.

The page is that of a task in headless Chromium, and its engine's worker runs each task on both backends: pictures come
to it as the browser decodes them. Models and samples lie at addresses of the site that the judge answers for.
"""

import base64
import contextlib
import hashlib
import json
import os
import shutil
import time
import wave
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from build_scripts.errors import BuildError
from build_scripts.judge import faces, films, words
from build_scripts.judge.answer_gaps import Gaps
from build_scripts.judge.page_engine_calls import PageEngine
from build_scripts.judge.rows import Row
from build_scripts.paths import BUILD, MODELS, PAGE_ENGINE, ROOT, ZOO
from build_scripts.setup.published import published
from build_scripts.setup.sequence import set_up
from build_scripts.setup.task_models import package_step, task_models_step
from build_scripts.steps import run_steps

BACKENDS = ("wasm", "webgpu")
MODELS_AT, SAMPLES_AT = "/judge/models/", "/judge/samples/"
FILM, FILMED, SMALL_FRAMES = "frames", "friends.jpg", 6  # a kind of samples, its photo, frames of half the size
RENAMED = BUILD / "judges" / "models"  # files of the others by the names that the engine asks for
GIVEN = (ZOO, ZOO.with_name("models_more"))
FOLDERS = (MODELS, *GIVEN, RENAMED)
PACKAGES = (
    "gestures", "tfjs", "poses", "isnet", "ppocr", "rapidocr", "silero-vad", "magika", "minilm", "bert-vocabulary",
)  # fmt: skip
ANSWERS = Path(__file__).with_name("task_answers.py")
OPENED_S, ANSWERED_S, SLOW_S = 600.0, 600.0, 20.0  # deadlines of a model and of a sample; what is told while waiting
OPEN = """
import js
from webinfer.host import current

current().assets.update({models!r})

async def given(sample):
    if {takes!r} == "text":
        return sample
    answer = await js.fetch("{samples}" + sample)
    if {takes!r} == "picture":
        return await js.createImageBitmap(await answer.blob())
    return (await answer.arrayBuffer()).to_bytes()

asked = await opened({task!r}, {options!r}, {backend!r}, given, {film!r})
None
"""
ASK = "await asked.answer({sample!r}, {followed!r})"
CLOSE = "asked.close()"
NEAR = {"wasm": 1e-3, "webgpu": 0.02}  # of scores, vectors, maps, points in metres and times in seconds
NEAR_IN_FILM = 0.02  # the same, where answers are smoothed from frame to frame
# Of pixels or samples of sound, each changed by one level: a hand whose region follows from a body's points moves by
# 1.6 to 4 % of its width, and scores of integers that are made of a spectrogram by 0.035 (CPython, 2026-11-28).
NUDGED, NUDGES = 1e-4, 3  # and how many times this is tried
FARTHEST = 0.1  # % of the width of a thing, mean of its points
FARTHEST_OF_PERSON = 1.0  # the same, where regions follow from landmarks

Array = np.ndarray[Any, Any]
Followed = list[tuple[float, ...]]  # regions, as `task_answers` tells them


@dataclass(frozen=True)
class Case:
    """A task with a model, and the kind of samples that it is run on, as `_samples` names them."""

    task: str
    samples: str
    options: Mapping[str, Any] = field(default_factory=dict)
    farthest: float = FARTHEST
    takes: str = "picture"
    is_sensitive: bool = False  # as a small change of the sample changes much; CPython is compared with itself too
    most: int | None = None  # samples
    limit_s: float = ANSWERED_S  # of a sample

    @property
    def is_film(self) -> bool:
        """Whether things are followed from sample to sample."""
        return self.samples == FILM

    @property
    def name(self) -> str:
        """The task, with the model where it is named."""
        return f"{self.task} {self.options['model']}" if "model" in self.options else self.task


def _models(task: str, samples: str, *names: str, **options: Any) -> list[Case]:
    return [Case(task, samples, {"model": name, **options}) for name in names]


CASES = (
    *_models("face-detection", "faces", "blazeface_short_range", "blazeface_full_range", "blazeface_full_range_sparse"),
    *_models("face-landmarks", "photos", "face_mesh", "face_mesh_attention", most=4),
    *_models("hand-landmarks", "photos", "hand_landmark_full", "hand_landmark_lite", most=4),
    Case("pose-landmarks", "photos", {"output_segmentation_masks": True}),
    Case("holistic-landmarks", "photos", farthest=FARTHEST_OF_PERSON, is_sensitive=True),
    Case("gesture-recognition", "photos", {"most": 4}),
    *_models("segmentation", "photos", "selfie_segmentation", "selfie_segmentation_landscape"),
    Case("background-removal", "photos", {"model": "isnet_small"}, most=1, limit_s=1800.0),  # on a GPU in software
    *_models("body-segmentation", "photos", "bodypix_075_720_1280_quant", "bodypix_075_512_512_quant_decoder"),
    *_models(
        "multi-pose", "photos", "movenet_multipose", "movenet_lightning", "movenet_thunder", "posenet",
        "posenet_075_353_481_quant",
    ),
    *_models("object-detection", "photos", "nanodet", "centernet", "ssd_mobilenet_v1_coco_quant_postprocess"),
    *_models("classification", "photos", "mobilenet_v2_100_224_quant", "mobilenet_v1_025_128_quant"),
    *_models("image-embedding", "photos", "mobilenet_v2_100_224_quant", features=True),
    Case("text", "prints"),
    *(Case("voice-activity", "recordings", {"model": name}, takes="audio")
      for name in ("silero_vad_v6", "silero_vad_sequence")),
    Case("audio-classification", "recordings", {"model": "yamnet"}, takes="audio", is_sensitive=True),
    Case("file-type", "files", takes="bytes"),
    Case("sentence-embedding", "texts", takes="text"),
    Case("face-landmarks", FILM, {"most": 2}),
    *(Case(task, FILM) for task in ("face-detection", "pose-landmarks")),
)  # fmt: skip


def decoded(text: str) -> Any:
    """An answer that `task_answers` made: its arrays are NumPy's."""
    found, rows = json.loads(text)
    arrays = [np.frombuffer(base64.b64decode(data), form) for form, data in rows]

    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            if {*value} == {"array"}:
                return arrays[value["array"]]
            return {key: filled(one) for key, one in value.items()}
        return [filled(one) for one in value] if isinstance(value, list) else value

    return filled(found)


def rows(
    folder: Path, photos: Sequence[Path], only: Sequence[str] = (), known: Sequence[Row] = (),
    keep: Callable[[Sequence[Row]], None] = lambda found: None,
) -> list[Row]:  # fmt: skip
    """A row for each case whose models are at hand, and each backend of the page. `folder` is for samples.

    Rows that are `known` are not compared again. `keep` gets all rows so far, whenever there is another one.
    """
    if unknown := sorted({*only} - {name for case in CASES for name in (case.task, case.name)}):
        raise BuildError(f"no such tasks: {', '.join(unknown)}; there are {', '.join(sorted({c.task for c in CASES}))}")
    set_up()
    import webinfer

    run_steps([task_models_step(), *map(package_step, PACKAGES), package_step("recordings", "judge_packages")])
    os.environ["WEBINFER_MODELS"] = os.pathsep.join(map(str, FOLDERS))
    _rename_given()
    samples, models = _samples(folder, photos), _models_at_hand()
    files: dict[str, Path | str] = {SAMPLES_AT: folder, **{MODELS_AT + name: path for name, path in models.items()}}
    found = list(known)
    with PageEngine(files) as engine:
        for case in CASES:
            if only and case.task not in only and case.name not in only:
                continue
            if (model := case.options.get("model")) is not None and _file_of(model) is None:
                print(f"{case.name} is not judged: its model is not at hand")
                continue
            names = samples[case.samples][: case.most]
            whats = {backend: f"{len(names)} {case.samples}, page on {backend}" for backend in BACKENDS}
            missing = [b for b, what in whats.items() if (case.name, what) not in {(r.task, r.sample) for r in known}]
            if not missing:
                continue
            begun = time.monotonic()
            wanted, followed = webinfer.run_sync(_in_cpython(case, folder, names))
            own = _own_gaps(case, folder, names, wanted) if case.is_sensitive else None
            _tell(f"{case.name}, {len(names)} {case.samples}: CPython took {time.monotonic() - begun:.0f} s")
            for backend in missing:
                begun = time.monotonic()
                answers = _in_page(engine, case, backend, dict(zip(names, followed, strict=True)), models)
                found.append(_row(case, whats[backend], backend, wanted, answers, own))
                taken = time.monotonic() - begun
                _tell(f"{case.name}, {whats[backend]}: {found[-1].distance}, {taken:.0f} s", found[-1].right)
                keep(found)
    return found


def _tell(what: str, right: bool = True) -> None:
    """Says how far the judge is, and when: some cases take minutes."""
    print(f"{time.strftime('%H:%M:%S')} {what}{'' if right else '  <- too far'}", flush=True)


def _row(
    case: Case, what: str, backend: str, wanted: Sequence[Any], answers: Iterable[Any], own: Gaps | None = None
) -> Row:
    gaps = Gaps()
    try:
        for ours, theirs in zip(answers, wanted, strict=True):
            gaps.lists(ours, theirs)
    except BuildError as error:
        return Row(case.name, what, 0, sum(map(len, wanted)), str(error), False)
    near = NEAR_IN_FILM if case.is_film else NEAR[backend]
    told = gaps.told() + (f" (CPython, {NUDGED:g} of the values by one level: {own.told()})" if own else "")
    return Row(case.name, what, gaps.things, gaps.others, told, gaps.within(near, case.farthest, own))


def _own_gaps(case: Case, folder: Path, names: Sequence[str], wanted: Sequence[Any]) -> Gaps:
    """How far CPython's answers move where a few values of the samples differ by one level."""
    import webinfer

    random, gaps = np.random.default_rng(1), Gaps()
    for _ in range(NUDGES):
        nudged = [f"nudged_{name}" for name in names]
        for name, other in zip(names, nudged, strict=True):
            (_nudged_sound if case.takes == "audio" else _nudged_picture)(folder / name, folder / other, random)
        for ours, theirs in zip(webinfer.run_sync(_in_cpython(case, folder, nudged))[0], wanted, strict=True):
            alike = Gaps()
            alike.lists(ours, theirs)
            if not alike.missed and not alike.different:  # else other things were compared with each other
                gaps.lists(ours, theirs)
    return gaps


def _nudged_picture(file: Path, to: Path, random: np.random.Generator) -> None:
    pixels = np.array(Image.open(file).convert("RGB"))
    pixels[random.random(pixels.shape[:2]) < NUDGED] ^= 1
    Image.fromarray(pixels).save(to, compress_level=1)


def _nudged_sound(file: Path, to: Path, random: np.random.Generator) -> None:
    with wave.open(str(file)) as sound:
        params, data = sound.getparams(), sound.readframes(sound.getnframes())
    samples = np.frombuffer(data, f"<i{params.sampwidth}").copy()
    samples[random.random(samples.shape) < NUDGED] ^= 1
    with wave.open(str(to), "wb") as nudged:
        nudged.setparams(params)
        nudged.writeframes(samples.tobytes())


def _in_page(
    engine: PageEngine, case: Case, backend: str, samples: Mapping[str, Followed], models: Mapping[str, Path]
) -> Iterator[Any]:
    """The answers in the page to each sample; with frames comes where CPython looked for what it follows.

    Raises:  BuildError naming the case and the sample, if one is not answered in time
    """
    program = ANSWERS.read_text() + OPEN.format(
        models={f"models/{name}": MODELS_AT + name for name in models}, takes=case.takes, samples=SAMPLES_AT,
        task=case.task, options=dict(case.options), backend=backend, film=case.is_film,
    )  # fmt: skip
    called = f"{case.name} on {backend} in the page"
    try:
        engine.call(program, OPENED_S)
    except BuildError as error:
        raise BuildError(f"{called}, opening its model: {error}") from error
    for i, (name, followed) in enumerate(samples.items(), 1):
        begun = time.monotonic()
        try:
            text = engine.call(ASK.format(sample=name, followed=followed), case.limit_s)
        except BuildError as error:
            raise BuildError(f"{called}, {name}: {error}") from error
        if (taken := time.monotonic() - begun) > SLOW_S:
            _tell(f"{called}, {i} of {len(samples)}, {name}: {taken:.0f} s")
        yield decoded(text)
    engine.call(CLOSE, OPENED_S)


async def _in_cpython(case: Case, folder: Path, names: Sequence[str]) -> tuple[list[Any], list[Followed]]:
    """The answers to each sample, and the regions that were followed into it."""
    from build_scripts.judge.task_answers import opened

    async def given(name: str) -> Any:
        if case.takes == "text":
            return name
        return np.asarray(Image.open(folder / name)) if case.takes == "picture" else (folder / name).read_bytes()

    found, followed = [], []
    with contextlib.closing(await opened(case.task, case.options, "wasm", given, case.is_film)) as asked:
        for name in names:
            followed.append(asked.followed())
            found.append(decoded(await asked.answer(name)))
    return found, followed


def _file_of(model: str) -> Path | None:
    from webinfer.models.registry import MODELS as KNOWN

    known = KNOWN[model]
    names = known.file, f"{known.name}{Path(known.file).suffix}"
    return next((folder / name for name in names for folder in FOLDERS if (folder / name).is_file()), None)


def _rename_given() -> None:
    """Copies models that folders hold under another name: they are known by the hashes of what is published."""
    names = {row["sha256"]: name for name, row in published()["files"].items() if "sha256" in row}
    RENAMED.mkdir(parents=True, exist_ok=True)
    for file in (file for folder in GIVEN for file in folder.glob("*.tflite")):
        name = names.get(hashlib.sha256(file.read_bytes()).hexdigest())
        if name is not None and not any((folder / name).is_file() for folder in FOLDERS):
            shutil.copyfile(file, RENAMED / name)


def _models_at_hand() -> dict[str, Path]:
    """Files of known models, and those beside them, by the names that the engine asks for."""
    from webinfer.models.registry import MODELS as KNOWN

    found = {known.file: path for known in KNOWN.values() if (path := _file_of(known.name)) is not None}
    beside = {file for known in KNOWN.values() for file, _ in known.beside}
    return found | {file: folder / file for folder in FOLDERS for file in beside if (folder / file).is_file()}


def _film(folder: Path, photo: Path) -> list[str]:
    """Writes the frames of a film that pans, goes back, pans on and becomes smaller; their names."""
    frames, times = films.films(Image.open(photo).convert("RGB"))["seek"]
    names = []
    for i, (frame, time_ms) in enumerate(zip(frames, times, strict=True)):
        names.append(f"film_{i:02}_{time_ms:.3f}.png")
        image = Image.fromarray(frame)
        image = image.resize((image.width // 2, image.height // 2)) if i >= len(frames) - SMALL_FRAMES else image
        image.save(folder / names[-1], compress_level=1)
    return names


def _samples(folder: Path, photos: Sequence[Path]) -> dict[str, list[str]]:
    """Writes samples of all kinds into a folder, pictures as PNG, so that all decoders see the same; their names."""
    found: dict[str, list[str]] = {"photos": [], "faces": [], "prints": [], "recordings": [], "files": []}
    for photo in photos:
        image = Image.open(photo).convert("RGB")
        for name, view in faces.variants(image).items():
            file = f"{photo.stem} {name}.png".replace(" ", "_")
            view.save(folder / file, compress_level=1, icc_profile=None)  # which a page applies, and Pillow does not
            found["faces"].append(file)
            found["photos"] += [file] if view is image else []
    found[FILM] = _film(folder, next((path for path in photos if path.name == FILMED), photos[0]))
    for name, look in words.DRAWN.items():
        found["prints"].append(f"print_{name}.png".replace(" ", "_"))
        words.draw(folder / found["prints"][-1], *look)
    for recording in sorted((BUILD / "recordings").glob("*.wav")):
        shutil.copyfile(recording, folder / recording.name)
        found["recordings"].append(recording.name)
    kinds = {
        path.suffix: path
        for place in (ROOT, ROOT / "web" / "player", PAGE_ENGINE, MODELS)
        for path in place.glob("[!.]*.*")
    }
    for path in kinds.values():
        (folder / f"file_{path.name}").write_bytes(path.read_bytes()[:100_000])
        found["files"].append(f"file_{path.name}")
    return {**found, "texts": [text for text in words.HARD_TEXTS if text.strip()]}
