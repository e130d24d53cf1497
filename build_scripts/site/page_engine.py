"""The engine as pages of the site load it: a wheel with its shaders, without what no browser can run, and late parts.

Written here and not by the build backend as the wheel of users is (wheel.py): its size is part of every visit. Sources
are minified, the modules are one archive inside and the shaders one file, and the same sources give the same bytes,
from which the site's addresses come.
"""

import base64
import hashlib
import io
import json
import marshal
import subprocess
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.files import files_below
from build_scripts.paths import (
    ENGINE,
    NODE_MODULES,
    PAGE_ENGINE,
    ROOT,
    SIGNATURES,
    WEB,
    configuration,
    settings,
    version,
)
from build_scripts.setup.node import node_commands
from build_scripts.site.minify import minify, minify_shader
from build_scripts.site.shed import without_cases
from build_scripts.site.wheel import wheel_name
from build_scripts.steps import Step

# Left out of the browser's wheel: the command line, the native host, the lab's programs, and the reference backend,
# which needs NumPy. Asking for one of them there is a typed error, not a crash.
CPYTHON_ONLY = (
    "webinfer/__main__.py",
    "webinfer/cache_verbs.py",
    "webinfer/cli.py",
    "webinfer/dump.py",
    "webinfer/backends/reference/",
    "webinfer/host/cache_folder.py",
    "webinfer/host/gpu_native",
    "webinfer/host/cores.py",
    "webinfer/host/kept_downloads.py",
    "webinfer/host/kernels_native.py",
    "webinfer/host/native.py",
    "webinfer/host/native_calls.py",
    "webinfer/host/downloads.py",
    "webinfer/host/package_clients.py",
    "webinfer/host/package_members.py",
    "webinfer/host/published_browser.py",
    "webinfer/host/published_files.py",
    "webinfer/host/published_table.py",
    "webinfer/host/shared_memory.py",
    "webinfer/host/socket_native.py",
    "webinfer/host/threads_native.py",
    "webinfer/lab/",
    "webinfer/scale/",
    "webinfer/task_verbs.py",
    "webinfer/testing.py",
    "webinfer/package/web_page.py",
    "webinfer/page/facts.py",
    "webinfer/page/messages.toml",
)
OPERATORS = "webinfer/ops/"
READ_TYPES = OPERATORS  # whose fields' types are read: values that users give are checked against them
ALL_SHADERS = "webinfer/_shaders/all.json"  # one file is compressed far better than a hundred
# All modules but the first are one member of the wheel: together they take seven tenths of what they take one by one.
# Python imports them from there: `_modules.zip` lies beside `__init__.py`, which adds it to the package's path.
MODULES = "webinfer/_modules.zip"
FIRST = "webinfer/__init__.py"
PATH_LINE = b'__path__.append(__path__[0]+"/_modules.zip/webinfer")\n'
LATE_TABLE = "webinfer/host/late_table.py"
OUTSIDE = (FIRST, "webinfer/py.typed", ALL_SHADERS)
SNAPSHOT_MODULES = PAGE_ENGINE / "modules.zip"  # the same modules for the memory snapshot, which imports from archives
EPOCH = (1980, 1, 1, 0, 0, 0)
SHADERS = WEB / "shaders"
PYODIDE = NODE_MODULES / "pyodide"
COMPILE = Path(__file__).with_name("late_code.mjs")
COMPILE_LIMIT_S = 300
MARSHAL_VERSION = 2  # without references: later ones depend on how often Python refers to an object
TOOLS = [COMPILE, *(Path(__file__).with_name(f"{name}.py") for name in ("lean_code", "minify", "shed", "thorough"))]
Members = Mapping[str, bytes]


def page_engine_step() -> Step:
    """The step that packs the engine for pages of the site."""
    return Step(
        "page engine", "pack engine and shaders for pages of the site",
        inputs=lambda: [
            *(ENGINE, SIGNATURES, SHADERS, ROOT / "pyproject.toml", ROOT / "LICENSE"),
            *(Path(__file__), *TOOLS, PYODIDE / "package.json"),
        ],
        outputs=(PAGE_ENGINE / wheel_name(), SNAPSHOT_MODULES), action=build_page_engine, stamp=PAGE_ENGINE / ".stamp",
    )  # fmt: skip


def build_page_engine() -> None:
    """Writes build/engine/webinfer-*.whl and the files of late parts, and removes those of other versions."""
    PAGE_ENGINE.mkdir(parents=True, exist_ok=True)
    for old in (*PAGE_ENGINE.glob("webinfer-*.whl"), *PAGE_ENGINE.glob("late-*")):
        old.unlink()
    members, late = without_late_parts(browser_members(), compiled)
    for name, part in late.items():
        (PAGE_ENGINE / name).write_bytes(part)
    from build_scripts.site.thorough import Thorough  # which needs a package

    write_wheel(PAGE_ENGINE / wheel_name(), solid(members), Thorough)
    SNAPSHOT_MODULES.write_bytes(_archive(members, zipfile.ZIP_DEFLATED))


def browser_members() -> dict[str, bytes]:
    """The members of the browser's wheel, without its metadata; sources without what only people read.

    Shaders of a family whose lowerings are a late part lie beside these.
    """
    chosen = {name: data for name, data in engine_files() if not name.startswith(CPYTHON_ONLY)}
    chosen |= without_cases({name: data for name, data in chosen.items() if name.startswith(OPERATORS)})
    late = {place for places in settings()["late"].values() for place in places}
    modules = [name for name in chosen if name.endswith(".py")]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:  # 20 s of processor time
        whole, typed = [chosen[name] for name in modules], [name.startswith(READ_TYPES) for name in modules]
        texts = pool.map(minify, whole, typed, chunksize=16)
        short = dict(zip(modules, texts, strict=True))
    members, shaders = dict[str, bytes](), dict[str, dict[str, str]]()
    for name, data in chosen.items():
        if name.endswith(".wgsl"):
            home = f"webinfer/backends/webgpu/{Path(name).parent.name}/"
            file = f"{home}shaders.json" if home in late else ALL_SHADERS
            shaders.setdefault(file, {})[Path(name).name] = minify_shader(data).decode()
        else:
            members[name] = short.get(name, data)
    return members | {file: json.dumps(texts, sort_keys=True).encode() for file, texts in shaders.items()}


