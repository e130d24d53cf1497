"""Assembles build/site: everything that the page needs, under content-hashed names, and its manifest.

Files that find each other by relative path (Pyodide, the wheels and their lock, web/static, the
kernels) keep their names inside one folder whose name holds the hash of the whole; others carry
the hash in their own name.
"""

import concurrent.futures
import gzip
import hashlib
import json
import os
import re
import shutil
import struct
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from build_scripts.errors import BuildError
from build_scripts.files import files_below
from build_scripts.paths import (
    BROWSER_WHEELS,
    BUILD,
    IMAGES,
    KERNELS,
    MODELS,
    NODE_MODULES,
    PACKAGES,
    PAGE_ENGINE,
    ROOT,
    SITE,
    SNAPSHOT,
    SOUNDS,
    STATIC,
    WEB,
    WHEELS,
    page_script,
    version,
)
from build_scripts.setup.models import PUBLISHED
from build_scripts.site import bundle, npm_bundle
from build_scripts.site.page_facts import page_facts
from build_scripts.site.player import SOURCE as PLAYER
from build_scripts.site.player import TASKS, WORKER_TEXT
from build_scripts.site.runtime_split import PROFILE, runtime_files
from build_scripts.site.short_glue import published_glue
from build_scripts.steps import Step
from server.manifest import SUFFIXES
from server.studio import read_studio

PAGE_FACTS = Path(__file__).with_name("page_facts.py")
BUNDLES = [Path(__file__).with_name(f"{name}.py") for name in ("bundle", "npm_bundle")]
SPLIT = [
    Path(__file__).with_name(f"{name}.py") for name in ("runtime_split", "late_linking", "short_glue", "wasm_sections")
]
# Others that are asked for by their names.
ALONE = (
    "chosen_language", "first", "integrity", "language", "microphone_worklet", "model_layout", "offline",
    "service_worker", "thread_worker", "unstarted",
)  # fmt: skip
WEBNN = ("webnn", "webnn_engine", "webnn_worker")  # which other people's pages import
INTEROP = ("interop_tests", "interop_worker")  # of the page of WebNN and of the verb `measure interop`
FROM_NPM = ("code_panel",)  # those that import packages of npm
DRAWERS = ("results/*.js", "sources/*.js")  # asked for by the kind of what a task finds, and of what it is given
DAGRE = NODE_MODULES / "@dagrejs" / "dagre"  # lays graphs out; static/model_layout.js imports it
LOCK = WEB / "package-lock.json"
TABLES = [ROOT / "server" / name for name in ("demos.toml", "pages.toml")]
COMPRESSED = BUILD / "compressed"
LOADER, GLUE = "pyodide.mjs", "pyodide.asm.mjs"
PYODIDE_FILES = ("pyodide.asm.wasm", LOADER, GLUE, "python_stdlib.zip")
TYPES = {
    ".bin": "application/octet-stream",
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".mjs": "text/javascript; charset=utf-8",
    ".mp3": "audio/mpeg",
    ".onnx": "application/octet-stream",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".tflite": "application/octet-stream",
    ".txt": "text/plain; charset=utf-8",
    ".wasm": "application/wasm",
    ".webinfer": "application/octet-stream",
    ".webp": "image/webp",
    ".webmanifest": "application/manifest+json",
    ".whl": "application/zip",
    ".zip": "application/zip",
}
THOROUGH = 11
WHOLE_RUNTIME = "pyodide/pyodide.asm.wasm"  # which our own pages do not ask for
BROTLI_OF = {"pyodide": THOROUGH}  # quality by kind of file, else 9: 11 saves 12 % and takes ten times as long
# What a first visit waits for, in Zstandard too: 5 % larger than the best of Brotli, and a tenth of the time to unpack.
ZSTD = {"snapshot/webinfer.bin", "pyodide/pyodide.data.bin", "pyodide/pyodide.first.wasm"}
ZSTD_LEVEL = 19
ZSTD_WINDOW = 23  # as WINDOW, for Zstandard
WINDOW = 24  # binary logarithm of how many bytes back Brotli looks, the most that browsers take
AHEAD: dict[str, threading.Thread] = {}  # file in COMPRESSED -> who makes it
PACKED_ALREADY = {".mp3", ".png", ".webp", ".whl", ".zip"}  # nothing to gain, and ranges stay simple


