"""Builds kernels_wasm/ into WebAssembly modules, and writes what the one list generates.

kernels.toml is the one list. From it come build/generated/dispatch.c (the switch that `run` walks a
program with), the export list, and the engine's table of signatures, build/generated/kernel_signatures.py; the
engine's kernel_constants.py becomes constants.h there, the operators' formulas formulas.h, their descriptions
described.c. There are seven modules: scalar, simd128 and relaxed for browsers, relaxed-native for wasmtime, all but
scalar also with threads. A source is compiled once for all modules in which its object is the same: most know nothing
of threads, nor of what Cranelift needs. Each module ends in a custom section with the SHA-256 of all before it.
Nothing happens when no input has changed.

    python3 -m build_scripts build kernels [--force] [--only simd128] [--no-compile]
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from build_scripts.kernels import described
from build_scripts.kernels.formulas import header
from build_scripts.kernels.generate import constants_header, dispatch_source, signatures_source
from build_scripts.kernels.kernel_list import (
    ROOT,
    SOURCES,
    Constants,
    KernelListError,
    Row,
    by_hand,
    read_rows,
    shared_constants,
    source_files,
)
from build_scripts.paths import SIGNATURES, settings

GENERATED = ROOT / "build" / "generated"
MODULES = ROOT / "build" / "kernels"

THREADS, GATHERS = "-matomics", "-DGATHERS=1"
BUILDS = {
    "scalar": ["-mno-simd128"],
    "simd128": ["-msimd128"],
    "relaxed": ["-msimd128", "-mrelaxed-simd"],
    "simd128-threads": ["-msimd128", THREADS],
    "relaxed-threads": ["-msimd128", "-mrelaxed-simd", THREADS],
    "relaxed-native": ["-msimd128", "-mrelaxed-simd", GATHERS],
    "relaxed-native-threads": ["-msimd128", "-mrelaxed-simd", GATHERS, THREADS],
}
THREAD_EXPORTS = ("thread_pool_run", "thread_pool_work", "thread_pool_dismiss")  # only in the builds with threads
CHECKSUM_SECTION = "webinfer/sha256"

COMPILE_FLAGS = [
    "-target", "wasm32-freestanding", "-O3", "-std=c17", "-ffp-contract=off", "-fno-builtin", "-fno-math-errno",
    "-fno-sanitize=all", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror", "-mbulk-memory", "-nostdlib",
]  # fmt: skip
LINK_FLAGS = [
    "-Wl,--no-entry", "-Wl,--import-memory", "-Wl,--strip-all",
    "-Wl,--export=run", "-Wl,--export=run_turns", "-Wl,--export=abi", "-Wl,--export=dots_of_bytes",
    "-Wl,--export=__heap_base", "-Wl,--export=__stack_pointer",
]  # fmt: skip


class CompileError(Exception):
    """The compiler or the linker complained; the message is theirs."""


@dataclass(frozen=True)
class Fresh:
    """A module that is compiled but not in its place yet."""

    module: Path
    target: Path
    stamp: Path
    digest: str


def write_if_changed(path: Path, text: str) -> bool:
    """True if the file had to be written."""
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return True


def _digest(flags: list[str]) -> str:
    digest = hashlib.sha256(repr(flags).encode())
    files = [*source_files().values(), *sorted((SOURCES / "include").iterdir())]
    for path in [*files, *(GENERATED / name for name in ("dispatch.c", described.SOURCE, "constants.h", "formulas.h"))]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _zig(*arguments: str) -> None:
    """Runs zig cc. Raises: CompileError on any error or warning."""
    cache = {"ZIG_GLOBAL_CACHE_DIR": str(ROOT / "build" / "zig"), "ZIG_LOCAL_CACHE_DIR": str(ROOT / "build" / "zig")}
    command = [_zig_program(), "cc", *COMPILE_FLAGS, *arguments]
    done = subprocess.run(
        command, check=False, env={**os.environ, **cache}, cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    if done.returncode or done.stderr.strip():
        raise CompileError(f"zig cc gave {done.returncode}\n{done.stderr}")


@cache
def _zig_program() -> str:
    """The compiler of the package `ziglang`, without Python around it, which takes longer to start."""
    found = find_spec("ziglang")
    if found is None or found.origin is None:
        raise CompileError("the package ziglang is not installed")
    return str(Path(found.origin).parent / "zig")


def _texts(source: Path) -> list[str]:
    """A source and the headers of ours that it includes, each once."""
    texts: dict[Path, str] = {}
    waiting = [source]
    while waiting:
        path = waiting.pop()
        if path not in texts:
            texts[path] = path.read_text(encoding="utf-8")
            names = re.findall(r'^#include "(.+)"', texts[path], re.MULTILINE)
            waiting += [next(p for p in (SOURCES / "include" / name, GENERATED / name) if p.exists()) for name in names]
    return list(texts.values())


def object_flags(source: Path, build: str) -> list[str]:
    """The flags that a source is compiled with for a build: one list for all builds in which its object is the same.

    Features change no code that does not ask for them, so whatever knows nothing of threads is compiled as for the
    build with them: its linker takes nothing else. Objects say what they use, and none of this stays in a module.
    """
    own, texts = BUILDS[build], _texts(source)
    threads = build if build.endswith("-threads") else f"{build}-threads"
    if threads in BUILDS and not any(re.search("atomic|_Thread_local", text) for text in texts):
        own = BUILDS[threads]
    if not any(re.search(r"(?<!#ifndef )(?<!#define )\bGATHERS\b", text) for text in texts):
        own = [flag for flag in own if flag != GATHERS]
    return own


class Objects:
    """The objects of one run of this script, each compiled once, on threads of `pool`."""

    def __init__(self, pool: ThreadPoolExecutor, folder: Path) -> None:
        self._pool, self._folder = pool, folder
        self._asked: dict[tuple[Path, tuple[str, ...]], Future[str]] = {}

    def of(self, source: Path, build: str) -> Future[str]:
        """The path of a source's object for a build."""
        flags = object_flags(source, build)
        key = (source, tuple(flags))
        if key not in self._asked:
            self._asked[key] = self._pool.submit(self._compiled, source, flags, len(self._asked))
        return self._asked[key]

    def _compiled(self, source: Path, flags: list[str], number: int) -> str:
        path = str(self._folder / f"{number}.o")
        _zig(*flags, f"-I{SOURCES / 'include'}", f"-I{GENERATED}", "-c", str(source), "-o", path)
        return path


