"""Reads the list of kernels, kernels_wasm/kernels.toml, and the constants that C and Python share."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from build_scripts.kernels import described
from build_scripts.kernels.formulas import FAMILIES, kernel_names
from webinfer import kernel_constants

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "kernels_wasm"
LIST = SOURCES / "kernels.toml"


class KernelListError(Exception):
    """kernels.toml breaks a rule of its grammar."""


@dataclass(frozen=True)
class Row:
    """One kernel: its C function, the file that defines it, its arguments, and what it is split by."""

    name: str
    source: str
    args: tuple[tuple[str, str], ...]
    split: str
    writes: tuple[tuple[str, str], ...] = ()  # pointer argument → bytes from it, as Python of args and units

    @property
    def signature(self) -> str:
        """Everything that a program depends on, as text."""
        return f"{self.name}({','.join(kind for _, kind in self.args)}){'/split' if self.split else ''}"


Constants = Mapping[str, int | tuple[int, ...]]  # full name → number, or list of numbers


def read_rows(path: Path = LIST) -> list[Row]:
    """The kernels in the list's order; a kernel's id is its place.

    Raises:  KernelListError for a broken row, a name that stands twice, or a source that is missing.
    """
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    rows = [*_rows(data), *(_described(data["described"]) if "described" in data else ())]
    known = {*source_files(path.parent), described.SOURCE}
    seen: set[str] = set()
    for row in rows:
        if row.name in seen:
            raise KernelListError(f"kernel {row.name} is listed twice")
        if row.source not in known:
            raise KernelListError(f"kernel {row.name}: {row.source} does not exist in kernels_wasm/src")
        seen.add(row.name)
    return rows


def _rows(data: dict[str, list[dict[str, object]]]) -> Iterator[Row]:
    entries: dict[object, dict[str, object]] = {}
    for entry in data.get("kernel", []):
        if "like" in entry:
            if entry["like"] not in entries or {"args", "split"} & set(entry):
                raise KernelListError(f"{entry}: like must name an earlier kernel and replaces args and split")
            model = entries[entry["like"]]
            entry |= {key: model[key] for key in ("args", "split", "writes") if key in model and key not in entry}
        family = entry.get("family")
        if family is not None and family not in FAMILIES:
            raise KernelListError(f"family {family!r} is none of {', '.join(FAMILIES)}")
        names = kernel_names(str(family)) if family else entry.get("names") or [entry.get("name")]
        unknown = set(entry) - {"name", "names", "family", "source", "args", "split", "writes", "like"}
        if unknown or not isinstance(names, list) or ({"names", "family"} & set(entry) and "source" not in entry):
            raise KernelListError(f"{names}: unknown keys {sorted(unknown)}, or names without source")
        for name in names:
            if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
                raise KernelListError(f"kernel name {name!r} breaks the grammar in kernels_wasm/README.md")
            args = entry.get("args")
            if not isinstance(args, list):
                raise KernelListError(f"{name}: args is missing")
            entries[name] = entry
            source = str(entry.get("source", f"{name}.c"))
            parsed = _parse_args(name, args)
            writes = _parse_writes(name, dict(parsed), entry.get("writes", {}))
            yield Row(name, source, parsed, str(entry.get("split", "")), writes)


def by_hand(path: Path = LIST) -> dict[str, str]:
    """Described operators whose C is written by hand all the same → the file that says why."""
    found: dict[str, str] = tomllib.loads(path.read_text(encoding="utf-8"))["described"]
    return found


def _described(other: Mapping[str, str]) -> Iterator[Row]:
    """The rows of the kernels that operators describe, but those that are written by hand."""
    for name, kernel in described.kernels(other).items():
        for width in described.widths_of(kernel):
            written = f"{width // 8}*units*{kernel.space[-1].extent.name}"
            full = f"{described.prefix_of(kernel, width)}_{name}"
            yield Row(
                full, described.SOURCE, tuple(described.arguments(kernel).items()), "rows of y", (("y", written),)
            )


def _parse_args(name: str, args: list[str]) -> tuple[tuple[str, str], ...]:
    parsed: dict[str, str] = {}
    for arg in args:
        match = re.fullmatch(r"([a-z][a-z0-9_]*):(ptr|i32|f32)", arg)
        if match is None:
            raise KernelListError(f"{name}: argument {arg!r} is not <name>:ptr, <name>:i32 or <name>:f32")
        if match[1] in parsed or match[1] in ("units", "kernel"):
            raise KernelListError(f"{name}: argument {match[1]!r} stands twice, or is a word of the step itself")
        parsed[match[1]] = match[2]
    return tuple(parsed.items())


def _parse_writes(name: str, args: Mapping[str, str], writes: object) -> tuple[tuple[str, str], ...]:
    """Pointer argument → bytes that are written from it; `element` has become the bytes of the name's last type."""
    if not isinstance(writes, dict):
        raise KernelListError(f"{name}: writes is not a table of pointer arguments")
    types = [
        int(bits) // 8 for bits in re.findall(r"(?<![a-z0-9])[biuf](8|16|32|64)(?![a-z0-9])", name.replace("_", " "))
    ]
    size = "1" if name.endswith("_bool") or not types else str(types[-1])
    found = []
    for pointer, text in writes.items():
        text = re.sub(r"\belement\b", size, str(text))
        unknown = [word for word in re.findall(r"[a-z_][a-z0-9_]*", text) if word not in (*args, "units", "reach")]
        if args.get(pointer) != "ptr" or unknown or not re.fullmatch(r"[a-z0-9_ ,+*/()-]+", text):
            raise KernelListError(
                f"{name}: writes of {pointer!r} are {text!r}; needs numbers, whole arguments and units"
            )
        found.append((pointer, text))
    return tuple(found)


def shared_constants(module: Mapping[str, object] = vars(kernel_constants)) -> Constants:
    """The numbers that C and Python share: what `webinfer.kernel_constants` names in capitals.

    Raises:  KernelListError for a value that is neither a whole number nor a tuple of them
    """
    found: dict[str, int | tuple[int, ...]] = {}
    for name, value in module.items():
        if not re.fullmatch(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+", name):
            continue
        numbers = value if isinstance(value, tuple) and value else (value,)
        if not all(type(number) is int for number in numbers):
            raise KernelListError(f"constant {name} is {value!r}, must be a whole number or a tuple of them")
        found[name] = value  # type: ignore[assignment]
    return found


def unlisted_sources(rows: list[Row]) -> list[str]:
    """Names of the files in kernels_wasm/src that no row compiles."""
    listed = {row.source for row in rows}
    return sorted(name for name in source_files() if name not in listed)


def source_files(folder: Path = SOURCES) -> dict[str, Path]:
    """File name → path of every C source; the folders of src are the operators' families."""
    return {path.name: path for path in sorted((folder / "src").rglob("*.c"))}


def abi(rows: list[Row], constants: Constants) -> int:
    """A 31-bit digest of signatures and constants: a program fits a module only if both carry the same one."""
    shared = ";".join(f"{name}={value}" for name, value in constants.items())
    text = f"{shared}/" + ";".join(row.signature for row in rows)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little") & 0x7FFFFFFF
