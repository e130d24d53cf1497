"""Recordings: what can be read, and samples of another rate."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run

from webinfer.errors import InputError, LimitError
from webinfer.host import current
from webinfer.tasks.audio import Audio, Listener, read_audio


def wav(
    data: bytes, *, form: int = 1, channels: int = 1, rate: int = 16000, bits: int = 16, before: bytes = b""
) -> bytes:
    head = struct.pack("<HHIIHH", form, channels, rate, rate * channels * bits // 8, channels * bits // 8, bits)
    if form == 0xFFFE:
        head += struct.pack("<HHIH14s", 22, bits, 0, 3 if bits == 32 else 1, bytes(14))
    chunks = before + b"fmt " + struct.pack("<I", len(head)) + head + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


def heard(given: Any, rate: int = 16000) -> np.ndarray[Any, Any]:
    listener = Listener(current())
    try:
        return np.array(run(listener.hear(given if isinstance(given, Audio) else read_audio(given), rate)))
    finally:
        listener.close()


WANTED = np.array([0.0, 0.5, -0.5, -1.0, 0.25])
FORMATS = {
    "8 bits": wav((WANTED * 128 + 128).astype(np.uint8).tobytes(), bits=8),
    "16 bits": wav((WANTED * 2**15).astype(np.int16).tobytes()),
    "24 bits": wav(b"".join(int(v * 2**23).to_bytes(3, "little", signed=True) for v in WANTED), bits=24),
    "32 bits": wav((WANTED * 2**31).astype(np.int32).tobytes(), bits=32),
    "float": wav(WANTED.astype(np.float32).tobytes(), form=3, bits=32),
    "extensible float": wav(WANTED.astype(np.float32).tobytes(), form=0xFFFE, bits=32),
    "a chunk of odd size before": wav(
        (WANTED * 2**15).astype(np.int16).tobytes(), before=b"LIST" + struct.pack("<I", 3) + b"abc\0"
    ),
    "half a frame at the end": wav((WANTED * 2**15).astype(np.int16).tobytes() + b"\1"),
    "two channels": wav(
        np.stack([WANTED + 0.25, WANTED - 0.25]).T.astype(np.float32).tobytes(), form=3, channels=2, bits=32
    ),
}


@pytest.mark.parametrize("kind", FORMATS)
def test_wav_files_of_all_formats_give_the_same_samples(kind: str) -> None:
    np.testing.assert_allclose(heard(FORMATS[kind]), WANTED, atol=1e-6)


def test_samples_come_with_their_rate_and_channels() -> None:
    both = np.array([[0.5, -0.5], [1.0, 0.0]], np.float32)
    np.testing.assert_allclose(heard((both, 16000)), [0, 0.5], atol=1e-6)
    samples = np.array([100, -100], np.int16)
    assert read_audio(samples, 8000) == Audio(memoryview(samples), 8000)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (7, "int is not audio"),
        (np.zeros(4, np.float32), "need their rate"),
        ((np.zeros(4, np.float32), 10), "rate is 10"),
        ((np.zeros(4), 16000), "not audio; it must be float32"),
        ((np.zeros((2, 2, 2), np.float32), 16000), "not audio; it must be float32"),
        (wav(b"", form=6, bits=8), "format 6"),
        (wav(b"\0\0", channels=0), "fmt or data chunk is missing"),
        (wav(b"\0\0")[:30], "fmt or data chunk is missing"),
    ],
)  # fmt: skip
def test_what_is_no_recording_is_refused(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_audio(given)


@pytest.mark.parametrize(("old", "new"), [(8000, 16000), (22050, 16000), (44100, 16000), (48000, 8000)])
def test_a_tone_keeps_its_pitch_level_and_place_at_another_rate(old: int, new: int) -> None:
    def tone(rate: int) -> np.ndarray[Any, Any]:
        return 0.8 * np.sin(2 * math.pi * 440 * np.arange(rate * 5 // 2) / rate)

    found = heard((tone(old).astype(np.float32), old), new)
    assert len(found) == len(tone(new))
    inner = slice(100, -100)  # outside there is silence
    np.testing.assert_allclose(found[inner], tone(new)[inner], atol=4e-3)


def test_what_lies_above_the_new_rate_is_kept_out() -> None:
    high = np.sin(2 * math.pi * 12000 * np.arange(48000) / 48000).astype(np.float32)
    assert np.abs(heard((high, 48000), 16000)[100:-100]).max() < 5e-3


def test_rates_that_share_too_little_are_refused() -> None:
    with pytest.raises(LimitError, match="rounder rate"):
        heard((np.zeros(10, np.float32), 44101))


def test_recordings_of_other_rates_with_the_same_ratio_follow_each_other() -> None:
    both = np.array([[0.5, -0.5], [1.0, 0.0]], np.float32)
    listener = Listener(current())
    for rate in (8000, 16000):
        np.testing.assert_allclose(run(listener.hear(read_audio((both, rate)), rate)), [0, 0.5], atol=1e-6)
    listener.close()
