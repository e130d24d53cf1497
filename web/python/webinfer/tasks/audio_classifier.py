"""What is heard in a recording: the most likely classes of each short window, and the stretches that these make."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from webinfer.errors import InputError, ModelFormatError
from webinfer.host import current
from webinfer.host.interface import Host, Progress
from webinfer.session.loading import load
from webinfer.session.options import real_number, whole_number
from webinfer.session.session import Session
from webinfer.tasks.audio import MAX_RATE, AudioSegment, Listener, read_audio
from webinfer.tasks.base import ResultField, ResultSchema, Task
from webinfer.tasks.classifier import Category
from webinfer.tasks.picture_input import closed_on_error

MOST = 100
SHORTEST = 400  # samples of a window: shorter inputs are not sound


class AudioClassifier(Task[AudioSegment]):
    """Classifies the sounds in a recording. Create one with `await AudioClassifier.create()`.

    `windows` has the best classes of each window of the last recording, `window_s` is how long a window is.
    """

    name = "audio-classification"
    takes = "audio"
    result = ResultSchema(
        "stretches", "sounds", "Sounds", "Sound",
        (
            ResultField("label", "label", ""), *(ResultField(end, "number", "s") for end in ("start", "end")),
            ResultField("score", "number", "0..1"),
        ),
    )  # fmt: skip

    def __init__(self, session: Session, labels: Sequence[str], rate: int) -> None:
        super().__init__(session)
        self.min_score, self.most, self.rate = 0.3, 3, rate
        self._labels, self._listener = labels, Listener(session.host)
        (self._input,), (self._output,) = session.inputs, session.outputs
        self._window = self._input.shape[-1]
        self.reset()

    @classmethod
    async def create(
        cls,
        model: Any = "yamnet",
        *,
        labels: Sequence[str] | None = None,
        rate: int = 16000,
        most: int = 3,
        min_score: float = 0.3,
        backend: str | Sequence[str] = "auto",
        progress: Progress | None = None,
        host: Host | None = None,
    ) -> AudioClassifier:
        """Creates a classifier. `model` is a known name, bytes, a path or a URL of a model with a window of
        samples -1..1, at `rate` a second, as its input and a score of each class as its output.

        `labels` are the names of the classes; None: those that the file brings. `most` classes are kept of each window;
        windows whose best scores less than `min_score` belong to no sound that is told.

        Raises:  InputError if an option is out of range; ModelFormatError if the model is of another kind, or has
                 more or fewer classes than labels; what `webinfer.load` raises
        """
        rate, most = whole_number("rate", rate, 1000, MAX_RATE), whole_number("most", most, 1, MOST)
        least = real_number("min_score", min_score, 1)
        session = await load(model, backend=backend, progress=progress, host=host or current())
        with closed_on_error(session):
            check_sound(session.name, session.inputs, session.outputs)
            names = labels_of(session.name, session.outputs[0].shape[-1], labels, session.metadata)
            await session.warmup()
        task = cls(session, names, rate)
        task.most, task.min_score = most, least
        return task

    @property
    def window_s(self) -> float:
        """Seconds of a window."""
        return float(self._window) / self.rate

    @property
    def beside(self) -> dict[str, Any]:
        """The best score of each window, and the seconds that one lasts."""
        return {"probabilities": array("f", [best[0].score for best in self.windows]), "chunk_s": self.window_s}

    async def classify(self, audio: Any, rate: int | None = None) -> list[AudioSegment]:
        """The sounds in a recording, in order. `audio` is anything that `webinfer.tasks.audio.read_audio` accepts.

        Windows follow each other without a gap; the last one is filled up with silence.

        Raises:  InputError if it is not a recording
        """
        clock = self.session.host.now_ms
        start, recording = clock(), read_audio(audio, rate)
        samples = await self._listener.hear(recording, self.rate)
        self.reset()
        prepared, silence = clock(), bytes(4 * (-len(samples) % self._window))
        await self._listen(samples.tobytes() + silence)
        inferred, found = clock(), self._sounds(len(samples) / self.rate)
        self._took(start, prepared, inferred)
        return found

    def reset(self) -> None:
        """Starts a new recording with the next samples of `detect_live`."""
        self.windows: list[list[Category]] = []
        self._left = b""  # heard, but no whole window

    async def detect_live(self, audio: Any, rate: int | None = None) -> list[AudioSegment]:
        """Appends to the recording and returns the sounds since `reset`; whole windows only.

        Raises:  InputError if it is not a recording
        """
        clock = self.session.host.now_ms
        start = clock()
        samples = await self._listener.hear(read_audio(audio, rate), self.rate)
        prepared = clock()
        await self._listen(samples.tobytes())
        inferred, found = clock(), self._sounds(len(self.windows) * self.window_s)
        self._took(start, prepared, inferred)
        return found

    async def _listen(self, heard: bytes) -> None:
        self._left += heard
        step = 4 * self._window
        while len(self._left) >= step:
            window, self._left = self._left[:step], self._left[step:]
            outputs = await self.session.run({self._input.name: window})
            self.windows.append(self._best(outputs[self._output.name].flat().tolist()))

    async def run(self, audio: Any, /) -> list[AudioSegment]:
        """As `classify`."""
        return await self.classify(audio)

    def _best(self, scores: Sequence[float]) -> list[Category]:
        order = sorted(range(len(scores)), key=lambda i: -scores[i])[: self.most]
        return [Category(i, self._labels[i], scores[i]) for i in order]

    def _sounds(self, seconds: float) -> list[AudioSegment]:
        """Windows in a row whose best class is the same, and likely enough, are one sound."""
        found = list[AudioSegment]()
        runs = list[tuple[int, int, str, float]]()  # first window, the one behind the last, label, sum of scores
        for i, (best, *_) in enumerate(self.windows):
            if best.score < self.min_score:
                continue
            if runs and runs[-1][1] == i and runs[-1][2] == best.label:
                first, _, label, total = runs.pop()
                runs.append((first, i + 1, label, total + best.score))
            else:
                runs.append((i, i + 1, best.label, best.score))
        for first, behind, label, total in runs:
            end = min(behind * self.window_s, seconds)
            found.append(AudioSegment(first * self.window_s, end, total / (behind - first), label))
        return found

    def close(self) -> None:
        """Frees the model and the kernels' memory; a second call does nothing."""
        super().close()
        self._listener.close()