@dataclass(frozen=True)
class Asset:
    """One file of the site: its logical name, its path below the site, its bytes."""

    logical: str
    path: str
    data: bytes


def site_step() -> Step:
    """The step that assembles build/site."""
    pyodide = [NODE_MODULES / "pyodide" / name for name in PYODIDE_FILES]
    data = [DAGRE, WHEELS, PAGE_ENGINE, BROWSER_WHEELS, STATIC, KERNELS, MODELS, PACKAGES, IMAGES, SOUNDS, SNAPSHOT]
    data += [PLAYER]
    sources = [*pyodide, *data, Path(__file__), PAGE_FACTS, *SPLIT, PROFILE, *BUNDLES, LOCK, *TABLES]
    return Step(
        "site", "assemble and compress what the server serves", inputs=lambda: [version(), *sources],
        outputs=(SITE / "manifest.json",), action=assemble, stamp=BUILD / "stamps" / "site",
    )  # fmt: skip


def assemble() -> None:
    """Writes build/site beside the old one and swaps them, so that a running server never sees half of it."""
    fresh, old = BUILD / "site.new", BUILD / "site.old"
    for folder in (fresh, old):
        shutil.rmtree(folder, ignore_errors=True)
    fresh.mkdir(parents=True)
    assets = [*_folders(), *_single_files()]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        # The largest first, and each encoding by itself: of 38 s of processor time the snapshot's three take 34.
        largest = sorted(assets, key=lambda asset: len(asset.data), reverse=True)
        rows_of = {
            (asset.logical, encoding): _Packed.of(asset.data, encoding, quality)
            for asset in largest
            for encoding, quality in _encodings(asset).items()
        }
        # Files of equal contents are packed by one job: two would write the same kept file.
        packing = {packed.kept: pool.submit(packed.bytes) for packed in {p.kept: p for p in rows_of.values()}.values()}
        small = {row: packing[packed.kept].result() for row, packed in rows_of.items()}
    rows = dict(_publish(fresh, asset, small) for asset in assets)
    folders = {a.logical.split("/")[0]: "/" + a.path.rsplit(a.logical.split("/", 1)[1])[0] for a in _folders_of(assets)}
    page = page_facts() | {"foreseen": _foreseen()}
    manifest = {"version": 1, "engine": version(), "page": page, "folders": folders, "assets": rows}
    (fresh / "manifest.json").write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n")
    (fresh / "webnn.js").write_text(f'export * from ".{rows["static/webnn.js"]["url"]}";\n')
    (fresh / "webnn.mjs").write_text('export * from "./webnn.js";\n')  # its name until 0.2
    (fresh / "webnn.json").write_text(json.dumps({"assets": rows}, sort_keys=True))
    if SITE.exists():
        SITE.rename(old)
    fresh.rename(SITE)
    shutil.rmtree(old, ignore_errors=True)


def script_roots() -> list[str]:
    """The scripts that come as one file with all that they import: the worker's and each page's."""
    return ["engine_worker", "page", "docs", *(page.slug for page in read_studio(TABLES[0].parent, lab=True).pages)]


def _folders_of(assets: list[Asset]) -> list[Asset]:
    return [asset for asset in assets if asset.logical.split("/")[0] in ("pyodide", "python", "static", "kernels")]


def _foreseen() -> dict[str, Any]:
    """What pages need to know before the snapshot has come: webinfer.page.snapshot wrote it there."""
    data = (SNAPSHOT / "webinfer.bin").read_bytes()
    _, _, length, runs = struct.unpack_from("<4I", data)
    begin = 16 + 8 * runs
    header = json.loads(data[begin : begin + length])
    return {name: header[name] for name in ("memory", "plans", "needs", "probes", "gpu")}


