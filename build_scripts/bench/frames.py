"""`measure frames`: camera tasks, frame by frame, beside MediaPipe's packages for pages, in one page, interleaved."""

import argparse
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from build_scripts.bench.page_reports import (
    add_options,
    add_turns,
    left_for_later,
    own_entries,
    posted,
    rows_of,
    written,
)
from build_scripts.errors import BuildError
from build_scripts.paths import BENCH_OUTPUT, BUILD, MODELS, STATIC
from build_scripts.setup.sequence import set_up
from build_scripts.steps import run_steps

SILENCE_S = 900  # longest wait for the next report of the page
LIMIT_MS = 120_000  # for one call of a system
Row = dict[str, Any]


@dataclass(frozen=True)
class Watched:
    """A task that both know: ours with its models in build/models, MediaPipe's class with its files and options."""

    name: str
    task: str
    models: dict[str, str]  # option of ours -> file
    folder: str  # of npm's @mediapipe/
    rival: str  # the class that the package brings
    counted: str  # what is counted in its results
    photos: tuple[str, ...]  # the first that is there
    options: dict[str, Any] = field(default_factory=dict)
    rival_options: dict[str, Any] = field(default_factory=dict)
    rival_models: tuple[str, ...] = ()  # files that the package holds beside its graph
    painted: bool = False  # whether frames can be painted on the GPU as their masks say, and nothing is read back

    def files(self) -> list[str]:
        """The files of MediaPipe's package that a browser with SIMD fetches."""
        solution = f"{self.folder}_solution"
        graph = f"{self.folder}{'_web' if self.folder == 'pose' else ''}.binarypb"
        packed = [] if self.folder == "selfie_segmentation" else [f"{solution}_packed_assets{end}" for end in PACKED]
        simd = [f"{solution}_simd_wasm_bin.{suffix}" for suffix in ("js", "wasm", "data")]
        return [f"{self.folder}.js", graph, *packed, *simd, *self.rival_models]


# How ours gets frames: so many in flight, as the product's page does on a GPU; `painted` ones are not read back.
ONE_AT_A_TIME: tuple[Row, ...] = ({"flight": 1, "painted": False},)
ON_GPU = tuple({"flight": flight, "painted": painted} for painted in (False, True) for flight in (1, 2))
PACKED = (".data", "_loader.js")
ONE_FACE = {"maxNumFaces": 1, "refineLandmarks": True}
WATCHED = (
    Watched(
        "face landmarks", "face-landmarks",
        {"model": "face_landmark_with_attention.tflite", "detector": "face_detection_short_range.tflite"},
        "face_mesh", "FaceMesh", "multiFaceLandmarks", ("face.jpg", "astronaut.png"), {"most": 1}, ONE_FACE,
    ),
    Watched(
        "hand landmarks", "hand-landmarks",
        {"model": "hand_landmark_full.tflite", "detector": "palm_detection_full.tflite"},
        "hands", "Hands", "multiHandLandmarks", ("couple.jpg", "hand.svg"), {"most": 2},
        {"maxNumHands": 2, "modelComplexity": 1}, ("hand_landmark_full.tflite",),
    ),
    Watched(
        "pose landmarks", "pose-landmarks",
        {"model": "pose_landmark_full.tflite", "detector": "pose_detection.tflite"},
        "pose", "Pose", "poseLandmarks", ("squat.bmp", "astronaut.png"), {},
        {"modelComplexity": 1, "enableSegmentation": False}, ("pose_landmark_full.tflite",),
    ),
    Watched(
        "segmentation", "segmentation", {"model": "selfie_segmentation.tflite"},
        "selfie_segmentation", "SelfieSegmentation", "segmentationMask", ("grace_hopper.bmp", "astronaut.png"),
        {"full_size": False}, {"modelSelection": 0}, ("selfie_segmentation.tflite",),
        painted=True,
    ),
)  # fmt: skip


def run(argv: list[str]) -> int:
    """0 when the page came to its end and webinfer saw something in every photo."""
    options = parse(argv)
    if options.report:
        return report(posted(Path(options.report).read_text()), options.json)
    from build_scripts.bench.rivals import rivals_step
    from build_scripts.setup.task_models import task_models_step

    set_up()
    run_steps([rivals_step(), task_models_step()])
    site = options.static or BENCH_OUTPUT / "frames_site"
    pack(site, options)
    if options.static:
        return left_for_later(site, "frames")
    return report(rows_of(site, "frames", SILENCE_S, unsafe_eval=True), options.json)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python3 -m build_scripts measure frames", description=__doc__)
    parser.add_argument("--images", type=Path, help="a folder with photos; without it the site's own")
    parser.add_argument("--only", action="append", help="only tasks whose name holds this word; may be repeated")
    add_turns(parser)
    parser.add_argument("--frames", type=int, default=30, help="frames of a turn (default 30)")
    add_options(parser, "frames")
    options = parser.parse_args(argv)
    if options.rounds < 1 or options.frames < 1:
        raise BuildError("--rounds and --frames start at 1")
    return options


