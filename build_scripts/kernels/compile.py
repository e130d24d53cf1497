"""Builds kernels_wasm/ into WebAssembly modules, and writes what the one list generates.

kernels.toml is the one list. From it come build/generated/dispatch.c (the switch that `run` walks a
program with), the export list, and the engine's table of signatures, build/generated/kernel_signatures.py; the
engine's kernel_constants.py becomes constants.h there, the operators' formulas formulas.h, their descriptions
described.c. Every source is compiled seven times: scalar, simd128 and relaxed for browsers, relaxed-native for
wasmtime, all but scalar also with threads. Each module ends in a custom section with the SHA-256 of all before it.
Nothing happens when no input has changed.

    python3 -m build_scripts build kernels [--force] [--only simd128] [--no-compile]
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

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

BUILDS = {
    "scalar": ["-mno-simd128"],
    "simd128": ["-msimd128"],
    "relaxed": ["-msimd128", "-mrelaxed-simd"],
    "simd128-threads": ["-msimd128", "-matomics"],
    "relaxed-threads": ["-msimd128", "-mrelaxed-simd", "-matomics"],
    "relaxed-native": ["-msimd128", "-mrelaxed-simd", "-DGATHERS=1"],
    "relaxed-native-threads": ["-msimd128", "-mrelaxed-simd", "-DGATHERS=1", "-matomics"],
}
THREAD_EXPORTS = ("thread_pool_run", "thread_pool_work", "thread_pool_dismiss")  # only in the builds with threads
CHECKSUM_SECTION = "webinfer/sha256"

COMPILE_FLAGS = [
    "-target", "wasm32-freestanding", "-O3", "-std=c17", "-ffp-contract=off", "-fno-builtin", "-fno-math-errno",
    "-fno-sanitize=all", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror", "-mbulk-memory", "-nostdlib",
]  # fmt: skip
LINK_FLAGS = [
    "-Wl,--no-entry", "-Wl,--import-memory", "-Wl,--strip-all",
    "-Wl,--export=run", "-Wl,--export=abi", "-Wl,--export=dots_of_bytes", "-Wl,--export=__heap_base",
    "-Wl,--export=__stack_pointer",
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


def compile_module(rows: list[Row], constants: Constants, build: str, force: bool = False) -> Fresh | None:
    """One build compiled beside its place, or None where no input has changed.

    Raises:  CompileError on any error or warning: a linker warning means that a C function's arguments
             differ from its row.
    """
    link_flags = [*LINK_FLAGS, *_memory_flags(build, constants)]
    digest = _digest([*COMPILE_FLAGS, *link_flags, *BUILDS[build]])
    target, stamp = module_path(build), GENERATED / f"{build}.digest"
    if not force and target.is_file() and stamp.is_file() and stamp.read_text() == digest:
        return None
    MODULES.mkdir(parents=True, exist_ok=True)
    found = source_files() | {described.SOURCE: GENERATED / described.SOURCE}
    sources = sorted({str(found[row.source]) for row in rows})
    fresh = target.with_suffix(f".{os.getpid()}.tmp")
    command = [
        sys.executable, "-m", "ziglang", "cc", *COMPILE_FLAGS, *BUILDS[build], f"-I{SOURCES / 'include'}",
        f"-I{GENERATED}", *sources, str(GENERATED / "dispatch.c"), *link_flags,
        *(f"-Wl,--export={row.name}" for row in rows), "-o", str(fresh),
    ]  # fmt: skip
    cache = {"ZIG_GLOBAL_CACHE_DIR": str(ROOT / "build" / "zig"), "ZIG_LOCAL_CACHE_DIR": str(ROOT / "build" / "zig")}
    environment = {**os.environ, **cache}
    done = subprocess.run(command, check=False, env=environment, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    if done.returncode or done.stderr.strip():
        fresh.unlink(missing_ok=True)
        raise CompileError(f"{build}: zig cc gave {done.returncode}\n{done.stderr}")
    return Fresh(fresh, target, stamp, digest)


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
    with ThreadPoolExecutor(os.cpu_count()) as threads:  # zig cc compiles one source after the other
        asked = [threads.submit(compile_module, rows, constants, build, force) for build in builds]
    made = [fresh for one in asked if one.exception() is None and (fresh := one.result()) is not None]
    if failed := next(filter(None, (one.exception() for one in asked)), None):
        for fresh in made:
            fresh.module.unlink(missing_ok=True)
        raise failed
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
