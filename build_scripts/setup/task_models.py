"""MediaPipe's models for the tasks beside face detection, out of its wheel: fetched when they are asked for."""

import hashlib
import json
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

from build_scripts.errors import BuildError
from build_scripts.options import switches
from build_scripts.paths import MODELS, ROOT, settings
from build_scripts.setup.downloads import fetch_pinned
from build_scripts.steps import Step, run_steps


def task_models_step() -> Step:
    """The step that adds these models to build/models; no other step asks for it."""
    package = settings()["mediapipe"]
    return Step(
        "task models", f"fetch the models of {package['requirement']} (35 MB)",
        inputs=lambda: [json.dumps(package, sort_keys=True)],
        outputs=tuple(MODELS / PurePosixPath(member).name for member in package["members"]),
        action=_fetch, stamp=MODELS / ".stamp_tasks",
    )  # fmt: skip


def _fetch() -> None:
    package = settings()["mediapipe"]
    MODELS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        # One fixed platform: the models are wanted, not the code, and one hash then holds everywhere.
        options = ("--only-binary", ":all:", "--platform", package["platform"], "--python-version", package["python"])
        fetch_pinned(package["requirement"], package["sha256"], Path(folder), *options)
        with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
            for member, sha256 in package["members"].items():
                data = wheel.read(f"mediapipe/modules/{member}")
                if hashlib.sha256(data).hexdigest() != sha256:
                    raise BuildError(f"{member} of {package['requirement']} has another hash than the pinned one")
                (MODELS / PurePosixPath(member).name).write_bytes(data)


def run(argv: list[str]) -> int:
    """Fetches the models and prints where they lie."""
    switches("models", "Fetches the models of hands, bodies and landmarks into build/models.", argv)
    run_steps([task_models_step()])
    print(f"the models are in {MODELS.relative_to(ROOT)}; CPython finds them there, a site holds them after `setup`")
    return 0
