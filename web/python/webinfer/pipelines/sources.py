"""What a task may be called on: a path, a URL, bytes, a Pillow image, an array; a list, a folder or a pattern."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from webinfer.errors import InputError
from webinfer.host.interface import Host
from webinfer.lazy_dataclass import dataclass

# suffixes of files that a folder is searched for, by what the task takes
SUFFIXES = {
    "picture": (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".avif"),
    "audio": (".wav",),
    "text": (".txt",),
}
VIDEOS = (".mp4", ".mov", ".webm", ".mkv", ".avi", ".m4v")


@dataclass(frozen=True, slots=True)
class Source:
    """One thing to run on, and its name: a file's path, an address, or a number."""

    name: str
    value: Any


def is_video(source: Any) -> bool:
    """Whether a path or an address is that of a video file."""
    return isinstance(source, str | os.PathLike) and os.fspath(source).split("?")[0].lower().endswith(VIDEOS)


def camera_of(source: Any) -> int | None:
    """The number of a camera: an integer, or a text such as "camera:0"; None for everything else."""
    if isinstance(source, int) and not isinstance(source, bool):
        return source
    name, colon, number = source.partition(":") if isinstance(source, str) else ("", "", "")
    return int(number) if name == "camera" and colon and number.isdecimal() else None


def sources_of(source: Any, takes: str) -> tuple[list[Source], bool]:
    """The things that a source names, and whether it names several.

    Raises:  InputError if a folder or a pattern has no fitting file, or it is a video
    """
    if takes == "text":
        return [Source("text", source)], False  # texts are not paths, and a list of them is one run
    if isinstance(source, list) or (isinstance(source, tuple) and not _is_audio(source, takes)):
        found = [one for item in source for one in sources_of(item, takes)[0]]
        return [Source(one.name or str(i), one.value) for i, one in enumerate(found)], True
    if not isinstance(source, str | os.PathLike):
        return [Source("", source)], False
    text = os.fspath(source)
    if is_video(text):
        raise InputError(f"{text!r} is a video; take its frames with `for found in task.stream({text!r})`")
    if text.startswith(("http://", "https://")) or os.path.isfile(text):
        return [Source(text, source)], False
    if os.path.isdir(text):
        files = sorted(path for path in Path(text).iterdir() if path.is_file() and _fits(path.name, takes))
        if not files:
            raise InputError(f"the folder {text!r} has no {takes}: no file that ends in {', '.join(_wanted(takes))}")
        return [Source(str(path), path) for path in files], True
    if any(sign in text for sign in "*?["):
        names = sorted(name for name in glob.glob(text, recursive=True) if os.path.isfile(name))
        if not names:
            raise InputError(f"no file matches {text!r}")
        return [Source(name, name) for name in names], True
    raise InputError(f"there is no file, folder or pattern {text!r}{_near(text)}")


def _is_audio(source: tuple[Any, ...], takes: str) -> bool:
    """Whether a tuple is samples with their rate."""
    return takes == "audio" and len(source) == 2 and isinstance(source[1], int)


def _wanted(takes: str) -> tuple[str, ...]:
    return SUFFIXES.get(takes, ("",))


def _fits(name: str, takes: str) -> bool:
    return name.lower().endswith(_wanted(takes)) and not name.startswith(".")


def _near(text: str) -> str:
    """The file of the same folder whose name is the most like it."""
    from difflib import get_close_matches

    folder = Path(text).parent
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    near = get_close_matches(Path(text).name, names, 1, cutoff=0.7)
    return f"; did you mean {str(folder / near[0])!r}?" if near else ""


async def read(source: Source, takes: str, host: Host) -> Any:
    """The source as the task takes it: the bytes of addresses and of files that are not pictures, uint8 pictures.

    Raises:  what `Host.fetch` raises; InputError if a file cannot be read
    """
    value = source.value
    if isinstance(value, str | os.PathLike) and takes != "text":
        text = os.fspath(value)
        if text.startswith(("http://", "https://")):
            return bytes(await host.fetch(text))
        return text if takes == "picture" else _file(text)
    return eight_bits(value) if takes == "picture" else value


def _file(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path!r}: {error.strerror or error}") from error


def eight_bits(value: Any) -> Any:
    """An array of real numbers 0..1, or of truth values, as uint8; other things as they are."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if kind == "f":
        top = float(value.max()) if value.size else 0.0
        if not 0 <= float(value.min() if value.size else 0.0) <= top <= 255:
            raise InputError(
                "a float array is a picture only if its values are from 0 to 1, or 0 to 255; scale it first"
            )
        return ((value * 255 if top <= 1 else value) + 0.5).astype("uint8")
    return value.astype("uint8") * 255 if kind == "b" else value


def frames_of(source: Any, host: Host) -> Iterator[tuple[Any, float | None]]:
    """The frames of a video file or a camera, or the pictures of an iterable, each with its time in ms if known.

    Raises:  InputError if it is neither, or nothing that reads videos is installed
    """
    if is_video(source):
        from webinfer.host.video import frames

        yield from frames(os.fspath(source))
        return
    if (camera := camera_of(source)) is not None:
        from webinfer.host.video import camera_frames

        yield from camera_frames(camera)
        return
    try:
        items = iter(source)
    except TypeError:
        raise InputError(
            f"a {type(source).__name__} is neither a video, a camera nor a collection of pictures"
        ) from None
    for item in items:
        yield item, None
