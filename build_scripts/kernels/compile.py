"""Builds kernels_wasm/ into three WebAssembly modules and the Python table of their signatures.

kernels.toml is the one list. From it come build/generated/dispatch.c (the switch that `run` walks a
program with), web/python/webinfer/backends/wasm/kernel_table.py, and the export list. Every source is
compiled three times: scalar, simd128, relaxed. Nothing happens when no input has changed.

    python3 -m build_scripts kernels [--force] [--only simd128] [--no-compile]
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "kernels_wasm"
GENERATED = ROOT / "build" / "generated"
MODULES = ROOT / "build" / "kernels"
TABLE = ROOT / "web" / "python" / "webinfer" / "backends" / "wasm" / "kernel_table.py"

BUILDS = {
    "scalar": ["-mno-simd128"],
    "simd128": ["-msimd128"],
    "relaxed": ["-msimd128", "-mrelaxed-simd"],
    "simd128-threads": ["-msimd128", "-matomics"],
    "relaxed-threads": ["-msimd128", "-mrelaxed-simd", "-matomics"],
}
THREAD_EXPORTS = ("team_run", "team_work", "team_dismiss")  # only in the builds with threads
SHARED_BYTES = 2**31  # what a shared memory may grow to; the host may ask for less
STACK_BYTES = 64 * 1024
LARGEST_GZIP_BYTES = 150_000
ARG_TYPES = {"ptr": "void *", "i32": "int32_t", "f32": "float"}
MAGIC, VERSION, HEADER_WORDS, RECORD_WORDS = 0x57495031, 1, 4, 3

COMPILE_FLAGS = [
    "-target", "wasm32-freestanding", "-O3", "-std=c17", "-ffp-contract=off", "-fno-builtin", "-fno-math-errno",
    "-fno-sanitize=all", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror", "-mbulk-memory", "-nostdlib",
]  # fmt: skip
LINK_FLAGS = [
    "-Wl,--no-entry", "-Wl,--import-memory", f"-Wl,-z,stack-size={STACK_BYTES}", "-Wl,--strip-all",
    "-Wl,--export=run", "-Wl,--export=abi", "-Wl,--export=__heap_base", "-Wl,--export=__stack_pointer",
]  # fmt: skip


class KernelListError(Exception):
    """kernels.toml breaks a rule of its grammar."""


class CompileError(Exception):
    """The compiler or the linker complained; the message is theirs."""


@dataclass(frozen=True)
class Row:
    """One kernel: its C function, the file that defines it, its arguments, and what it is split by."""

    name: str
    source: str
    args: tuple[tuple[str, str], ...]
    split: str

    @property
    def signature(self) -> str:
        return f"{self.name}({','.join(kind for _, kind in self.args)}){'/split' if self.split else ''}"


@dataclass(frozen=True)
class Fresh:
    """A module that is compiled but not in its place yet."""

    module: Path
    target: Path
    stamp: Path
    digest: str


def _parse_args(name: str, args: list[str]) -> tuple[tuple[str, str], ...]:
    parsed = []
    for arg in args:
        match = re.fullmatch(r"([a-z][a-z0-9_]*):(ptr|i32|f32)", arg)
        if match is None:
            raise KernelListError(f"{name}: argument {arg!r} is not <name>:ptr, <name>:i32 or <name>:f32")
        parsed.append((match[1], match[2]))
    return tuple(parsed)


def _rows(data: dict[str, list[dict[str, object]]]) -> Iterator[Row]:
    entries: dict[object, dict[str, object]] = {}
    for entry in data.get("kernel", []):
        if "like" in entry:
            if entry["like"] not in entries or "args" in entry or "split" in entry:
                raise KernelListError(f"{entry}: like must name an earlier kernel and replaces args and split")
            model = entries[entry["like"]]
            entry |= {key: model[key] for key in ("args", "split") if key in model}
        names = entry.get("names") or [entry.get("name")]
        unknown = set(entry) - {"name", "names", "source", "args", "split", "like"}
        if unknown or not isinstance(names, list) or ("names" in entry and "source" not in entry):
            raise KernelListError(f"{names}: unknown keys {sorted(unknown)}, or names without source")
        for name in names:
            if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
                raise KernelListError(f"kernel name {name!r} breaks the grammar in kernels_wasm/README.md")
            args = entry.get("args")
            if not isinstance(args, list):
                raise KernelListError(f"{name}: args is missing")
            entries[name] = entry
            source = str(entry.get("source", f"{name}.c"))
            yield Row(name, source, _parse_args(name, args), str(entry.get("split", "")))


def read_rows(path: Path = SOURCES / "kernels.toml") -> list[Row]:
    """The kernels in the list's order; a kernel's id is its place.

    Raises:  KernelListError for a broken row, a name that stands twice, or a source that is missing.
    """
    rows = list(_rows(tomllib.loads(path.read_text(encoding="utf-8"))))
    known = source_files(path.parent)
    seen: set[str] = set()
    for row in rows:
        if row.name in seen:
            raise KernelListError(f"kernel {row.name} is listed twice")
        if row.source not in known:
            raise KernelListError(f"kernel {row.name}: {row.source} does not exist in kernels_wasm/src")
        seen.add(row.name)
    return rows


def unlisted_sources(rows: list[Row]) -> list[str]:
    """Names of the files in kernels_wasm/src that no row compiles."""
    listed = {row.source for row in rows}
    return sorted(name for name in source_files() if name not in listed)


def source_files(folder: Path = SOURCES) -> dict[str, Path]:
    """File name → path of every C source; the folders of src are the operators' families."""
    return {path.name: path for path in sorted((folder / "src").rglob("*.c"))}


