"""`export`: the built site, or one demo of it, as plain files for a static host, below any path.

The pages are the server's, with relative addresses. What a static host cannot do is done in the browser: a service
worker adds the headers that isolate pages and opens them without a network, a meta element says the security policy.
"""

import argparse
import json
import posixpath
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from build_scripts.errors import BuildError
from build_scripts.paths import ENGINE
from build_scripts.setup.sequence import set_up
from build_scripts.site.bundle import player_page
from server.integrity import policy_with
from server.manifest import Manifest, read_manifest
from server.middleware import CONTENT_SECURITY_POLICY
from server.routes_assets import SERVICE_WORKER
from server.routes_docs import documentation
from server.routes_pages import application_pages
from server.settings import Settings
from server.studio import Demo, Studio, read_studio

ADDRESS = re.compile(
    r"\b((?:href|src|data-home|data-recorded|data-drawer|data-address|data-script|data-catalogue|"
    r'data-player|data-worker|data-package)=")/([^"#?]*)'
)
ISLAND = re.compile(r'"/(?=assets/)')  # the list of files, as JSON
HEADER_ONLY = "frame-ancestors"  # what no meta element may say
MARK = "webinfer-export"  # a file that says that a folder may be replaced


def run(argv: list[str]) -> int:
    """Writes the folder and says what is in it."""
    parser = argparse.ArgumentParser(prog="python3 -m build_scripts export")
    parser.add_argument("folder", type=Path, help="new, empty, or an earlier export, which is replaced")
    parser.add_argument("--demo", metavar="SLUG", help="only this demo, as the first page; else the whole site")
    parser.add_argument("--package", type=Path, metavar="NAME.webinfer", help="only a page that runs this package")
    parser.add_argument("--not-isolated", action="store_true", help="without the service worker's headers: one thread")
    options = parser.parse_args(argv)
    check_folder(options.folder)
    if options.package is not None:
        return _export_package(options.package, options.folder)
    set_up()
    pages, files, nbytes = export(options.folder, options.demo, not options.not_isolated)
    print(f"{options.folder}: {pages} pages, {files} files, {nbytes / 1e6:.1f} MB; ready for any static host")
    print(f"to view it here: python3 -m http.server --directory {options.folder}")
    return 0


def _export_package(package: Path, folder: Path) -> int:
    sys.path.insert(0, str(ENGINE.parent))
    from webinfer.errors import WebinferError
    from webinfer.package.web_page import export_page

    try:
        files = export_page(package, folder, player_page())
    except (WebinferError, OSError) as error:
        raise BuildError(str(error)) from error
    print(f"{folder}: {len(files)} files, {sum(files.values()):,} bytes; ready for any static host")
    return 0


def export(folder: Path, slug: str | None, isolate: bool, settings: Settings | None = None) -> tuple[int, int, int]:
    """Writes the site, or the demo of this name, into a folder; how many pages and files, and the files' bytes.

    Raises: BuildError if there is no such demo, or if the folder holds something else
    """
    settings = settings or Settings()
    manifest, studio = read_manifest(settings.site), read_studio(settings.tables)
    if slug is not None:
        demo = next((demo for demo in studio.demos if demo.slug == slug), None)
        if demo is None:
            raise BuildError(f"there is no demo {slug!r}; there are {', '.join(demo.slug for demo in studio.demos)}")
        manifest, studio = files_of(manifest, demo), Studio((demo,), (), documented=False)
    page = {**manifest.public["page"], "late": {}}  # nobody fetches models there
    manifest = replace(manifest, public={**manifest.public, "page": page})
    pages = application_pages(manifest, replace(settings, fetch_models=""), studio)
    files_beside: dict[str, bytes] = {}
    if slug is not None:
        pages = {"/": pages[f"/{slug}"]}
    else:
        docs, beside_docs = documentation(manifest, settings, studio)
        files_beside |= beside_docs
        pages |= {"/docs" if name == "index" else f"/docs/{name}": body for name, body in docs.items()}
    check_folder(folder)
    try:
        with _whole_files().replaced(folder) as fresh:
            _write_site(fresh, settings.site, manifest, pages, isolate)
            for name, data in files_beside.items():
                _write(fresh / name, data)
    except OSError as error:
        raise BuildError(f"nothing is exported: {error}") from error
    files = [path for path in folder.rglob("*") if path.is_file()]
    return len(pages), len(files), sum(path.stat().st_size for path in files)