def _folders() -> Iterator[Asset]:
    yield from hashed_folder("pyodide", pyodide_files())
    wheels = {path.name: path for path in (*files_below(PAGE_ENGINE), *BROWSER_WHEELS.glob("*.whl"))}
    kernels = {path.name: path for path in KERNELS.glob("*.wasm") if "native" not in path.stem}
    users = {path.name: path for path in WHEELS.glob("*.whl")}
    for name, files in (("python", wheels), ("wheel", users), ("kernels", kernels)):
        yield from hashed_folder(name, {relative: path.read_bytes() for relative, path in files.items()})
    yield from hashed_folder("static", static_files())


def pyodide_files() -> dict[str, bytes]:
    """What is published of Pyodide, by name: its runtime as two modules, its glue code shortened."""
    files = [NODE_MODULES / "pyodide" / name for name in PYODIDE_FILES]
    others = {path.name: path.read_bytes() for path in files[1:]}
    loader = others[LOADER].replace(GLUE.encode(), _published_name(GLUE).encode())
    if loader == others[LOADER]:
        raise BuildError(f"{LOADER} does not name {GLUE}, which the site has as {_published_name(GLUE)}")
    others[LOADER] = loader
    return runtime_files(files[0]) | others | {GLUE: published_glue(NODE_MODULES / "pyodide" / GLUE).encode()}


def static_files() -> dict[str, bytes]:
    """What is published of web/static, by name: of the scripts those that are asked for, not those inside of others.

    Scripts are published without their folder, except for those of results/ and sources/, which pages ask for by kind.
    """
    plain = [path for path in files_below(STATIC) if path.suffix in TYPES and path.suffix != ".js"]
    drawers = [
        path.relative_to(STATIC).with_suffix("").as_posix() for drawers in DRAWERS for path in STATIC.glob(drawers)
    ]
    files = {path.relative_to(STATIC).as_posix(): path.read_bytes() for path in plain}
    files |= {f"{name}.js": page_script(name).read_bytes() for name in ALONE}
    files |= {f"{name}.js": bundle.bundled(STATIC, name, exports=True) for name in drawers}
    files |= {f"{name}.js": bundle.bundled_page(name, exports=True) for name in (*WEBNN, *INTEROP)}
    own = {f"{root}.js": npm_bundle.bundled(page_script(root), names=True) for root in script_roots()}
    own |= {f"{name}.js": npm_bundle.bundled(page_script(name)) for name in FROM_NPM}
    apart = (f"./{WORKER_TEXT}", f"./{TASKS}")  # the home page's package needs neither
    for name in ("player.js", "player_worker.js"):
        own[name] = npm_bundle.bundled(PLAYER / "src" / name, external=apart)
    return files | own | {"dagre.js": with_licence(DAGRE / "dist" / "dagre.esm.js", DAGRE / "LICENSE")}


def with_licence(script: Path, licence: Path) -> bytes:
    """A script of a package behind the package's licence, without the comments that name files beside it."""
    text = re.sub(r"^(//# source|/\*! For license).*$", "", script.read_text(), flags=re.MULTILINE)
    return f"/*!\n{licence.read_text().strip()}\n*/\n{text.strip()}\n".encode()


def hashed_folder(name: str, contents: Mapping[str, bytes]) -> Iterator[Asset]:
    """Files by relative path as assets of one folder, whose name holds the hash of all of them."""
    files = sorted(contents.items())
    digest = hashlib.sha256()
    for relative, data in files:
        digest.update(f"{relative} {hashlib.sha256(data).hexdigest()}\n".encode())
    folder = f"assets/{name}-{digest.hexdigest()[:16]}"
    for relative, data in files:
        yield Asset(f"{name}/{relative}", f"{folder}/{_published_name(relative)}", data)


def _published_name(relative: str) -> str:
    """Hosts with default settings know no type for .mjs, and browsers run no script without one."""
    path = Path(relative)
    return path.with_suffix(".js").as_posix() if path.suffix == ".mjs" else relative