def abi(rows: list[Row]) -> int:
    """A 31-bit digest of every signature: a program fits a module only if both carry the same one."""
    text = f"{MAGIC}/{VERSION}/" + ";".join(row.signature for row in rows)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little") & 0x7FFFFFFF


def _declaration(row: Row) -> str:
    kinds = [ARG_TYPES[kind] for _, kind in row.args] + ["int32_t"] * (2 if row.split else 0)
    return f"void {row.name}({', '.join(kinds) or 'void'});"


def _case(number: int, row: Row) -> str:
    read = {"ptr": "POINTER({})", "i32": "p[{}]", "f32": "FLOAT({})"}
    args = [read[kind].format(RECORD_WORDS + i) for i, (_, kind) in enumerate(row.args)]
    if row.split:
        return f"    case {number}: {row.name}({', '.join([*args, 'begin', 'end'])}); return;"
    return f"    case {number}: if (thread == 0) {row.name}({', '.join(args)}); return;"


def dispatch_source(rows: list[Row]) -> str:
    """dispatch.c: `run`, `abi` and the switch over all kernels."""
    declarations = "\n".join(map(_declaration, rows))
    cases = "\n".join(_case(number, row) for number, row in enumerate(rows))
    return f"""// Generated by build_scripts/kernels.py from kernels_wasm/kernels.toml. Do not edit.
#include <stdint.h>

#define POINTER(i) ((void *)p[i])
#define FLOAT(i) __builtin_bit_cast(float, p[i])

{declarations}

int32_t abi(void) {{ return {abi(rows)}; }}

static void step(const int32_t *p, int32_t thread, int32_t threads) {{
  const int32_t begin = (int32_t)((int64_t)p[2] * thread / threads);
  const int32_t end = (int32_t)((int64_t)p[2] * (thread + 1) / threads);
  switch (p[0]) {{
{cases}
    default: __builtin_trap();
  }}
}}

static void check(const int32_t *program) {{
  if (program[0] != {MAGIC} || program[1] != {VERSION}) __builtin_trap();
}}

// The record with this number.
static const int32_t *find(const int32_t *program, int32_t number) {{
  const int32_t *p = program + {HEADER_WORDS};
  for (int32_t i = 0; i < number && i < program[2]; i++) p += p[1];
  return p;
}}

void run(const int32_t *program, int32_t first, int32_t count, int32_t thread, int32_t threads) {{
  check(program);
  const int32_t *p = find(program, first);
  const int32_t last = first + count < program[2] ? first + count : program[2];
  for (int32_t i = first; i < last; i++, p += p[1]) step(p, thread, threads);
}}

#include "team.h"
"""


def table_source(rows: list[Row]) -> str:
    """kernel_table.py: the signatures as Python data."""
    lines = []
    for number, row in enumerate(rows):
        kinds = tuple(kind for _, kind in row.args)
        lines.append(f"    {row.name!r}: Kernel({row.name!r}, {number}, {kinds!r}, {bool(row.split)}),")
    body = "\n".join(lines)
    return f'''"""Signatures of the WASM kernels. Generated by build_scripts/kernels.py; do not edit."""
# ruff: noqa

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel: `args` in order as "ptr", "i32" or "f32"; `split` tells whether threads can share it."""

    name: str
    id: int
    args: tuple[str, ...]
    split: bool


ABI = {abi(rows)}
MAGIC = {MAGIC:#x}
VERSION = {VERSION}
HEADER_WORDS = {HEADER_WORDS}
RECORD_WORDS = {RECORD_WORDS}
BUILDS = {tuple(BUILDS)!r}

KERNELS: dict[str, Kernel] = {{
{body}
}}
'''