def check_sound(name: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
    """Raises ModelFormatError unless these have the shapes and element types of a model that classifies sound."""
    shapes = [one.shape for one in inputs], [one.shape for one in outputs]
    given, found = ([shape for shape in some if all(n == 1 for n in shape[:-1])] for some in shapes)
    fits = len(shapes[0]) == len(shapes[1]) == 1 and given and found and given[0][-1] >= SHORTEST
    if not fits or not inputs[0].dtype.is_float or not outputs[0].dtype.is_float:
        raise ModelFormatError(
            f"{name!r} does not classify sound: inputs {shapes[0]}, outputs {shapes[1]}; needed are a window "
            "of samples and a score of each class, both float32"
        )


def labels_of(name: str, classes: int, given: Sequence[str] | None, metadata: Mapping[str, str]) -> tuple[str, ...]:
    """The names of a model's classes: as given, else those in the file's metadata, a line each.

    Raises:  InputError if the file brings none; ModelFormatError if they are more or fewer than the classes
    """
    if given is not None:
        if len(given) != classes:
            raise ModelFormatError(f"{name!r} has {classes} classes, but {len(given)} labels are known")
        return tuple(given)
    for words in metadata.values():
        if len(lines := words.splitlines()) == classes:
            return tuple(lines)
    raise InputError(f"the file of {name!r} contains no labels for its {classes} classes; give labels=…")