def _single_files() -> Iterator[Asset]:
    folders = {
        "models": MODELS, "packages": PACKAGES, "images": IMAGES, "sounds": SOUNDS, "snapshot": SNAPSHOT
    }  # fmt: skip
    for kind, folder in folders.items():
        for path in files_below(folder):
            if path.suffix in TYPES and (path.suffix == PUBLISHED or not path.with_suffix(PUBLISHED).is_file()):
                data = path.read_bytes()
                name = f"{path.stem}-{hashlib.sha256(data).hexdigest()[:16]}{path.suffix}"
                yield Asset(f"{kind}/{path.name}", f"assets/{kind}/{name}", data)


def _encodings(asset: Asset) -> dict[str, int]:
    """The encodings that are tried for a file, and how thoroughly."""
    if Path(asset.path).suffix in PACKED_ALREADY or len(asset.data) <= 1024:
        return {}
    own = {"zstd": ZSTD_LEVEL} if asset.logical in ZSTD else {}
    return own | {"br": _quality(asset.logical), "gzip": 9}


def _publish(site: Path, asset: Asset, packed: Mapping[tuple[str, str], bytes]) -> tuple[str, dict[str, Any]]:
    """Writes a file and its encodings that are worth it, of those `packed`; its row of the manifest."""
    target = site / asset.path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(asset.data)
    encodings: dict[str, int] = {}
    for encoding in _encodings(asset):
        small = packed[asset.logical, encoding]
        if len(small) < 0.9 * len(asset.data):
            target.with_name(target.name + SUFFIXES[encoding]).write_bytes(small)
            encodings[encoding] = len(small)
    sha256 = hashlib.sha256(asset.data).hexdigest()
    row = {"url": f"/{asset.path}", "bytes": len(asset.data), "sha256": sha256, "type": TYPES[target.suffix]}
    return asset.logical, {**row, "encodings": encodings}


def _quality(logical: str) -> int:
    """How thoroughly a file is compressed: what every first visit waits for most."""
    return 9 if logical == WHOLE_RUNTIME else BROTLI_OF.get(logical.split("/")[0], 9)


def compress_ahead() -> None:
    """Begins to compress what takes longest and depends on no other step, while those run."""
    for name, data in pyodide_files().items():
        packed = _Packed.of(data, "br", _quality(f"pyodide/{name}"))
        if Path(name).suffix not in PACKED_ALREADY and not packed.kept.is_file():
            AHEAD[packed.kept.name] = thread = threading.Thread(target=packed.pack, daemon=True)
            thread.start()


@dataclass(frozen=True)
class _Packed:
    """Bytes in an encoding, kept by content: Pyodide never changes between builds."""

    data: bytes
    kept: Path
    encoding: str
    quality: int

    @classmethod
    def of(cls, data: bytes, encoding: str, quality: int) -> "_Packed":
        name = f"{hashlib.sha256(data).hexdigest()}-{quality}.{encoding}"
        return cls(data, COMPRESSED / name, encoding, quality)

    def bytes(self) -> bytes:
        """The compressed bytes, made now if nobody has made them."""
        if thread := AHEAD.pop(self.kept.name, None):
            thread.join()
        if not self.kept.is_file():
            self.pack()
        return self.kept.read_bytes()

    def pack(self) -> None:
        """Makes the kept file."""
        if self.encoding == "br":
            import brotli

            small: bytes = brotli.compress(self.data, quality=self.quality, lgwin=WINDOW)
        elif self.encoding == "zstd":
            import zstandard

            parameters = zstandard.ZstdCompressionParameters.from_level(self.quality, window_log=ZSTD_WINDOW)
            small = zstandard.ZstdCompressor(compression_params=parameters).compress(self.data)
        else:
            small = gzip.compress(self.data, compresslevel=self.quality, mtime=0)
        self.kept.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.kept.with_name(f"{self.kept.name}.{os.getpid()}.{threading.get_ident()}.tmp")
        temporary.write_bytes(small)
        temporary.replace(self.kept)
