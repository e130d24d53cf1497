"""Voice activity detection: the probability of speech in each short chunk, and the resulting segments."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from webinfer.dtypes import DType
from webinfer.errors import InputError, ModelFormatError
from webinfer.host import current
from webinfer.host.interface import Host, Progress
from webinfer.lazy_dataclass import dataclass
from webinfer.session.loading import load
from webinfer.session.options import real_number
from webinfer.session.session import Session
from webinfer.tasks.audio import AudioSegment, Listener, read_audio
from webinfer.tasks.base import ResultField, ResultSchema, Task
from webinfer.tasks.picture_input import closed_on_error
from webinfer.tensor import Tensor

CHUNKS = {16000: (512, 64), 8000: (256, 32)}  # rate -> samples of a chunk, and of the one before that the model hears
HYSTERESIS = 0.15  # speech ends this far below the threshold
SAMPLES, RATE = "input", "sr"
STATES = ({"state": (2, 1, 128)}, {"h": (1, 1, 128), "c": (1, 1, 128)})  # of a model of one chunk, of one of several
BLOCK = 32  # chunks that the second runs on at once
LONGEST_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class SpeechRule:
    """How probabilities become stretches: what is told as speech, what is too short, how much is put around it."""

    threshold: float = 0.5
    min_speech_ms: float = 250
    min_silence_ms: float = 100
    padding_ms: float = 30

    def stretches(self, probabilities: Sequence[float], chunk: int, rate: int, total: int) -> list[AudioSegment]:
        """The stretches of speech in chunks of so many samples, of `total` samples in all."""
        per_ms = rate / 1000
        raw = self._raw(probabilities, chunk, total, self.min_silence_ms * per_ms)
        found = [(start, end) for start, end in raw if end - start > self.min_speech_ms * per_ms]
        pad, speeches = self.padding_ms * per_ms, []
        for i, (start, end) in enumerate(found):
            before = (start - found[i - 1][1]) / 2 if i else start
            after = (found[i + 1][0] - end) / 2 if i + 1 < len(found) else total - end
            scores = probabilities[start // chunk : -(-end // chunk)]
            first, last = start - min(pad, before), end + min(pad, after)
            speeches.append(AudioSegment(first / rate, last / rate, sum(scores) / len(scores)))
        return speeches

    def _raw(
        self, probabilities: Sequence[float], chunk: int, total: int, min_silence: float
    ) -> Iterator[tuple[int, int]]:
        """Samples from and to; silences shorter than `min_silence` do not end a stretch."""
        start = quiet = -1
        low = max(self.threshold - HYSTERESIS, 0.01)
        for at, probability in zip(count(0, chunk), probabilities, strict=False):
            if probability >= self.threshold:
                start, quiet = at if start < 0 else start, -1
            elif probability < low and start >= 0:
                quiet = at if quiet < 0 else quiet
                if at - quiet >= min_silence:
                    yield start, quiet
                    start = quiet = -1
        if start >= 0:
            yield start, total


class VoiceActivityDetector(Task[AudioSegment]):
    """Finds the segments of a recording that contain speech. Create one with `await VoiceActivityDetector.create()`.

    `model="silero_vad_sequence"` runs on 32 chunks of a recording at once, at 16 kHz only.
    `probabilities` has those of the chunks since `reset`; `chunk_s` is the length of a chunk in seconds.
    """

    name = "voice-activity"
    takes = "audio"
    result = ResultSchema(
        "stretches", "speeches", "Speech segments", "Speech",
        (*(ResultField(end, "number", "s") for end in ("start", "end")), ResultField("score", "number", "0..1")),
    )  # fmt: skip

    def __init__(self, session: Session, rule: SpeechRule) -> None:
        super().__init__(session)
        self.rule, self._listener = rule, Listener(session.host)
        names = {info.name for info in session.inputs}
        self._states, self._rated = next(state for state in STATES if names >= {*state}), RATE in names
        self.reset()

    @classmethod
    async def create(
        cls,
        model: Any = "silero_vad_v6",
        *,
        threshold: float = 0.5,
        min_speech_ms: float = 250,
        min_silence_ms: float = 100,
        padding_ms: float = 30,
        backend: str | Sequence[str] = "auto",
        progress: Progress | None = None,
        host: Host | None = None,
    ) -> VoiceActivityDetector:
        """Creates a detector. `model` is a known name, bytes, a path or a URL of a Silero model.

        A chunk of a probability from `threshold` up is speech; it lasts until chunks have been 0.15 below that for
        `min_silence_ms`. Speech shorter than `min_speech_ms` is not told. `padding_ms` are put before and after it.

        Raises:  InputError if an option is out of range; ModelFormatError if the model is of another kind; what
                 `webinfer.load` raises
        """
        options = {"min_speech_ms": min_speech_ms, "min_silence_ms": min_silence_ms, "padding_ms": padding_ms}
        checked = {name: real_number(name, value, LONGEST_MS) for name, value in options.items()}
        rule = SpeechRule(real_number("threshold", threshold, 1), **checked)
        session = await load(model, backend=backend, progress=progress, host=host or current())
        with closed_on_error(session):
            names = {info.name for info in session.inputs} - {RATE}
            if all(names != {SAMPLES, *state} for state in STATES) or len(session.outputs) != len(names):
                raise ModelFormatError(f"{session.name!r} is not a Silero model: its inputs are {', '.join(names)}")
            detector = cls(session, rule)
            await detector.listen(memoryview(bytes(4 * detector._chunk)).cast("f"))
            detector.reset()
        return detector

    @property
    def chunk_s(self) -> float:
        """Seconds of a chunk."""
        return self._chunk / self.rate

    def reset(self, rate: int = 16000) -> None:
        """Starts a new recording with the next samples, at 16,000 or 8,000 per second.

        Raises:  InputError for a rate that the model does not know
        """
        if rate not in CHUNKS or not (self._rated or rate == 16000):
            known = " or ".join(map(str, CHUNKS)) if self._rated else "16000"
            raise InputError(f"rate is {rate!r}, needs {known}; `detect` takes others too")
        self.rate, (self._chunk, context) = rate, CHUNKS[rate]
        self.probabilities: list[float] = []
        self._left = bytes(4 * context)  # heard, not yet run: the end of the last chunk and what came after it
        self._state = {n: Tensor(bytes(4 * math.prod(s)), s, DType.FLOAT32) for n, s in self._states.items()}

    async def listen(self, samples: Any) -> list[float]:
        """For live streams: the probabilities of speech in the chunks that these samples complete.

        `samples` are float32 of the rate given to `reset`. `speeches` tells the stretches so far.
        """
        self._left += memoryview(samples).cast("B")
        view, start, found = memoryview(self._left), 0, list[float]()
        size, step = CHUNKS[self.rate][1] + self._chunk, 4 * self._chunk
        rate = {RATE: self.rate.to_bytes(8, "little")} if self._rated else {}
        state, most = self._state, 1 if len(self._states) == 1 else BLOCK
        while (ready := (len(view) - 4 * size) // step - start // step + 1) > 0:
            count = most if ready >= most else 1
            heard = b"".join(view[at : at + 4 * size] for at in range(start, start + count * step, step))
            window = Tensor(heard, (count, size), DType.FLOAT32)
            scores, *states = (await self.session.run({SAMPLES: window, **state, **rate})).values()
            state = dict(zip(state, states, strict=True))
            found += scores.tolist()
            start += count * step
        self._left, self._state = bytes(view[start:]), state
        self.probabilities += found
        return found

    def speeches(self) -> list[AudioSegment]:
        """The segments with speech since `reset`, in order."""
        return self._told(len(self.probabilities) * self._chunk)

    @property
    def beside(self) -> dict[str, Any]:
        """The probability of each chunk, and the seconds that one lasts."""
        return {"probabilities": array("f", self.probabilities), "chunk_s": self.chunk_s}

    async def detect_live(self, audio: Any, rate: int | None = None) -> list[AudioSegment]:
        """Appends to the recording and returns the segments with speech since `reset`.

        Raises:  InputError unless it has one channel and the rate given to `reset`
        """
        clock = self.session.host.now_ms
        start, recording = clock(), read_audio(audio, rate)
        if (recording.rate, recording.channels, recording.samples.format) != (self.rate, 1, "f"):
            found = f"{recording.channels} channels, {recording.rate} samples a second"
            raise InputError(f"a live recording needs one channel of float32, {self.rate} a second; it has {found}")
        await self.listen(recording.samples)
        inferred, found_now = clock(), self.speeches()
        self._took(start, start, inferred)
        return found_now

    def _told(self, total: int) -> list[AudioSegment]:
        return self.rule.stretches(self.probabilities, self._chunk, self.rate, total)

    async def detect(self, audio: Any, rate: int | None = None) -> list[AudioSegment]:
        """The segments with speech in a recording. `audio` is anything that `webinfer.tasks.audio.read_audio` accepts.

        Raises:  InputError if it is not a recording
        """
        clock = self.session.host.now_ms
        start, recording = clock(), read_audio(audio, rate)
        self.reset(8000 if recording.rate == 8000 and self._rated else 16000)
        samples = await self._listener.hear(recording, self.rate)
        prepared, missing = clock(), -len(samples) % self._chunk
        await self.listen(samples.tobytes() + bytes(4 * missing))
        inferred, found = clock(), self._told(len(samples))
        self._took(start, prepared, inferred)
        return found

    async def run(self, audio: Any, /) -> list[AudioSegment]:
        """As `detect`."""
        return await self.detect(audio)

    def close(self) -> None:
        """Frees the model and the kernels' memory; a second call does nothing."""
        super().close()
        self._listener.close()
