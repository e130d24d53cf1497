"""Python's runtime in two WebAssembly modules: what programs run, and the rest, which comes when nobody waits for it.

The rest is what was not seen to run. What memory begins with is a file of its own, which browsers keep as it is:
modules they unpack and check anew on each visit.

Both modules have every function under its old number, so that no code changes: where a function lies in the other
module, a stub of a few bytes calls it through a table that the two share. Slot 0 of the table is for the script
that fetches the rest (web/static/startup/python_rest.js). The first module asks whether the rest is there; the rest
knows that the first one is.

The runtime exports some thousands of functions and addresses that only other modules of machine code ask for. The first
module exports what the glue code names; the rest has a list of the others, in a custom section: a function is where its
slot of the shared table says.
"""

import base64
import functools
import hashlib
import json
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from build_scripts.site.late_linking import ALL, named_exports
from build_scripts.site.short_glue import published_glue
from build_scripts.site.wasm_sections import (
    FUNCTION,
    GLOBAL,
    I32,
    Module,
    body,
    custom,
    export,
    function_import,
    number,
    signed,
    vector,
)

PROFILE = Path(__file__).with_name("runtime_profile.json")  # which functions pages run, of one build of Pyodide
OWN = "webinfer."  # what the names of our exports begin with
SHARED = "webinfer"  # the module that the rest imports ours from
GAP = 64  # zeros between data that are sent: each piece more costs as much
STUB = 128  # bytes: what is not longer stays, for there a stub is worth little
ANY_TABLE = bytes([0x70, 0x00])  # of functions, without an end


