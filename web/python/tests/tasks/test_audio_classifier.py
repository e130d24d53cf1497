"""What is heard, with a small model in the place of the real one."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ops.case_graphs import run

import webinfer
from webinfer.errors import InputError, ModelFormatError
from webinfer.tasks import AudioClassifier, AudioSegment

WINDOW, RATE = 400, 16000
LABELS = ("quiet", "loud", "middling")


def loudness() -> webinfer.GraphBuilder:
    """The mean m of a window's samples: 1 - m, m, and 0.4."""
    builder = webinfer.GraphBuilder("loudness")
    mean = builder.node("reduce_mean", builder.input("waveform", (WINDOW,)), axes=(0,), keep_dims=True)
    quiet, rest = builder.node("linear", mean, a=-1.0, b=1.0), builder.node("linear", mean, a=0.0, b=0.4)
    builder.output(builder.node("reshape", builder.node("concat", quiet, mean, rest, axis=0), shape=(1, 3)), "scores")
    return builder


def test_windows_of_one_class_are_one_sound() -> None:
    levels = [0.9, 0.8, 0.1, 0.1, 0.55, 1.0]
    samples = np.repeat(np.array(levels, np.float32), WINDOW)[: 5 * WINDOW + 100]  # the last window is cut short

    async def heard() -> tuple[list[AudioSegment], list[str], float, int]:
        with await AudioClassifier.create(loudness(), labels=LABELS, backend="wasm", min_score=0.6, most=2) as task:
            sounds = await task.classify(samples, RATE)
            best = [window[0].label for window in task.windows]
            return sounds, best, task.window_s, len(task.windows[0])

    sounds, best, window, kept = run(heard())
    assert best == ["loud", "loud", "quiet", "quiet", "loud", "quiet"]
    assert (window, kept) == (0.025, 2)
    assert [(s.label, round(s.start, 4), round(s.end, 4), round(s.score, 3)) for s in sounds] == [
        ("loud", 0, 0.05, 0.85), ("quiet", 0.05, 0.1, 0.9), ("quiet", 0.125, 0.1313, 0.75),
    ]  # fmt: skip


def test_a_live_recording_goes_on_where_it_ended() -> None:
    samples = np.repeat(np.array([0.9, 0.8, 0.9], np.float32), WINDOW)

    async def heard() -> list[list[AudioSegment]]:
        with await AudioClassifier.create(loudness(), labels=LABELS, backend="wasm") as task:
            found = [await task.detect_live(part, RATE) for part in (samples[:500], samples[500:700], samples[700:])]
            task.reset()
            return [*found, await task.detect_live(samples[:WINDOW], RATE)]

    assert [[(s.label, round(s.end, 3)) for s in sounds] for sounds in run(heard())] == [
        [("loud", 0.025)], [("loud", 0.025)], [("loud", 0.075)], [("loud", 0.025)],
    ]  # fmt: skip


def test_what_does_not_classify_sound_is_refused() -> None:
    with pytest.raises(InputError, match="contains no labels for its 3 classes"):
        run(AudioClassifier.create(loudness(), backend="wasm"))
    with pytest.raises(ModelFormatError, match="3 classes, but 1 labels are known"):
        run(AudioClassifier.create(loudness(), labels=["a"], backend="wasm"))
    other = webinfer.GraphBuilder("other")
    other.output(other.node("relu", other.input("x", (1, 8, 8, 3))), "y")
    with pytest.raises(ModelFormatError, match="does not classify sound"):
        run(AudioClassifier.create(other, labels=LABELS, backend="wasm"))


def test_old_names_of_segments_still_mean_them() -> None:
    for name in ("Speech", "SoundEvent"):
        with pytest.warns(DeprecationWarning, match="use AudioSegment"):
            assert getattr(webinfer.tasks, name) is AudioSegment
