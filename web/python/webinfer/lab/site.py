"""The lab's page, served by what pip installed: its scripts and its server lie in the wheel, below `_lab`.

The engine that devices load is packed anew from the installed files, and so are the packages that it needs; Pyodide
comes from npm. The server is a program of its own, which knows nothing of the engine: here it is imported, by name.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import importlib
import importlib.metadata
import importlib.util
import io
import json
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from webinfer.errors import InputError
from webinfer.host.interface import Progress, ProgressEvent
from webinfer.lab.errors import NoSiteError
from webinfer.lab.pyodide_files import LOCK, pyodide_files
from webinfer.page.facts import facts_for_pages
from webinfer.version import VERSION

ENGINE = Path(__file__).resolve().parents[1]
PARTS = ENGINE / "_lab"  # of a wheel
SERVER = "server.lab.alone"
NEEDED = {"fastapi": "fastapi", "uvicorn": "uvicorn", "sqlalchemy": "sqlalchemy", "websockets": "websockets"}
PACKAGES = {
    "webinfer": ("jinja2",),
    "jinja2": ("markupsafe",),
    "markupsafe": (),
}  # that devices load, and what they need
NO_BROWSER = ("webinfer/_lab/", "webinfer/_kernels/", "webinfer/_static/")  # served as files, or not at all
NO_CODE = (".so", ".pyd", ".dylib", ".pyc")  # of another machine than a browser's
DATABASE = "webinfer-lab.sqlite"
PACKED_BYTES = 1024  # from here on a file is compressed
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".mjs": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
    ".webmanifest": "application/manifest+json",
    ".whl": "application/zip",
    ".zip": "application/zip",
}


async def serve_lab(
    told: Callable[[str], None],
    *,
    host: str,
    port: int,
    database: str | None = None,
    workers: int = 1,
    pyodide: Path | None = None,
    certificate: Path | None = None,
    key: Path | None = None,
    progress: Progress | None = None,
) -> None:
    """Serves the lab until it is stopped; `told` hears the addresses for devices and for programs.

    `database` is SQLAlchemy's address of where results go, else a file in the current folder; `workers` how many
    processes serve; `pyodide` a folder with the files of npm's package, else npm fetches them once.

    Raises:  NoSiteError if the installation lacks something, saying what brings it; InputError for what is asked for
    """
    if not PARTS.is_dir():
        raise NoSiteError("this is a checkout, whose server is python3 -m build_scripts serve --lab")
    if missing := [package for module, package in NEEDED.items() if importlib.util.find_spec(module) is None]:
        raise NoSiteError(f"the lab's server needs {', '.join(missing)}: pip install 'webinfer[lab]'")
    with tempfile.TemporaryDirectory() as place:
        write_site(Path(place), pyodide_files(pyodide, progress), progress)
        sys.path.insert(0, str(PARTS))
        server: Any = importlib.import_module(SERVER)
        kept = database or f"sqlite:///{Path(DATABASE).resolve()}"
        secure = {"certificate": certificate, "key": key}
        try:
            await server.serve(Path(place), told, host=host, port=port, database=kept, workers=workers, **secure)
        except server.LabServerError as error:
            raise InputError(str(error)) from error


def write_site(folder: Path, pyodide: Mapping[str, bytes], progress: Progress | None = None) -> None:
    """Writes what the lab's page and its engine load, and the manifest by which the server finds it.

    Raises:  NoSiteError if a package that devices load is not installed
    """
    static = {path.name: path.read_bytes() for path in sorted((PARTS / "static").iterdir())}
    kernels = {path.name: path.read_bytes() for path in sorted((ENGINE / "_kernels").glob("*.wasm"))}
    lock = json.loads(pyodide[LOCK])
    runtime = {name: data for name, data in pyodide.items() if name != LOCK}
    rows = dict[str, Any]()
    folders = {"pyodide": runtime, "python": _python(lock), "static": static, "kernels": kernels}
    addresses, total = {}, sum(map(len, folders.values()))
    for kind, files in folders.items():
        digest = hashlib.sha256(b"".join(hashlib.sha256(files[name]).digest() for name in sorted(files)))
        addresses[kind] = f"/assets/{kind}-{digest.hexdigest()[:16]}"
        place = folder / addresses[kind].lstrip("/")
        place.mkdir(parents=True)
        for name, data in files.items():
            rows[f"{kind}/{name}"] = _written(place / name, f"{addresses[kind]}/{name}", data)
            if progress is not None:
                progress(ProgressEvent("prepare the lab's page", len(rows), total, "steps"))
    facts = {**facts_for_pages(), "models": {}, "late": {}, "packages": {}, "tasks": {}}
    manifest = {"version": 1, "engine": VERSION, "page": facts, "folders": addresses, "assets": rows}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def _written(file: Path, address: str, data: bytes) -> dict[str, Any]:
    """Writes a file, and beside it the same as gzip where that is smaller; its row in the manifest."""
    file.write_bytes(data)
    encodings = {}
    if len(data) >= PACKED_BYTES and file.suffix not in (".whl", ".zip"):
        small = gzip.compress(data, compresslevel=6, mtime=0)
        file.with_name(f"{file.name}.gz").write_bytes(small)
        encodings["gzip"] = len(small)
    row = {"url": address, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    return {**row, "type": TYPES[file.suffix], "encodings": encodings}


def _python(lock: Mapping[str, Any]) -> dict[str, bytes]:
    """The packages that devices load as wheels, and Pyodide's lock file of these."""
    files, packages = dict[str, bytes](), {}
    for name, needs in PACKAGES.items():
        try:
            found = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError as error:
            raise NoSiteError(f"devices need {name}, which is not installed here: pip install {name}") from error
        data = _wheel(found.files or ())
        file = f"{name}-{found.version}-py3-none-any.whl"
        files[file] = data
        packages[name] = {
            "name": name, "version": found.version, "file_name": file, "install_dir": "site",
            "sha256": hashlib.sha256(data).hexdigest(), "package_type": "package", "imports": [name],
            "depends": list(needs), "unvendored_tests": False,
        }  # fmt: skip
    return {**files, LOCK: json.dumps({"info": lock["info"], "packages": packages}).encode()}


def _wheel(files: Iterable[importlib.metadata.PackagePath]) -> bytes:
    """An archive of an installed package's files, without what no browser loads: same files, same bytes."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in sorted(files, key=str):
            name = file.as_posix()
            if name.startswith(("..", "/", *NO_BROWSER)) or file.suffix in NO_CODE:
                continue
            with contextlib.suppress(FileNotFoundError):  # recorded by pip, but removed since
                packed.writestr(zipfile.ZipInfo(name), file.read_binary(), zipfile.ZIP_DEFLATED)
    return archive.getvalue()