def compiled(members: Members) -> Members:
    """The members with Pyodide's code in place of Python's sources.

    A late part is imported while the user waits for a model. Pyodide takes longer to compile the sources of ONNX's
    importer than for all else of a small model's load: 41 modules, 2.0 s of 3.1 (Chromium, two busy cores, 2026-11-26).

    Raises:  BuildError if no Node can
    """
    complaints = []
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "sources.zip", Path(folder) / "code.zip"
        source.write_bytes(_archive(members, zipfile.ZIP_STORED))
        job = json.dumps({"pyodide": str(PYODIDE), "input": str(source), "output": str(target)})
        for node in node_commands():
            done = subprocess.run(
                [node, str(COMPILE), job], capture_output=True, text=True, errors="replace", timeout=COMPILE_LIMIT_S
            )
            if done.returncode == 0 and target.is_file():
                with zipfile.ZipFile(target) as archive:
                    return {name: archive.read(name) for name in archive.namelist()}
            complaints.append(f"{node}: " + " ".join((done.stdout + done.stderr).splitlines()[-10:]))
    raise BuildError("no Node could compile the engine's late parts:\n    " + "\n    ".join(complaints))


def without_late_parts(
    members: Members, compiling: Callable[[Members], Members]
) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """The members but those of late parts, and the files of these, compiled, by name.

    The table `late` of pyproject.toml names the parts; where each module lies is written into LATE_TABLE.
    """
    parts, homes = dict[str, bytes](), dict[str, tuple[str, str]]()
    late = {place for places in settings()["late"].values() for place in places}
    code = dict(compiling({name: data for name, data in members.items() if name.startswith(tuple(late))}))
    for part, places in settings()["late"].items():
        inside = {name: code.pop(name) for name in list(code) if name.startswith(tuple(places))}
        if not inside:
            continue
        file = f"late-{part}.bin"
        parts[file] = zlib.compress(marshal.dumps(dict(sorted(inside.items())), MARSHAL_VERSION), 9)
        row = (f"python/{file}", hashlib.sha256(parts[file]).hexdigest())
        homes |= {place.removesuffix(".py").strip("/").replace("/", "."): row for place in places}
    rest = {name: data for name, data in members.items() if not name.startswith(tuple(late))}
    return {**rest, LATE_TABLE: f"PARTS = {homes!r}\n".encode()}, parts


def solid(members: Members) -> dict[str, bytes]:
    """The same members with the modules in one archive, stored there so that the wheel compresses them as one."""
    outside = {name: members[name] for name in OUTSIDE if name in members}
    inside = {name: data for name, data in members.items() if name not in outside}
    return {**outside, FIRST: PATH_LINE + members[FIRST], MODULES: _archive(inside, zipfile.ZIP_STORED)}


def write_wheel(path: Path, members: dict[str, bytes], compressor: type | None = None) -> None:
    """Writes a wheel of these members plus its metadata; same members, same bytes.

    A `compressor` takes the place of zipfile's own.
    """
    info = f"webinfer-{version()}.dist-info"
    members = {**members, f"{info}/METADATA": _metadata(), f"{info}/WHEEL": _wheel_file()}
    members[f"{info}/licenses/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    record = [f"{name},sha256={_record_digest(data)},{len(data)}" for name, data in sorted(members.items())]
    record_name = f"{info}/RECORD"
    members[record_name] = "\n".join([*record, f"{record_name},,", ""]).encode()
    path.write_bytes(_archive(members, zipfile.ZIP_DEFLATED, compressor))


def _archive(members: Members, compression: int, compressor: type | None = None) -> bytes:
    """A zip of these members: same members, same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression, compresslevel=9) as archive:
        for name, data in sorted(members.items()):
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.external_attr = 0o100644 << 16
            entry.create_system = 3  # the same byte on every platform
            entry.compress_type = compression
            with archive.open(entry, "w") as file:
                if compressor is not None:
                    file._compressor = compressor()  # type: ignore[attr-defined]  # zipfile lets nobody choose it
                file.write(data)
    return buffer.getvalue()


def engine_files() -> Iterator[tuple[str, bytes]]:
    """Name in the wheel and bytes of every file of the engine, of the kernels' signatures and of every shader."""
    for file in files_below(ENGINE):
        yield f"webinfer/{file.relative_to(ENGINE).as_posix()}", file.read_bytes()
    yield f"webinfer/backends/wasm/{SIGNATURES.name}", SIGNATURES.read_bytes()
    for file in files_below(SHADERS):
        if file.suffix == ".wgsl":
            yield f"webinfer/_shaders/{file.relative_to(SHADERS).as_posix()}", file.read_bytes()


def _record_digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def _metadata() -> bytes:
    project = configuration()["project"]
    lines = [
        "Metadata-Version: 2.4",
        "Name: webinfer",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"License-Expression: {project['license']}",
        "License-File: LICENSE",
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {name}" for name in project["dependencies"]),
    ]
    for extra, names in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines.extend(f"Requires-Dist: {name}; extra == '{extra}'" for name in names)
    return ("\n".join(lines) + "\n").encode()


def _wheel_file() -> bytes:
    return b"Wheel-Version: 1.0\nGenerator: webinfer build_scripts\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