def pack(site: Path, options: argparse.Namespace) -> None:
    """Writes the page, the engine, MediaPipe's packages, models and photos into an empty folder."""
    from build_scripts.bench.rivals import MODULES, copy_script
    from build_scripts.bench.site import write_pages

    write_pages(site)
    (site / "data").mkdir()
    tasks = [task for task in WATCHED if not options.only or any(word in task.name for word in options.only)]
    for task in tasks:
        for name in task.files():
            copy_script(MODULES / "@mediapipe" / task.folder / name, site / "rivals" / "mediapipe" / task.folder / name)
        for file in task.models.values():
            shutil.copyfile(MODELS / file, site / "data" / file)
    entries: list[Row] = []
    for backend in options.backend or ["wasm"]:
        for entry in own_entries(backend, options.threads):
            ways = ON_GPU if backend == "webgpu" else ONE_AT_A_TIME
            entries += [{**entry, **way} for way in ways]
        entries.append({"system": "mediapipe", "backend": "wasm" if backend == "wasm" else "webgl", "threads": 0})
    config = {
        "rounds": options.rounds, "frames": options.frames, "warm": 20, "limit_ms": LIMIT_MS, "entries": entries,
        "tasks": [_plain(task, site, options.images) for task in tasks],
    }  # fmt: skip
    (site / "frames.json").write_text(json.dumps(config))


def _plain(task: Watched, site: Path, images: Path | None) -> Row:
    """A task as the page reads it; its photo is copied into the site."""
    folders = [folder for folder in (images, BUILD / "images", STATIC) if folder]
    there = (folder / name for name in task.photos for folder in folders)
    photo = next((path for path in there if path.is_file()), None)
    if photo is None:
        raise BuildError(f"none of the photos {', '.join(task.photos)} is in {', '.join(map(str, folders))}")
    shutil.copyfile(photo, site / "data" / photo.name)
    rival = {"folder": task.folder, "name": task.rival, "options": task.rival_options, "counted": task.counted}
    models = {option: f"data/{file}" for option, file in task.models.items()}
    own = {"name": task.name, "task": task.task, "options": task.options, "models": models, "painted": task.painted}
    return {**own, "photo": f"data/{photo.name}", "mediapipe": rival}


def report(found: Sequence[Sequence[Any]], target: Path) -> int:
    """Writes JSON and a table; 0 when every run of webinfer's found something and nothing failed."""
    rows: list[Row] = [value for key, value in found if key == "row"]
    whole = written(found, target, table(rows))
    ours = [row for row in rows if row["system"] == "webinfer"]
    return 0 if ours and whole and all(row.get("found") for row in ours) else 1


def table(rows: Sequence[Row]) -> str:
    """Markdown: a line a task and system; the ratio is that of frames a second, ours over MediaPipe's of the same kind.

    Frames a second are those of whole turns, until the last result can be read; milliseconds those until an answer.
    """
    lines = [
        "| task | system | on | threads | found | median ms | least ms | frames/s | ours ÷ MediaPipe |",
        "|---|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    rivals = {(row["task"], row["backend"]): row.get("frame_ms") for row in rows if row["system"] == "mediapipe"}
    for row in rows:
        way = (", mask stays there" if row.get("painted") else "") + (", 2 in flight" if row.get("flight") == 2 else "")
        head = f"| {row['task']} | {row['system']} | {row['backend']}{way} | {row['threads'] or '–'} |"
        if row.get("error"):
            lines.append(f"{head} | failed: {' '.join(row['error'].split())[:160]} | | | |")
            continue
        theirs = rivals.get((row["task"], "webgl" if row["backend"] == "webgpu" else row["backend"]))
        ratio = f"{theirs / row['frame_ms']:.2f}" if theirs and row["system"] == "webinfer" else ""
        figures = f"{row['found']:g} | {row['median_ms']:.2f} | {row['min_ms']:.2f} | {1000 / row['frame_ms']:.0f}"
        lines.append(f"{head} {figures} | {ratio} |")
    return "\n".join(lines) + "\n"
