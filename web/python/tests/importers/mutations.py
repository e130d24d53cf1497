"""Damaged files: what becomes of a model whose bytes were changed at random or cut off."""

from __future__ import annotations

import io
import json
import random
import struct
import time
import traceback
import tracemalloc
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.importers import paper_host
from tests.importers.tfjs_writer import zipped

from webinfer.errors import WebinferError
from webinfer.graph.verify import verify
from webinfer.importers import read_model
from webinfer.passes.pipeline import optimize

SLOWEST_S = 5.0  # of the processor: what else the machine does is not the file's fault
MAX_BYTES = 256 * 2**20
PLANS = paper_host.can_plan()
_WORDS = (0, 1, -1, -2, 2**31 - 1, -(2**31), 255, 65535, 65536, 7, 100_000)


@dataclass
class Tally:
    """Outcomes of many attempts."""

    results: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    others: list[str] = field(default_factory=list)
    slowest_s: float = 0.0
    most_bytes: int = 0
    untouched: int = 0  # guarded runs that changed nothing beside their results
    touched: int = 0  # guarded runs that did
    webgpu: Counter[str] = field(default_factory=Counter)  # graphs that it planned, refused and ran
    differences: int = 0  # of the others: results that are not the reference's

    @property
    def count(self) -> int:
        return self.results + sum(self.errors.values()) + len(self.others)

    @contextmanager
    def attempt(self, label: str) -> Iterator[None]:
        """Counts a typed error that the block raises, and takes down anything else and what took too long."""
        start = time.process_time()
        try:
            yield
        except WebinferError as error:
            self.errors[error.code] += 1
        except Exception:
            self.others.append(f"{label}: {traceback.format_exc(limit=-3)}")
        self.took(time.process_time() - start, label)

    def took(self, seconds: float, label: str) -> None:
        """Takes down what a step took, and that it was too long."""
        self.slowest_s = max(self.slowest_s, seconds)
        if seconds > SLOWEST_S:
            self.others.append(f"{label}: took {seconds:.2f} s")

    def add(self, other: Tally) -> None:
        """Adds the outcomes of another survey."""
        self.results += other.results
        self.errors += other.errors
        self.others += other.others
        self.differences += other.differences
        self.untouched += other.untouched
        self.touched += other.touched
        self.webgpu += other.webgpu
        self.slowest_s = max(self.slowest_s, other.slowest_s)
        self.most_bytes = max(self.most_bytes, other.most_bytes)


def attempt(data: bytes, label: str, tally: Tally) -> None:
    """Imports, optimises, verifies and plans; all but a plan or a typed error within bounds counts as other."""
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    start = time.process_time()
    try:
        graph = read_model(data, "damaged")
        optimize(graph)
        verify(graph)
        if PLANS:
            paper_host.plan(graph)
        outcome = ""
    except WebinferError as error:
        outcome = error.code
    except Exception:
        tally.others.append(f"{label}: {traceback.format_exc(limit=-3)}")
        outcome = "other"
    seconds = time.process_time() - start
    used = tracemalloc.get_traced_memory()[1] - before
    tally.slowest_s, tally.most_bytes = max(tally.slowest_s, seconds), max(tally.most_bytes, used)
    if seconds > SLOWEST_S or used > MAX_BYTES:
        tally.others.append(f"{label}: took {seconds:.2f} s and {used} bytes")
    elif outcome == "":
        tally.results += 1
    elif outcome != "other":
        tally.errors[outcome] += 1


def mutants(data: bytes, count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """`count` damaged copies, each with the words that make it again. Of most archives, one file is damaged."""
    files = _unpacked(data)
    for i in range(count):
        rng = random.Random(f"{seed}:{i}")
        name = rng.choice(list(files)) if files and rng.random() < 0.9 else ""
        name = "model.json" if "model.json" in files and name and rng.random() < 0.7 else name
        copy = bytearray(files.get(name, data))
        for _ in range(rng.choice((1, 1, 1, 1, 2, 4))):
            if name.endswith(".json") and rng.random() < 0.7:
                copy = _damaged_json(copy, rng)
            else:
                _damage(copy, rng)
        yield f"seed {seed} mutation {i}", zipped({**files, name: bytes(copy)}) if name else bytes(copy)


def _unpacked(data: bytes) -> dict[str, bytes]:
    if data[:4] != b"PK\3\4":
        return {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


_STRANGE: tuple[Any, ...] = (
    None,
    -1,
    0,
    1,
    2,
    2**31,
    2**63,
    -(2**40),
    1e30,
    0.5,
    True,
    "",
    "x",
    "-1",
    "99999",
    [],
    {},
    [[]],
    {"i": []},
)


def _damaged_json(data: bytearray, rng: random.Random) -> bytearray:
    """A description in which one part is gone, doubled, or is another part or something strange."""
    try:
        tree = json.loads(data)
    except ValueError:
        return data
    places = list(_places(tree))
    if not places:
        return data
    holder, key = rng.choice(places)
    kind = rng.randrange(5)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, list):
        holder.insert(key, holder[key])
    elif kind <= 3:
        other, place = rng.choice(places)
        holder[key] = json.loads(json.dumps(other[place]))
    else:
        holder[key] = rng.choice(_STRANGE)
    return bytearray(json.dumps(tree).encode())


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Each part of a description, as what holds it and the key there."""
    waiting = [tree]
    while waiting:
        holder = waiting.pop()
        for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
            yield holder, key
            if isinstance(holder[key], (dict, list)):
                waiting.append(holder[key])


def truncations(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The file cut off after each of its bytes."""
    for size in range(len(data)):
        yield f"cut to {size} bytes", data[:size]


def _damage(copy: bytearray, rng: random.Random) -> None:
    if not copy:
        return
    at = rng.randrange(len(copy))
    kind = rng.choice((0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6))
    if kind == 0:
        copy[at] ^= 1 << rng.randrange(8)
    elif kind == 1:
        copy[at] = rng.randrange(256)
    elif kind == 2 and len(copy) >= 4:  # an aligned word: most fields are one
        word = rng.choice((*_WORDS, len(copy), len(copy) - 4, rng.randrange(len(copy))))
        struct.pack_into("<i", copy, at % (len(copy) - 3) // 4 * 4, word)
    elif kind == 3 and len(copy) >= 4:
        place = at % (len(copy) - 3) // 4 * 4
        (word,) = struct.unpack_from("<I", copy, place)
        struct.pack_into("<I", copy, place, (word + rng.choice((-4, -1, 1, 4))) % 2**32)
    elif kind == 4:  # some bytes from elsewhere
        size, source = rng.randrange(1, 33), rng.randrange(len(copy))
        copy[at : at + size] = copy[source : source + size]
    elif kind == 5:
        del copy[at : at + rng.randrange(1, 9)]
    else:
        copy[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 9)))


def survey(models: dict[str, bytes], count: int, seed: int) -> Tally:
    """Outcomes of `count` mutations, shared out among the models."""
    tally = Tally()
    tracemalloc.start()
    try:
        for k, (name, data) in enumerate(models.items()):
            share = count // len(models) + (k < count % len(models))
            for label, damaged in mutants(data, share, seed):
                attempt(damaged, f"{name}, {label}", tally)
    finally:
        tracemalloc.stop()
    return tally