def _write_site(folder: Path, site: Path, manifest: Manifest, pages: Mapping[str, bytes], isolate: bool) -> None:
    unstarted = manifest.urls["static/unstarted.js"]
    for address, body in pages.items():
        page = relative(body.decode(), address, isolate, unstarted)
        _write(folder / address.strip("/") / "index.html", page.encode())
    for url, asset in manifest.assets.items():
        target = folder / url.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(asset.file, target)
    _write(folder / SERVICE_WORKER, manifest.assets[manifest.urls[f"static/{SERVICE_WORKER}"]].file.read_bytes())
    for logical, url in manifest.urls.items():
        if logical.startswith("wheel/"):
            _write(folder / logical.removeprefix("wheel/"), manifest.assets[url].file.read_bytes())  # for pip
    for name in ("webnn.js", "webnn.json"):
        _write(folder / name, (site / name).read_bytes())  # WebNN's address for other people's pages
    _write(folder / "api" / "manifest", json.dumps(manifest.public, sort_keys=True).encode())
    _write(folder / ".nojekyll", b"")  # GitHub Pages: publish the files as they are
    _write(folder / MARK, manifest.engine.encode())


def _whole_files() -> Any:
    """The engine's module that writes folders whole or not at all."""
    sys.path.insert(0, str(ENGINE.parent))
    return import_module("webinfer.host.whole_files")


def check_folder(folder: Path) -> None:
    """Raises a BuildError for a folder that holds something that no export wrote."""
    if folder.exists() and not (folder / MARK).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise BuildError(f"{folder} holds other files; name a new folder")


def files_of(manifest: Manifest, demo: Demo) -> Manifest:
    """The manifest without the models and pictures that only other demos use."""
    known = manifest.public["page"]["models"]
    wanted = {demo.sample, *demo.examples} | {
        file for name in (demo.model, *demo.models, *demo.also) for file in known.get(name, ())
    }
    rows = {
        name: row
        for name, row in manifest.public["assets"].items()
        if not name.startswith(("models/", "images/")) or name in wanted
    }
    kept = {row["url"] for row in rows.values()}
    assets = {url: asset for url, asset in manifest.assets.items() if url in kept}
    return replace(manifest, assets=assets, public={**manifest.public, "assets": rows})


def relative(page: str, address: str, isolate: bool, unstarted: str) -> str:
    """A page of the server as it stands in a file: the addresses in it lead from its own, as <address>/index.html.

    `unstarted`: the address of the script that says why a page does not start on a host with other rules.
    """
    page = page.replace("</body>", f'<script src="{unstarted}"></script>\n</body>', 1)
    root = "../" * (address.strip("/").count("/") + 1) if address.strip("/") else "./"

    def seen(match: re.Match[str]) -> str:
        target = match[2]
        folder = target and not posixpath.splitext(target)[1] and not target.endswith("/")
        return f"{match[1]}{root}{target}{'/' if folder else ''}"

    page = ISLAND.sub(f'"{root}', ADDRESS.sub(seen, page))
    allowed = policy_with(CONTENT_SECURITY_POLICY, page)
    policy = "; ".join(part for part in allowed.split("; ") if not part.startswith(HEADER_ONLY))
    meta = f'<meta charset="utf-8">\n  <meta http-equiv="Content-Security-Policy" content="{policy}">'
    page = page.replace('<meta charset="utf-8">', meta, 1)
    return page.replace("<html ", '<html data-isolate="1" ', 1) if isolate else page


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
