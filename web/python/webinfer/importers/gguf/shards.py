"""Language models in several GGUF files: the first file holds the metadata, each of them some of the tensors.

Source: llama.cpp, tools/gguf-split, keys `split.no`, `split.count` and `split.tensors.count`
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from webinfer.errors import ModelFormatError
from webinfer.importers.core.files_beside import bytes_beside
from webinfer.importers.core.limits import within
from webinfer.importers.gguf.container import MAGIC, GgufFile, read_file
from webinfer.spans import FileSpan

MAX_SHARDS = 1000
_NAME = re.compile(r"(.*)-(\d{5})-of-(\d{5})")  # without .gguf


def files_beside(data: memoryview, name: str) -> list[str]:
    """The names of the other files of the model that the file of this name, without suffix, is a part of.

    Raises:  ModelFormatError if the bytes break a rule; LimitError
    """
    own, count = _place(read_file(data, name))
    found = _NAME.fullmatch(name)
    if count == 1 or found is None or (int(found[2]), int(found[3])) != (own + 1, count):
        return []
    return [_name(found[1], number, count) for number in range(count) if number != own]


def _name(stem: str, number: int, count: int) -> str:
    return f"{stem}-{number + 1:05d}-of-{count:05d}.gguf"


def _place(file: GgufFile) -> tuple[int, int]:
    """The number of this file, from 0, and how many the model has."""
    number, count = file.fact("split.no", int, 0), file.fact("split.count", int, 1)
    within(f"files of {file.name!r}", count, MAX_SHARDS)
    if count and not 0 <= number < count:
        raise ModelFormatError(f"{file.name!r} is file {number + 1} of {count}; the file is damaged")
    return number, max(count, 1)


def read_files(data: memoryview | FileSpan, name: str, files: Mapping[str, memoryview] | None = None) -> GgufFile:
    """What a model holds whose first or only file is `data`; `files` are those beside it.

    Raises:  ModelFormatError if files are missing, belong to another model or break a rule; LimitError
    """
    file = read_file(data, name)
    own, count = _place(file)
    if count == 1:
        return file
    shards = {own: file}
    for other, there in (files or {}).items():
        if other.endswith(".gguf") and bytes(there[:4]) != MAGIC:
            bytes_beside({other: there}, other, f"a part of {name!r}")  # raises, if it is a web page for example
        elif bytes(there[:4]) == MAGIC:
            shard = read_file(there, other)
            number, of = _place(shard)
            if of == count:
                shards.setdefault(number, shard)
    if missing := [_name("…", number, count) for number in range(count) if number not in shards]:
        raise ModelFormatError(
            f"{name!r} is file {own + 1} of the {count} files of a model; {', '.join(missing[:3])} "
            f"{'is' if len(missing) == 1 else 'are'} missing. Load the first file by its path or URL with the others "
            "beside it, or give all as a mapping"
        )
    return _joined(name, [shards[number] for number in range(count)])


def _joined(name: str, shards: list[GgufFile]) -> GgufFile:
    tensors = {tensor: stored for shard in shards for tensor, stored in shard.tensors.items()}
    there, told = len(tensors), shards[0].fact("split.tensors.count", int, len(tensors))
    if there != told or there != sum(len(shard.tensors) for shard in shards):
        raise ModelFormatError(
            f"{name!r}: its {len(shards)} files hold {there} tensors, the first file says {told}; the files are of "
            "different models, or damaged"
        )
    return replace(shards[0], name=name, tensors=tensors)