def recorded(whole: bytes) -> frozenset[int] | None:
    """The functions of this runtime that pages run, or None if what was recorded is of another one."""
    if not PROFILE.is_file():
        return None
    profile = json.loads(PROFILE.read_text())
    if profile["sha256"] != hashlib.sha256(whole).hexdigest():
        return None
    bits = zlib.decompress(base64.b64decode(profile["functions"]))
    return frozenset(i for i in range(8 * len(bits)) if bits[i // 8] >> i % 8 & 1)


def record(whole: bytes, functions: Iterable[int]) -> None:
    """Writes the profile."""
    bits = bytearray(Module(whole).functions // 8 + 1)
    for i in functions:
        bits[i // 8] |= 1 << i % 8
    packed = base64.b64encode(zlib.compress(bytes(bits), 9)).decode()
    PROFILE.write_text(json.dumps({"sha256": hashlib.sha256(whole).hexdigest(), "functions": packed}) + "\n")


def short(whole: bytes) -> frozenset[int]:
    """The functions of this runtime that a stub would not shorten."""
    module = Module(whole)
    return frozenset(i for i, body in enumerate(module.bodies, module.imported) if len(body) <= STUB)


@functools.cache
def runtime_files(path: Path) -> dict[str, bytes]:
    """What is served of the runtime at this path, by name.

    The whole module is for pages that load Pyodide without us; our pages get two modules and data. Without a profile
    only the whole module is served.
    """
    whole = path.read_bytes()
    used = recorded(whole)
    if used is None:
        return {path.name: whole}
    named = named_exports(published_glue(path.with_name("pyodide.asm.mjs")))
    first, rest, data = split(whole, used | short(whole), named)
    return {path.name: whole, "pyodide.first.wasm": first, "pyodide.rest.wasm": rest, "pyodide.data.bin": data}


def split(whole: bytes, used: frozenset[int], named: frozenset[str] | None = None) -> tuple[bytes, bytes, bytes]:
    """The module of the `used` functions, by number, that of all others, and what memory begins with.

    Of exports the first has those that are `named`; None: all.
    The data: the number of pieces (32-bit words), for each its address and length, then the bytes of all.
    """
    module = Module(whole)
    cold = [i for i in range(module.imported, module.functions) if i not in used]
    hot = [i for i in range(module.imported, module.functions) if i in used]
    slots = {i: slot for slot, i in enumerate([*cold, *hot], 1)}
    parts = _Parts(module, cold, slots, named)
    rest = parts.rest()
    return parts.first(zlib.crc32(rest)), rest, data_file(module.joined_data(GAP))


def data_file(pieces: Sequence[tuple[int, bytes]]) -> bytes:
    """Bytes by their addresses as web/static/startup/python_snapshot.js reads them."""
    words = [len(pieces), *(word for begin, data in pieces for word in (begin, len(data)))]
    return struct.pack(f"<{len(words)}I", *words) + b"".join(data for _, data in pieces)


@dataclass(frozen=True)
class _Parts:
    """A module, the functions that leave it, and everybody's slot in the shared table."""

    module: Module
    cold: Sequence[int]
    slots: dict[int, int]
    named: frozenset[str] | None

    def others(self) -> tuple[dict[str, int], dict[str, int]]:
        """Exports that the first module lacks: the slots of functions, and what globals are."""
        left = [row for row in self.module.exports if self.named is not None and row[0] not in self.named]
        functions = {name: self.slots[i] for name, kind, i in left if kind == FUNCTION and i in self.slots}
        constants = {name: self.module.constant(i) for name, kind, i in left if kind == GLOBAL}
        return functions, {name: value for name, value in constants.items() if value is not None}

    def first(self, crc: int) -> bytes:
        """The first module; `crc` is the CRC-32 of the rest, by which the page knows it."""
        module, table, cold = self.module, self.module.tables, set(self.cold)
        kinds = sorted({module.type_of(i) for i in cold})
        asking = {kind: module.functions + at for at, kind in enumerate(kinds)}  # one more function for each type
        types, nothing = list(module.types), bytes([0x60, 0, 0])
        for params, results in map(module.signature, kinds):
            types.append(bytes([0x60]) + vector([*params, I32]) + vector(results))
        types.append(nothing)
        bodies = list(module.bodies)
        for i in cold:
            count = len(module.signature(module.type_of(i))[0])
            call = b"\x10" + number(asking[module.type_of(i)])
            bodies[i - module.imported] = body(_arguments(count) + b"\x41" + signed(self.slots[i]) + call)
        for kind in kinds:
            count = len(module.signature(kind)[0])
            missing = b"\x20" + number(count) + b"\x25" + number(table) + b"\xd1"
            fetch = b"\x41\x00\x11" + number(len(types) - 1) + number(table)
            call = b"\x20" + number(count) + b"\x11" + number(kind) + number(table)
            bodies.append(body(missing + b"\x04\x40" + fetch + b"\x0b" + _arguments(count) + call))
        globals_ = module.count_of_globals
        functions, constants = self.others()
        exports = [export(*row) for row in module.exports if row[0] not in functions and row[0] not in constants]
        exports += [export(f"{OWN}table", 1, table), export(f"{OWN}crc", 3, globals_)]
        exports += [export(f"{OWN}{i}", 3, module.imported_globals + i) for i in range(module.mutable)]
        exports += [export(f"{OWN}table{i}", 1, i) for i in range(table)]
        kept = [i for i in self.slots if i not in cold]
        return module.written({
            1: vector(types),
            3: vector([*module.kinds, *(number(len(module.types) + at) for at in range(len(kinds)))]),
            4: module.more(4, [ANY_TABLE + number(1 + len(self.slots))]),
            6: module.more(6, [bytes([I32, 0]) + b"\x41" + signed(crc - (crc >> 31 << 32)) + b"\x0b"]),
            7: vector(exports),
            9: module.more(9, [self._elements(kept)]),
            10: vector(bodies), 11: None, 12: None,
        })  # fmt: skip

    def rest(self) -> bytes:
        """The rest: no memory, data or exports of its own, and a list of exports that the first module lacks."""
        module, cold = self.module, set(self.cold)
        bodies = list(module.bodies)
        for i in self.slots:
            if i not in cold:
                kind = module.type_of(i)
                count = len(module.signature(kind)[0])
                call = b"\x11" + number(kind) + number(module.tables)
                bodies[i - module.imported] = body(_arguments(count) + b"\x41" + signed(self.slots[i]) + call)
        shared = [function_import(SHARED, str(i), bytes([3, I32, 1])) for i in range(module.mutable)]
        shared += [function_import(SHARED, f"table{i}", b"\x01" + kind) for i, kind in enumerate(module.open_tables)]
        shared += [function_import(SHARED, "table", b"\x01" + ANY_TABLE + number(1 + len(self.slots)))]
        shared += [function_import(SHARED, "memory", b"\x02" + module.open_memory)]
        shared += [function_import(SHARED, name, b"\x04" + kind) for name, kind in module.tags]
        functions, constants = self.others()
        listed = json.dumps({"functions": functions, "constants": constants}, separators=(",", ":"))
        return module.written({
            0: None, 2: module.more(2, shared), 4: None, 5: None, 6: vector(module.constants), 7: None,
            9: vector([self._elements(self.cold)]), 10: vector(bodies), 11: None, 12: None, 13: None,
        }) + custom(ALL, listed.encode())  # fmt: skip

    def _elements(self, functions: Sequence[int]) -> bytes:
        """A segment that puts these functions, which have one slot after the other, into the shared table."""
        begin = b"\x41" + signed(self.slots[functions[0]]) + b"\x0b"
        return b"\x02" + number(self.module.tables) + begin + b"\x00" + vector([number(i) for i in functions])


def _arguments(count: int) -> bytes:
    return b"".join(b"\x20" + number(i) for i in range(count))


def counting(whole: bytes) -> bytes:
    """The same runtime, where each function notes in an exported global, OWN + "ran" + its number, that it ran."""
    module = Module(whole)
    first = module.count_of_globals
    numbers = range(module.imported, module.functions)
    bodies = []
    for i, old in zip(numbers, module.bodies, strict=True):
        mark = b"\x41\x01\x24" + number(first + i - module.imported)
        bodies.append(module.prefixed(old, mark))
    return module.written({
        6: module.more(6, [bytes([I32, 1]) + b"\x41\x00\x0b" for _ in numbers]),
        7: module.more(7, [export(f"{OWN}ran{i}", 3, first + i - module.imported) for i in numbers]),
        10: vector(bodies),
    })  # fmt: skip
