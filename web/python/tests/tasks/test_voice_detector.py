"""Speech in recordings: stretches from probabilities, streams, and a small model in the place of the real one."""

from __future__ import annotations

import math
from array import array
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import TARGETS, Target

import webinfer
from webinfer.errors import InputError, ModelFormatError
from webinfer.tasks import AudioSegment, VoiceActivityDetector
from webinfer.tasks.voice_detector import SpeechRule

EVERYWHERE = [t for t in TARGETS if dict(t.options).get("isa", "relaxed") == "relaxed"]
CHUNK, RATE = 512, 16000


def loudness() -> webinfer.GraphBuilder:
    """A model with Silero's inputs: the probability is the greatest sample of the window, the state counts chunks."""
    builder = webinfer.GraphBuilder("loudness")
    samples, state = builder.input("input", (1, 576)), builder.input("state", (2, 1, 128))
    builder.output(builder.node("reduce_max", samples, axes=(1,), keep_dims=True), "output")
    builder.output(builder.node("linear", state, a=1.0, b=1.0), "stateN")
    return builder


def saved(*states: str, rated: bool = False) -> bytes:
    """The same with open sizes: of any number of chunks at once, of any length; each state counts its runs."""
    onnx = pytest.importorskip("onnx")
    node, info, real = onnx.helper.make_node, onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    shape = [3 - len(states), 1, 128]
    nodes = [node("ReduceMax", ["input"], ["speech"], axes=[1], keepdims=0)]
    nodes += [node("Add", [state, "one"], [f"{state}N"]) for state in states]
    given = [info("input", real, ["n", "samples"]), *(info(state, real, shape) for state in states)]
    given += [info("sr", onnx.TensorProto.INT64, [])] if rated else []
    made = [info("speech", real, ["n"]), *(info(f"{state}N", real, shape) for state in states)]
    one = onnx.numpy_helper.from_array(np.float32(1).reshape(1), "one")
    graph = onnx.helper.make_graph(nodes, "g", given, made, [one])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    return bytes(model.SerializeToString())


def detector(backend: str = "wasm", model: Any = None, **options: Any) -> VoiceActivityDetector:
    found: VoiceActivityDetector = run(VoiceActivityDetector.create(model or loudness(), backend=backend, **options))
    return found


def recording(*parts: tuple[float, int]) -> np.ndarray[Any, Any]:
    """Levels, each for so many chunks."""
    return np.concatenate([np.full(chunks * CHUNK, level, np.float32) for level, chunks in parts])


def spans(speeches: list[AudioSegment], per_s: float = RATE / CHUNK) -> list[tuple[float, float]]:
    return [(s.start * per_s, s.end * per_s) for s in speeches]


@pytest.mark.parametrize("target", EVERYWHERE, ids=str)
def test_loud_stretches_are_told_in_seconds(target: Target) -> None:
    target.demand()
    with detector(target.backend, padding_ms=0) as task:
        found = run(task.detect(recording((0.0, 10), (0.9, 20), (0.1, 30)), RATE))
        # the chunk after hears the end of the last loud one
        assert [(s.start, s.end) for s in found] == [pytest.approx((10 * CHUNK / RATE, 31 * CHUNK / RATE))]
        assert found[0].score == pytest.approx(0.9)
        assert len(task.probabilities) == 60
        assert task.chunk_s == 0.032
        assert float(task._state["state"].flat()[0]) == 60
        assert run(task.run((recording((0.0, 10)), RATE))) == []


def test_a_stream_in_odd_pieces_gives_what_the_whole_gives() -> None:
    sound = recording((0.0, 3), (0.8, 12), (0.2, 9), (0.7, 11))
    with detector() as task:
        whole = run(task.detect(sound, RATE))
        probabilities = task.probabilities
        task.reset()
        pieces = [run(task.listen(piece)) for piece in np.array_split(sound, 23)]
        assert [p for piece in pieces for p in piece] == task.probabilities == probabilities
        assert task.speeches() == whole
        assert len(whole) == 2
        task.reset()
        live = [run(task.detect_live(piece, RATE)) for piece in np.array_split(sound, 5)]
        assert live[-1] == whole
        assert [len(found) for found in live] == [0, 1, 1, 1, 2]  # the first ones go on being told
        assert task.beside == {"probabilities": array("f", probabilities), "chunk_s": 0.032}
        for wrong, rate in ((sound, 8000), (np.stack([sound, sound], 1), RATE), (sound.astype(np.int16), RATE)):
            with pytest.raises(InputError, match="a live recording needs one channel of float32, 16000 a second"):
                run(task.detect_live(wrong, rate))