def write_if_changed(path: Path, text: str) -> bool:
    """True if the file had to be written."""
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return True


def _digest(rows: list[Row], build: str) -> str:
    digest = hashlib.sha256(repr([COMPILE_FLAGS, LINK_FLAGS, BUILDS[build]]).encode())
    files = [*source_files().values(), *sorted((SOURCES / "include").iterdir())]
    for path in [*files, GENERATED / "dispatch.c"]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def compile_module(rows: list[Row], build: str, force: bool = False) -> Fresh | None:
    """One build compiled beside its place, or None where no input has changed.

    Raises:  CompileError on any error or warning: a linker warning means that a C function's arguments
             differ from its row.
    """
    target, stamp, digest = module_path(build), GENERATED / f"{build}.digest", _digest(rows, build)
    if not force and target.is_file() and stamp.is_file() and stamp.read_text() == digest:
        return None
    MODULES.mkdir(parents=True, exist_ok=True)
    found = source_files()
    sources = sorted({str(found[row.source]) for row in rows})
    fresh = target.with_suffix(f".{os.getpid()}.tmp")
    command = [
        sys.executable, "-m", "ziglang", "cc", *COMPILE_FLAGS, *BUILDS[build], f"-I{SOURCES / 'include'}",
        *sources, str(GENERATED / "dispatch.c"), *LINK_FLAGS,
        *(f"-Wl,--export={row.name}" for row in rows), *_thread_flags(build), "-o", str(fresh),
    ]  # fmt: skip
    cache = {"ZIG_GLOBAL_CACHE_DIR": str(ROOT / "build" / "zig"), "ZIG_LOCAL_CACHE_DIR": str(ROOT / "build" / "zig")}
    environment = {**os.environ, **cache}
    done = subprocess.run(command, check=False, env=environment, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    if done.returncode or done.stderr.strip():
        fresh.unlink(missing_ok=True)
        raise CompileError(f"{build}: zig cc gave {done.returncode}\n{done.stderr}")
    return Fresh(fresh, target, stamp, digest)


def module_path(build: str) -> Path:
    """Where a build's module stands."""
    return MODULES / f"webinfer-{build}.wasm"


def compile_all(rows: list[Row], builds: list[str], force: bool = False) -> None:
    """Brings modules and table up to date together: if one build fails, all of them stay as they were.

    Raises:  CompileError
    """
    write_if_changed(GENERATED / "dispatch.c", dispatch_source(rows))
    made: list[Fresh] = []
    try:
        for build in builds:
            fresh = compile_module(rows, build, force)
            made += [fresh] if fresh is not None else []
    except CompileError:
        for fresh in made:
            fresh.module.unlink(missing_ok=True)
        raise
    for fresh in made:
        fresh.module.replace(fresh.target)
        fresh.stamp.write_text(fresh.digest)
    write_if_changed(TABLE, table_source(rows))


def _thread_flags(build: str) -> list[str]:
    if not build.endswith("-threads"):
        return []
    exports = [f"-Wl,--export={name}" for name in THREAD_EXPORTS]
    return ["-Wl,--shared-memory", f"-Wl,--max-memory={SHARED_BYTES}", *exports]


def main(argv: list[str] | None = None) -> int:
    """0 when the modules stand and none is larger than allowed."""
    parser = argparse.ArgumentParser(prog="kernels", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--force", action="store_true", help="compile even if nothing changed")
    parser.add_argument("--only", choices=sorted(BUILDS), help="one build instead of all")
    parser.add_argument("--no-compile", action="store_true", help="only write the generated files")
    options = parser.parse_args(argv)
    try:
        rows = read_rows()
        builds = [] if options.no_compile else [options.only] if options.only else list(BUILDS)
        compile_all(rows, builds, options.force)
    except (KernelListError, CompileError) as error:
        print(f"kernels: {error}", file=sys.stderr)
        return 1
    return _report(rows, builds)


def _report(rows: list[Row], builds: list[str]) -> int:
    """1 if a module is larger than allowed."""
    too_large = 0
    for build in builds:
        data = module_path(build).read_bytes()
        packed = len(gzip.compress(data, 9))
        too_large += packed > LARGEST_GZIP_BYTES
        print(f"kernels {build:15} {len(rows)} kernels  {len(data):8,} bytes  gzip {packed:8,} bytes")
    if too_large:
        print(f"a kernel module is larger than {LARGEST_GZIP_BYTES:,} bytes gzip", file=sys.stderr)
    return 1 if too_large else 0


if __name__ == "__main__":
    sys.exit(main())
