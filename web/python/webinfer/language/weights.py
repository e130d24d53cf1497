"""Where the bytes of a language model come from: files are read in parts, so that they are in memory only once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import PurePath
from typing import Any

from webinfer.host.hub import located
from webinfer.host.interface import Host, Progress, ProgressEvent
from webinfer.lazy_dataclass import dataclass
from webinfer.models.registry import known_model, locate_model
from webinfer.session.loading import opened
from webinfer.spans import FileSpan


@dataclass(frozen=True, slots=True)
class Weights:
    """A model's file: its bytes, in memory or in a file that is read in parts, and its name."""

    data: memoryview | FileSpan
    name: str
    files: Mapping[str, memoryview] = field(default_factory=dict)  # of a model in several, those beside the first

    def close(self) -> None:
        """Lets the file go; its bytes lie in the backend's memory."""
        if isinstance(self.data, FileSpan):
            self.data.file.close()


async def open_weights(source: Any, host: Host, progress: Progress | None) -> Weights:
    """The file of a model: bytes, a path, a URL, a known model's name, or a file that the user chose.

    A known model's is checked, and where the platform can, kept for later visits and read from there.

    Raises:  ModelFormatError; IntegrityError; BackendUnavailableError
    """
    known, file = known_model(source), None
    if isinstance(source, str) and known is None:
        source = await located(source, host.fetch)
    if known is not None:
        published = (known.sha256, *known.other_editions)
        file = await host.kept_file(published)
        if file is not None and progress is not None:
            progress(ProgressEvent("model", file.size, file.size))
        file = file or await host.large_file(locate_model(known.name, host.asset), published, progress)
    elif not isinstance(source, (bytes, bytearray, memoryview, PurePath)):
        file = await host.large_file(source, (), progress)
    if file is None:
        found = await opened(source, host, progress)
        return Weights(found.data.toreadonly(), found.name, found.files)
    return Weights(FileSpan(file, 0, file.size), known.name if known is not None else _name(source))


def _name(source: Any) -> str:
    text = source if isinstance(source, str) else str(getattr(source, "name", ""))
    return PurePath(text.split("?")[0]).stem or "model"
