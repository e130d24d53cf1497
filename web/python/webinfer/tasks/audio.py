"""Recordings for tasks: what counts as one, and how it becomes the samples that a model hears.

Mixing channels, scaling and changing the rate are one convolution: output sample L * n + p is a window of the input
that begins at frame M * n, weighted by the p-th of L rows of a low-pass filter.
"""

from __future__ import annotations

import math
from array import array
from functools import lru_cache
from typing import Any

from webinfer.authoring.builder import GraphBuilder
from webinfer.dtypes import DType
from webinfer.errors import InputError, LimitError
from webinfer.host.interface import Host
from webinfer.lazy_dataclass import dataclass
from webinfer.session.options import whole_number
from webinfer.tasks.last_plan import LastPlan

MAX_RATE = 384_000  # samples a second
MAX_CHANNELS = 32
MAX_WEIGHTS = 2_000_000
CROSSINGS, CUTOFF = 6, 0.99  # of the filter: zero crossings a side, its edge as a part of the lower rate's half
_FLOAT, _EXTENSIBLE = 3, 0xFFFE  # WAVE's numbers of formats
_KINDS: dict[str, tuple[DType, int]] = {
    "B": (DType.UINT8, 128),
    "h": (DType.INT16, 0),
    "i": (DType.INT32, 0),
    "f": (DType.FLOAT32, 0),
}
_SCALES = {"B": 2.0**-7, "h": 2.0**-15, "i": 2.0**-31, "f": 1.0}


@dataclass(frozen=True, slots=True)
class Audio:
    """A recording: frames one after the other, in each a sample a channel. Samples are -1..1, or whole numbers."""

    samples: memoryview[Any]  # flat; of float32, int16, int32 or uint8
    rate: int  # frames a second
    channels: int = 1


@dataclass(frozen=True, slots=True)
class AudioSegment:
    """A segment of a recording. `score` is the mean score of its windows, 0..1.

    `label` is the class of the sound; "" in tasks with one class, such as speech.

    Units:  seconds from the recording's start
    """

    start: float
    end: float
    score: float
    label: str = ""


def read_audio(source: Any, rate: int | None = None) -> Audio:
    """The recording in the bytes of a WAV file, or in samples with their rate; an `Audio` as it is.

    Samples are a buffer or an array [frames] or [frames, channels] of float32, int16, int32 or uint8. A pair of them
    and a rate does as well.

    Raises:  InputError naming what was found
    """
    if isinstance(source, Audio):
        return source
    if isinstance(source, tuple) and len(source) == 2:
        source, rate = source
    try:
        view = memoryview(source)
    except TypeError:
        raise InputError(f"a {type(source).__name__} is not audio; give the bytes of a WAV file, or samples") from None
    if view.ndim == 1 and view.format in "Bbc" and bytes(view[:4]) == b"RIFF" and bytes(view[8:12]) == b"WAVE":
        return _wave(view.cast("B"))
    if rate is None:
        raise InputError("samples need their rate: give audio, rate")
    letter: Any = {"l": "i"}.get(view.format, view.format) if view.itemsize == 4 else view.format
    shape = view.shape or ()
    if letter not in _KINDS or len(shape) not in (1, 2):
        raise InputError(f"an array {shape} of {view.format!r} is not audio; it must be float32 [frames, channels]")
    rate = whole_number("rate", rate, 1000, MAX_RATE)
    channels = whole_number("channels", shape[1] if len(shape) == 2 else 1, 1, MAX_CHANNELS)
    return Audio(memoryview(view.tobytes()).cast(letter), rate, channels)


def _wave(data: memoryview[int]) -> Audio:
    """The samples of a WAV file: its chunks in turn, up to the one that holds them."""
    at, head = 12, memoryview(b"")
    while at + 8 <= len(data):
        name, size = bytes(data[at : at + 4]), int.from_bytes(data[at + 4 : at + 8], "little")
        body = data[at + 8 : at + 8 + size]
        if name == b"fmt ":
            head = body
        elif name == b"data" and len(head) >= 16:
            form, channels, bits = (int.from_bytes(head[i : i + 2], "little") for i in (0, 2, 14))
            rate = int.from_bytes(head[4:8], "little")
            form = int.from_bytes(head[24:26], "little") if form == _EXTENSIBLE else form
            if not 1 <= channels <= MAX_CHANNELS or not 1000 <= rate <= MAX_RATE:
                break
            return Audio(_samples(body, form, bits, channels), rate, channels)
        at += 8 + size + size % 2
    raise InputError("this WAV file has no readable samples: its fmt or data chunk is missing or damaged")


