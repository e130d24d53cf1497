"""Where everything lies. Nothing else in the project spells these paths."""

import os
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
WEB = ROOT / "web"
STATIC = WEB / "static"  # the pages' scripts by what they are for, and their styles
ENGINE = WEB / "python" / "webinfer"
NODE_MODULES = WEB / "node_modules"
KERNELS = BUILD / "kernels"
WHEELS = BUILD / "wheels"  # the wheel that users install
SIGNATURES = BUILD / "generated" / "kernel_signatures.py"  # of the kernels: the engine's table of them
PAGE_ENGINE = BUILD / "engine"  # what pages of the site load of the engine, and the lock file that names it
BROWSER_WHEELS = BUILD / "browser_wheels"
MODELS = BUILD / "models"
IMAGES = BUILD / "images"
SOUNDS = BUILD / "sounds"
SNAPSHOT = BUILD / "snapshot"
PACKAGES = BUILD / "packages"  # compiled models that pages of the site run without Python
SITE = BUILD / "site"
BENCHMARKS = ROOT / "e2e_tests" / "benchmarks"
BENCH_OUTPUT = BUILD / "bench"
ZOO = ROOT.parent / "shared" / "models"  # a folder of models beside the checkout, where there is one


def page_script(name: str) -> Path:
    """The script NAME.js of web/static, whose folders say what scripts are for; no two have the same name."""
    (found,) = STATIC.rglob(f"{name}.js")
    return found


def configuration() -> dict[str, Any]:
    """The parsed pyproject.toml."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)


def settings() -> dict[str, Any]:
    """The table tool.webinfer of pyproject.toml."""
    table: dict[str, Any] = configuration()["tool"]["webinfer"]
    return table


def version() -> str:
    """The version of this checkout."""
    return str(configuration()["project"]["version"])