def compile_module(
    rows: list[Row], constants: Constants, build: str, objects: Objects, force: bool = False
) -> Callable[[], Fresh] | None:
    """Begins to compile a build; what links it beside its place, or None where no input has changed.

    Raises:  CompileError, when linked, on any error or warning: a linker warning means that a C function's
             arguments differ from its row.
    """
    link_flags = [*LINK_FLAGS, *_memory_flags(build, constants)]
    digest = _digest([*COMPILE_FLAGS, *link_flags, *BUILDS[build]])
    target, stamp = module_path(build), GENERATED / f"{build}.digest"
    if not force and target.is_file() and stamp.is_file() and stamp.read_text() == digest:
        return None
    found = source_files() | {described.SOURCE: GENERATED / described.SOURCE}
    sources = [*sorted({found[row.source] for row in rows}), GENERATED / "dispatch.c"]
    asked = [objects.of(source, build) for source in sources]

    def link() -> Fresh:
        MODULES.mkdir(parents=True, exist_ok=True)
        fresh = target.with_suffix(f".{os.getpid()}.tmp")
        exports = [f"-Wl,--export={row.name}" for row in rows]
        try:
            _zig(*BUILDS[build], *(one.result() for one in asked), *link_flags, *exports, "-o", str(fresh))
        except CompileError as error:
            fresh.unlink(missing_ok=True)
            raise CompileError(f"{build}: {error}") from error
        return Fresh(fresh, target, stamp, digest)

    return link