def test_a_model_of_many_chunks_hears_what_one_of_single_chunks_does() -> None:
    sound = recording((0.0, 20), (0.8, 30), (0.2, 9), (0.7, 12))  # two blocks and seven chunks
    with detector() as single, detector(model=saved("h", "c")) as many:
        assert run(many.detect(sound, RATE)) == run(single.detect(sound, RATE))
        assert many.probabilities == single.probabilities
        assert [float(part.flat()[0]) for part in many._state.values()] == [9, 9]  # runs
        assert run(many.detect(sound[::2].copy(), 8000))
        assert many.rate == 16000
        with pytest.raises(InputError, match="needs 16000"):
            many.reset(8000)


def test_a_model_that_knows_rates_hears_8_khz_as_they_are() -> None:
    with detector(model=saved("state", rated=True), padding_ms=0) as task:
        found = run(task.detect(recording((0.0, 10), (0.9, 20), (0.1, 30)), 8000))
        assert (task.rate, task.chunk_s, len(task.probabilities)) == (8000, 0.032, 120)
        assert [(s.start, s.end) for s in found] == [pytest.approx((20 * 0.032, 61 * 0.032))]
        with pytest.raises(InputError, match="needs 16000 or 8000"):
            task.reset(11025)


def test_the_last_chunk_is_filled_with_silence_and_speech_ends_with_the_recording() -> None:
    with detector() as task:
        found = run(task.detect(recording((0.9, 20))[:-100], RATE))
        assert len(task.probabilities) == 20
        assert found[0].end == (20 * CHUNK - 100) / RATE


P, Q = 0.9, 0.1


@pytest.mark.parametrize(
    ("probabilities", "options", "wanted"),
    [
        ([Q] * 5 + [P] * 10 + [Q] * 5, {}, [(5, 15)]),
        ([Q] * 5 + [P] * 7 + [Q] * 5, {}, []),  # 224 ms are too short
        ([Q] * 5 + [P] * 7 + [Q] * 5, {"min_speech_ms": 200}, [(5, 12)]),
        ([P] * 10 + [Q] * 3 + [P] * 10, {}, [(0, 23)]),  # 96 ms of silence end nothing
        ([P] * 10 + [Q] * 5 + [P] * 10, {}, [(0, 10), (15, 25)]),
        ([P] * 10 + [0.4] * 9 + [P] * 10, {}, [(0, 29)]),  # above the lower threshold
        ([P] * 10 + [Q] * 2 + [0.4] + [Q] * 9, {}, [(0, 10)]),  # which does not begin the silence anew
        ([P] * 10 + [Q] * 9, {"threshold": 0.95}, []),
        ([Q] * 5 + [P] * 10 + [Q] * 5, {"padding_ms": 32}, [(4, 16)]),
        ([P] * 10 + [Q] * 5 + [P] * 10, {"padding_ms": 100}, [(0, 12.5), (12.5, 25)]),  # padding never overlaps
    ],
)  # fmt: skip
def test_probabilities_become_stretches(
    probabilities: list[float], options: dict[str, float], wanted: list[tuple[float, float]]
) -> None:
    rule = SpeechRule(**{"padding_ms": 0, **options})
    found = rule.stretches(probabilities, CHUNK, RATE, CHUNK * len(probabilities))
    assert spans(found) == [pytest.approx(span) for span in wanted]
    assert all(math.isfinite(s.score) and s.score > 0.4 for s in found)


def test_other_models_rates_and_options_are_refused() -> None:
    other = webinfer.GraphBuilder()
    other.output(other.node("relu", other.input("x", (1, 8))), "y")
    with pytest.raises(ModelFormatError, match="not a Silero model"):
        run(VoiceActivityDetector.create(other, backend="wasm"))
    with pytest.raises(InputError, match="threshold"):
        detector(threshold=1.5)
    with pytest.raises(InputError, match="padding_ms"):
        detector(padding_ms=-1)
    with detector() as task, pytest.raises(InputError, match="needs 16000;"):
        task.reset(8000)
