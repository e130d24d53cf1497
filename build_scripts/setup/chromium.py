"""Finds a Chromium, or gets one, and says how to launch it. Everything that drives a browser asks here."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from build_scripts.errors import BuildError
from build_scripts.setup.node import major, node_commands

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chromium-headless-shell")
MAC = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")
OVERRIDE = "WEBINFER_CHROMIUM"  # path of the browser to use
DRIVERS_NODE = "PLAYWRIGHT_NODEJS_PATH"  # Playwright's name for the Node that it shall use
PLAYWRIGHT_LIMIT_S = 300
APT_LIMIT_S = 900

QUIET = (
    "--no-sandbox",  # root has no user namespace to put the renderer into
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-quic",
)
SOFTWARE_WEBGPU = ("--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader")
# The address bar's pop-ups are pages of their own: 1.5 s of a core for every window that a test opens and nobody sees.
UNSEEN = ("WebUIOmniboxPopup", "WebUIOmniboxAimPopup")
FAKE_CAMERA = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")


@contextlib.contextmanager
def driver() -> Iterator[Playwright]:
    """Playwright, ready to launch a browser."""
    from playwright.sync_api import sync_playwright

    _find_node()
    with sync_playwright() as found:
        yield found


@contextlib.contextmanager
def browser(**options: Any) -> Iterator[Browser]:
    """A headless browser until the block ends; options as of `launch_options`."""
    with driver() as playwright:
        found = playwright.chromium.launch(**launch_options(**options))
        try:
            yield found
        finally:
            found.close()


def _find_node() -> None:
    """Names a Node that runs here to Playwright: its own needs a library that bare machines lack."""
    import playwright

    own = Path(playwright.__file__).parent / "driver" / ("node.exe" if os.name == "nt" else "node")
    if DRIVERS_NODE not in os.environ and not major(str(own)):
        os.environ[DRIVERS_NODE] = next(node for node in node_commands() if major(node))


def launch_options(*, webgpu: bool = True, fake_camera: bool = False, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """Keyword arguments for Playwright's `chromium.launch`; `without` names features of Chromium's to be left out.

    Chromium reads only the last list of such features that it is given.
    """
    left_out = f"--disable-features={','.join((*UNSEEN, *without))}"
    arguments = [*QUIET, left_out, *(SOFTWARE_WEBGPU if webgpu else ()), *(FAKE_CAMERA if fake_camera else ())]
    return {"executable_path": str(chromium()), "args": arguments, "headless": True}


def chromium() -> Path:
    """The browser to drive; gets one if there is none, raises BuildError if that fails too."""
    found = _installed() or _from_playwright() or _from_apt()
    if found is None:
        raise BuildError(
            "no Chromium was found and none could be installed; install Chromium or Google Chrome, "
            f"or set {OVERRIDE} to its path"
        )
    return found


def _installed() -> Path | None:
    override = os.environ.get(OVERRIDE)
    if override:
        if not os.access(override, os.X_OK):
            raise BuildError(f"{OVERRIDE} is {override!r}, which is not a program")
        return Path(override)
    on_path = (shutil.which(name) for name in NAMES)
    return _playwrights_own() or next((Path(path) for path in on_path if path), None) or (MAC if MAC.exists() else None)


def _playwrights_own() -> Path | None:
    """The newest Chromium in Playwright's cache."""
    caches = [Path.home() / ".cache/ms-playwright", Path.home() / "Library/Caches/ms-playwright"]
    if os.environ.get("PLAYWRIGHT_BROWSERS_PATH", "0") != "0":
        caches.insert(0, Path(os.environ["PLAYWRIGHT_BROWSERS_PATH"]))
    patterns = ("chromium-*/chrome-linux*/chrome", "chromium-*/chrome-mac*/Chromium.app/Contents/MacOS/Chromium")
    found = [path for cache in caches for pattern in patterns for path in cache.glob(pattern)]
    return max(found, key=lambda path: path.parts[-3], default=None)


def _from_playwright() -> Path | None:
    print("  chromium       none found; asking Playwright for its own ...")
    _find_node()
    command = [sys.executable, "-m", "playwright", "install", "chromium"]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=PLAYWRIGHT_LIMIT_S)
    except (subprocess.SubprocessError, OSError):
        return None
    return _playwrights_own()


def _from_apt() -> Path | None:
    if not apt_install("chromium", "chromium-headless-shell"):
        return None
    return _installed()


def apt_install(*packages: str) -> bool:
    """Whether Debian packages could be installed; needs root and apt-get."""
    if not shutil.which("apt-get") or os.geteuid() != 0:
        return False
    print(f"  apt-get        install {' '.join(packages)} ...")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    options: dict[str, Any] = {"env": environment, "capture_output": True, "timeout": APT_LIMIT_S}
    try:
        subprocess.run(["apt-get", "update", "-q"], **options)
        return not subprocess.run(["apt-get", "install", "-q", "-y", *packages], **options).returncode
    except subprocess.TimeoutExpired:
        return False
