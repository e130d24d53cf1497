"""Addresses of models on a hub: "hf:owner/name/file" is a file of a repository, of a revision "hf:owner/name@v1/file".

"hf:owner/name" is the one model of a repository, "hf:owner/name:Q4_K_M" its GGUF file of that quantisation, as ollama
writes it. HF_ENDPOINT names another hub than Hugging Face's, such as a mirror; HF_TOKEN opens private repositories in
CPython.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Awaitable, Callable
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from webinfer.errors import InputError, ModelFormatError

SCHEME = "hf:"
HUB = "https://huggingface.co"
SUFFIXES = (".onnx", ".tflite", ".gguf", ".task", ".h5", ".keras", ".webinfer")
USUAL = ("onnx/model.onnx", "model.onnx")  # of repositories with several ONNX files
USUAL_QUANTIZATION = "Q4_K_M"
LISTED = 20  # files that an error names
_ADDRESS = re.compile(
    r"(?://)?(?P<owner>[\w.-]+)/(?P<name>[\w.-]+)(?:@(?P<revision>[\w./-]+?))?(?::(?P<quantization>[\w.-]+)|/(?P<file>.*))?"
)
_LATER_SHARD = re.compile(r"-(?!00001-of-)\d{5}-of-\d{5}\.gguf$")


def hub() -> str:
    """The hub's address."""
    return (os.environ.get("HF_ENDPOINT") or HUB).rstrip("/")


def is_of_hub(url: str) -> bool:
    """Whether a URL is one of the hub's."""
    return url.startswith(f"{hub()}/")


async def located(address: str, fetch: Callable[[str], Awaitable[memoryview]]) -> str:
    """The URL of a model on a hub; other addresses, and paths, as they are. `fetch` brings a repository's list.

    Raises:  InputError if it is no such address, or the repository has several models; ModelFormatError
    """
    if not address.startswith(SCHEME):
        return address
    found = _ADDRESS.fullmatch(address.removeprefix(SCHEME))
    if found is None or ".." in address:
        raise InputError(f"{address!r} is not hf:owner/name/file, hf:owner/name or hf:owner/name:Q4_K_M")
    owner, name, file = found["owner"], found["name"], found["file"]
    revision = quote(found["revision"] or "main", safe="")
    if not file:
        listed = f"{hub()}/api/models/{owner}/{name}/revision/{revision}"
        file = _model_of(address, _names(listed, await fetch(listed)), found["quantization"] or "")
    return f"{hub()}/{owner}/{name}/resolve/{revision}/{quote(file)}"


def _names(url: str, data: memoryview) -> list[str]:
    try:
        answer: Any = json.loads(bytes(data))
        return [str(row["rfilename"]) for row in answer["siblings"]]
    except (ValueError, TypeError, KeyError) as error:
        raise ModelFormatError(
            f"{url!r} is not a repository's list of files; name the file: hf:owner/name/file"
        ) from error


def _model_of(address: str, names: list[str], quantization: str) -> str:
    """The model among a repository's files."""
    models = [name for name in names if name.endswith(SUFFIXES) or PurePosixPath(name).name == "model.json"]
    models = [name for name in models if not _LATER_SHARD.search(name)]
    wanted = quantization or (USUAL_QUANTIZATION if all(name.endswith(".gguf") for name in models) else "")
    fitting = [name for name in models if name.endswith(".gguf") and wanted.lower() in name.lower()] if wanted else []
    if not quantization:
        fitting = next(([name] for name in USUAL if name in models), fitting) if len(models) > 1 else models
    if len(fitting) == 1:
        return fitting[0]
    if not models:
        raise InputError(f"{address!r} has no model among its {len(names)} files: none ends in {', '.join(SUFFIXES)}")
    more = f" and {len(models) - LISTED} more" if len(models) > LISTED else ""
    what = (
        f"several files of {quantization}"
        if fitting
        else f"no one file of {quantization}"
        if quantization
        else "several models"
    )
    raise InputError(f"{address!r} has {what}; name one, as in hf:owner/name/file: {', '.join(models[:LISTED])}{more}")
