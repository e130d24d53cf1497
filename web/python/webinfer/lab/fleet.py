"""A suite of models on every device of a lab: a run is one file that nobody changes, and a static page shows many.

A suite may be cut into shards, which labs on several machines run side by side.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

from webinfer.errors import InputError, IntegrityError, WebinferError
from webinfer.lab.addresses import devices as devices_of
from webinfer.lab.device import Device, device
from webinfer.lab.errors import DeviceGoneError, NoDeviceError
from webinfer.lab.executor import TOLERANCE, farthest, known_answer
from webinfer.models.registry import MODELS
from webinfer.version import VERSION

ZOO = "zoo"  # the suite of all known models
SUFFIXES = (".onnx", ".tflite", ".task", ".webinfer", ".zip")
FORM = 1  # of the files
DIGITS = 16  # of the hash in a file's name
Row = dict[str, Any]
STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem;color-scheme:light dark}table{border-collapse:collapse}"
    "th,td{border:1px solid #8888;padding:.25rem .6rem;text-align:right}th:first-child{text-align:left}"
    ".bad{color:#c22;font-weight:600}"
)


def models_of(suite: str) -> list[str]:
    """The models of a suite, sorted: of "zoo" the names of all known ones, of a folder the paths of its files.

    Raises:  InputError if it is neither, or empty
    """
    if suite == ZOO:
        return sorted(MODELS)
    found = sorted(str(path) for path in Path(suite).glob("*") if path.suffix in SUFFIXES)
    if not found:
        raise InputError(f"suite {suite!r} is neither {ZOO!r} nor a folder with models ({', '.join(SUFFIXES)})")
    return found


def shard_of(models: Sequence[str], shard: str) -> tuple[list[str], tuple[int, int]]:
    """Shard "3/8" of models, the third of eight, and these two numbers; all shards together have each model once.

    Raises:  InputError
    """
    number, _, count = shard.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise InputError(f"shard {shard!r} is not a number and a count; write 3/8 for the third of eight")
    return list(models[int(number) - 1 :: int(count)]), (int(number), int(count))


async def run_suite(
    suite: str, shard: str = "1/1", *, address: str | None = None, devices: Sequence[str] | None = None,
    backends: Sequence[str] = ("wasm",), rounds: int = 20, told: Callable[[Row], None] = lambda row: None,
) -> dict[str, Any]:  # fmt: skip
    """What a shard of a suite gave on the devices of a lab: those named, or all that no program drives.

    Each model is loaded, compared with what this process computes, and timed up to `rounds` times, on each of the
    `backends`. What goes wrong with a model is its row's `error`; a device that goes away has no more rows. `told`
    hears of each row.

    Raises:  InputError; NoDeviceError if none is there; LabError if the lab cannot be reached
    """
    models, (number, count) = shard_of(models_of(suite), shard)
    names = devices or [str(row["name"]) for row in await devices_of(address) if not row["busy"]]
    if not names:
        raise NoDeviceError("the lab has no free device: open its page and agree there, or name a source of browsers")
    began, rows, abouts = _now(), list[Row](), dict[str, Any]()
    known = {model: _Known(model) for model in models}

    async def work(name: str) -> None:
        async with await device(name, address) as found:
            abouts[name] = found.about
            for model in models:
                for backend in backends:
                    row = {"model": Path(model).name, "device": name, "asked": backend}
                    try:
                        row |= await _tried(found, model, known[model], backend, rounds)
                    except WebinferError as error:
                        row |= {"error": f"{error.code}: {error}"}
                        if isinstance(error, DeviceGoneError):
                            return
                    finally:
                        rows.append(row)
                        told(row)

    async with asyncio.TaskGroup() as group:
        for name in names:
            group.create_task(work(name))
    return {
        "form": FORM, "engine": VERSION, "suite": Path(suite).name, "shard": [number, count], "began": began,
        "ended": _now(), "models": [Path(model).name for model in models], "devices": abouts, "rows": rows,
    }  # fmt: skip


class _Known:
    """What this process computes of a model, once for all devices."""

    def __init__(self, model: str) -> None:
        self._model, self._turn = model, asyncio.Lock()
        self._found: Any = None

    async def answer(self) -> Any:
        async with self._turn:
            if self._found is None:
                self._found = await asyncio.to_thread(partial(known_answer, self._model))
            return self._found


async def _tried(found: Device, model: str, known: _Known, backend: str, rounds: int) -> Row:
    begin = time.perf_counter()
    session = await found.load(model, backend=backend)
    load_ms = (time.perf_counter() - begin) * 1e3
    inputs, wanted = await known.answer()
    output, far = farthest(await session.run(inputs), wanted)
    timing = await session.bench(rounds)
    return {
        "backend": session.backend, "load_ms": load_ms, "median_ms": timing.median_ms, "least_ms": timing.least_ms,
        "runs": len(timing.times_ms), "right": far <= TOLERANCE, "far": far if far < 1e30 else 1e30, "farthest": output,
    }  # fmt: skip


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def write_run(folder: Path, run: Mapping[str, Any]) -> Path:
    """Writes a run into a new file, which may only be read from then on and whose name has its hash.

    Raises:  OSError; FileExistsError if this very run is there
    """
    data = json.dumps(run, indent=1).encode()
    at, (number, count) = "".join(c for c in run["began"][:19] if c.isalnum()), run["shard"]
    name = f"{at}-{run['suite']}-{number}of{count}-{hashlib.sha256(data).hexdigest()[:DIGITS]}.json"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / name, "xb") as file:
        file.write(data)
    (folder / name).chmod(0o444)
    return folder / name


def read_runs(folder: Path) -> dict[str, dict[str, Any]]:
    """The runs in a folder by the names of their files, the earliest first.

    Raises:  IntegrityError if a file was changed after it was written; OSError
    """
    found = {}
    for path in sorted(folder.glob("*-*of*-*.json")):
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest()[:DIGITS] != path.stem.rpartition("-")[2]:
            raise IntegrityError(
                f"{path} was not written by a run, or was changed: its content does not have the hash in its name"
            )
        found[path.name] = json.loads(data)
    return dict(sorted(found.items(), key=lambda pair: str(pair[1]["began"])))


def page_of(runs: Mapping[str, Mapping[str, Any]]) -> str:
    """A page by itself: the last figure of each model on each kind of device, what is missing, and the files.

    `runs` are those of `read_runs`.
    """
    cells: dict[str, dict[str, str]] = {}
    for run in runs.values():
        for row in sorted(run["rows"], key=lambda row: not row.get("right")):  # of equal devices the one that fails
            cells.setdefault(str(row["model"]), {})[_column(run, row)] = _cell(row)
    columns = sorted({column for row in cells.values() for column in row})
    head = "".join(f"<th>{escape(text)}</th>" for text in ("model", *columns))
    lines = [
        f"<tr><th>{escape(model)}</th>{''.join(row.get(column, '<td></td>') for column in columns)}</tr>"
        for model, row in sorted(cells.items())
    ]
    files = "".join(f'<li><a href="{escape(name)}">{escape(name)}</a></li>' for name in runs)
    missing = "".join(f"<p class=bad>{escape(line)}</p>" for line in _missing(runs.values()))
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Models on devices</title><style>{STYLE}</style>'
        f"<h1>Models on devices</h1><p>Median milliseconds of a run, of the last of {len(runs)} measurements.</p>"
        f"{missing}<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table><ul>{files}</ul></html>\n"
    )


def _column(run: Mapping[str, Any], row: Row) -> str:
    about = run["devices"][row["device"]]
    return " · ".join((str(about.get("browser", "?")), f"GPU {about.get('gpu', '?')}", str(row["asked"])))


def _cell(row: Row) -> str:
    if "error" in row:
        return f'<td class=bad title="{escape(row["error"])}">{escape(row["error"].partition(":")[0])}</td>'
    if not row["right"]:
        return f"<td class=bad>wrong: {escape(row['farthest'])} by {row['far']:.2g} of its range</td>"
    return f'<td title="{row["runs"]} runs, loaded in {row["load_ms"]:.0f} ms">{row["median_ms"]:.3g}</td>'


def _missing(runs: Iterable[Mapping[str, Any]]) -> list[str]:
    """Shards that no run has."""
    there: dict[tuple[str, int], set[int]] = {}
    for run in runs:
        there.setdefault((str(run["suite"]), run["shard"][1]), set()).add(run["shard"][0])
    gaps = {key: [str(i) for i in range(1, key[1] + 1) if i not in found] for key, found in there.items()}
    return [f"{suite}: no run of {', '.join(gap)} of {count}" for (suite, count), gap in gaps.items() if gap]