def _samples(body: memoryview[int], form: int, bits: int, channels: int) -> memoryview[Any]:
    letter: Any = {(1, 8): "B", (1, 16): "h", (1, 24): "i", (1, 32): "i", (_FLOAT, 32): "f"}.get((form, bits))
    if letter is None:
        raise InputError(f"this WAV file holds {bits}-bit samples of format {form}; PCM and float32 can be read")
    frame = channels * bits // 8
    body = body[: len(body) // frame * frame]
    if bits != 24:
        return body.cast(letter)
    wide = bytearray(len(body) // 3 * 4)
    for place in range(3):  # whole planes, as the upper bytes of 32-bit samples
        wide[place + 1 :: 4] = body[place::3]
    return memoryview(wide).cast(letter)


@lru_cache(2)  # of the last kinds of recordings
def low_pass(old: int, new: int) -> tuple[array[float], int]:
    """The filter from `old` to `new` samples in the same time: `new` rows of weights, and the frames before a window.

    A sinc under a squared cosine, cut where it ends.
    """
    base = min(old, new) * CUTOFF
    before = math.ceil(CROSSINGS * old / base)
    taps = 2 * before + old
    if new * taps > MAX_WEIGHTS:
        raise LimitError("weights of the filter between these rates", new * taps, MAX_WEIGHTS, "choose a rounder rate")
    rows = array("f", bytes(4 * new * taps))
    for phase in range(new):
        middle = before + phase * old / new
        reach = CROSSINGS * old / base
        for tap in range(max(0, math.ceil(middle - reach)), min(taps, math.floor(middle + reach) + 1)):
            t = (tap - middle) / old * base * math.pi
            sinc = math.sin(t) / t if t else 1.0
            rows[phase * taps + tap] = sinc * math.cos(t / CROSSINGS / 2) ** 2 * base / old
    return rows, before


@dataclass(frozen=True, slots=True)
class _Kind:
    """What a recording's plan is made for: `old` frames become `new` samples, `groups` times in a block."""

    old: int
    new: int
    groups: int
    channels: int
    letter: str  # of the samples' type

    def filter(self) -> tuple[array[float], int]:
        """Rows of weights, and the frames before a window."""
        return low_pass(self.old, self.new) if self.old != self.new else (array("f", [1.0]), 0)


class Listener:
    """Converts recordings to mono float32 samples of one rate. Keeps the plan for the last kind of recording."""

    def __init__(self, host: Host) -> None:
        self._plan = LastPlan(host, _graph)

    async def hear(self, audio: Audio, rate: int) -> memoryview[Any]:
        """The samples of a recording at this rate.

        Raises:  LimitError if the two rates have so little in common that the filter would be too long
        """
        letter, channels = audio.samples.format, audio.channels
        if (audio.rate, channels, letter) == (rate, 1, "f"):
            return audio.samples
        common = math.gcd(audio.rate, rate)
        old, new = audio.rate // common, rate // common
        frames = len(audio.samples) // channels
        groups = -(-rate // new)  # a block is a second or a little more
        kind = _Kind(old, new, groups, channels, letter)
        rows, before = kind.filter()
        whole, wanted = -(-frames // (old * groups)), -(-frames * new // old)
        taps, item = len(rows) // new, audio.samples.itemsize * channels
        silence = b"\x80" if letter == "B" else b"\0"
        padded = silence * (before * item) + audio.samples.tobytes() + silence * ((groups * old + taps) * item)
        heard = bytearray()
        for block in range(whole):
            start = block * groups * old * item
            block_frames = padded[start : start + ((groups - 1) * old + taps) * item]
            found = await self._plan.run(kind, {"frames": block_frames})
            heard += found["samples"].tobytes()
        return memoryview(heard)[: 4 * wanted].cast("f")

    def close(self) -> None:
        """Frees the plan; a second call does nothing."""
        self._plan.close()


def _graph(kind: _Kind) -> GraphBuilder:
    """From the frames of a block to its samples."""
    rows, _ = kind.filter()
    (dtype, zero), taps, channels = _KINDS[kind.letter], len(rows) // kind.new, kind.channels
    weights = array("f", bytes(4 * channels * len(rows)))
    for channel in range(channels):
        weights[channel::channels] = rows
    builder = GraphBuilder("listen")
    x: Any = builder.input("frames", (1, 1, (kind.groups - 1) * kind.old + taps, channels), dtype)
    x = x if kind.letter == "f" else builder.node("cast", x, dtype=DType.FLOAT32)
    scale = _SCALES[kind.letter] / channels
    x = builder.node("linear", x, a=scale, b=-scale * zero)
    filters = builder.constant(weights, (kind.new, 1, taps, channels))
    builder.output(builder.node("conv2d", x, filters, stride=(1, kind.old)), "samples")
    return builder