def with_checksum(module: bytes) -> bytes:
    """The module with its SHA-256 in a custom section at the end, as webinfer.host.checksums expects it."""
    digest = hashlib.sha256(module).digest()
    head = bytes([0, 1 + len(CHECKSUM_SECTION) + len(digest), len(CHECKSUM_SECTION)]) + CHECKSUM_SECTION.encode()
    return module if module[: -len(digest)].endswith(head) else module + head + digest


def module_path(build: str) -> Path:
    """Where a build's module stands."""
    return MODULES / f"webinfer-{build}.wasm"


def _memory_flags(build: str, constants: Constants) -> list[str]:
    flags = [f"-Wl,-z,stack-size={constants['MEMORY_STACK_BYTES']}"]
    if build.endswith("-threads"):
        flags += ["-Wl,--shared-memory", f"-Wl,--max-memory={constants['MEMORY_MAX_BYTES']}"]
        flags += [f"-Wl,--export={name}" for name in THREAD_EXPORTS]
    return flags


def compile_all(rows: list[Row], constants: Constants, builds: list[str], force: bool = False) -> None:
    """Brings modules and generated files up to date together: if one build fails, all modules stay as they were.

    Raises:  CompileError
    """
    write_if_changed(GENERATED / "constants.h", constants_header(constants))
    write_if_changed(GENERATED / "formulas.h", header())
    write_if_changed(GENERATED / described.SOURCE, described.source(by_hand()))
    write_if_changed(GENERATED / "dispatch.c", dispatch_source(rows, constants))
    made: list[Fresh] = []
    with ThreadPoolExecutor(os.cpu_count()) as pool, TemporaryDirectory() as folder:
        objects = Objects(pool, Path(folder))
        links = [compile_module(rows, constants, build, objects, force) for build in builds]
        try:
            made += [link() for link in links if link is not None]
        except CompileError:
            pool.shutdown(cancel_futures=True)
            for fresh in made:
                fresh.module.unlink(missing_ok=True)
            raise
    for fresh in made:
        fresh.module.replace(fresh.target)
        fresh.stamp.write_text(fresh.digest)
    for module in MODULES.glob("*.wasm"):
        data = module.read_bytes()
        if (whole := with_checksum(data)) != data:
            fresh_file = module.with_suffix(f".{os.getpid()}.tmp")
            fresh_file.write_bytes(whole)
            fresh_file.replace(module)
    write_if_changed(SIGNATURES, signatures_source(rows, constants))


def main(argv: list[str] | None = None) -> int:
    """0 when the modules stand and none is larger than allowed."""
    parser = argparse.ArgumentParser(prog="kernels", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--force", action="store_true", help="compile even if nothing changed")
    parser.add_argument("--only", choices=sorted(BUILDS), help="one build instead of all")
    parser.add_argument("--no-compile", action="store_true", help="only write the generated files")
    options = parser.parse_args(argv)
    try:
        rows, constants = read_rows(), shared_constants()
        builds = [] if options.no_compile else [options.only] if options.only else list(BUILDS)
        compile_all(rows, constants, builds, options.force)
    except (KernelListError, CompileError) as error:
        print(f"kernels: {error}", file=sys.stderr)
        return 1
    return _report(rows, builds)


def _report(rows: list[Row], builds: list[str]) -> int:
    """1 if a module is larger than pyproject.toml allows."""
    too_large, most = 0, settings()["sizes"]["products"]["build/kernels/*.wasm"]["gzip"]
    for build in builds:
        data = module_path(build).read_bytes()
        packed = len(gzip.compress(data, 9))
        too_large += packed > most
        print(f"kernels {build:15} {len(rows)} kernels  {len(data):8,} bytes  gzip {packed:8,} bytes")
    if too_large:
        print(f"a kernel module is larger than {most:,} bytes gzip", file=sys.stderr)
    return 1 if too_large else 0


if __name__ == "__main__":
    sys.exit(main())
