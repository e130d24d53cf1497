"""What kind of file some bytes are: the model looks at both ends, rules of its package decide whether to believe it."""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from webinfer.authoring.builder import GraphBuilder
from webinfer.dtypes import DType
from webinfer.errors import InputError, ModelFormatError
from webinfer.graph.ir import Graph
from webinfer.host import current
from webinfer.host.interface import Host, Progress
from webinfer.lazy_dataclass import dataclass
from webinfer.session.loading import load
from webinfer.session.options import whole_number
from webinfer.session.plan_cache import WithPostprocessing
from webinfer.session.session import Session
from webinfer.tasks.base import ResultField, ResultSchema, Task, files_beside
from webinfer.tasks.picture_input import closed_on_error
from webinfer.tensor import Tensor

MODES = ("high", "medium", "guess")
MOST = 100
TEXT, UNKNOWN, EMPTY = "txt", "unknown", "empty"


@dataclass(frozen=True, slots=True)
class FileType:
    """A kind of file. `guess` is the model's own label, which is not `label` where its score is too low to be believed.

    `score` is the model's probability; 1, without a guess, where there are too few bytes to ask it.
    """

    label: str
    score: float
    guess: str
    mime_type: str
    group: str
    description: str


@dataclass(frozen=True, slots=True)
class FileRules:
    """What the model's package says about its input and its labels, as in its two JSON files."""

    config: Mapping[str, Any]
    kinds: Mapping[str, Mapping[str, Any]]

    @classmethod
    def read(cls, config: bytes, kinds: bytes) -> FileRules:
        """The rules in the bytes of the two files.

        Raises:  InputError if something is missing in them
        """
        rules = cls(json.loads(config), json.loads(kinds))
        needed = ("beg_size", "end_size", "block_size", "padding_token", "min_file_size_for_dl", "target_labels_space")
        if missing := [name for name in needed if name not in rules.config]:
            raise InputError(f"the configuration of the file classifier has no {', '.join(missing)}")
        return rules

    def window(self, data: memoryview[int]) -> array[int] | None:
        """What the model sees of a file: its first and last bytes without white space; None if they are too few."""
        begin, end, block, fill, least = (
            self.config[name]
            for name in ("beg_size", "end_size", "block_size", "padding_token", "min_file_size_for_dl")
        )
        first = bytes(data[:block]).lstrip()[:begin]
        last = bytes(data[max(len(data) - block, 0) :]).rstrip()[-end:]
        if len(data) < least or len(first) < least:
            return None
        spaces = (array("i", [fill]) * (size - len(part)) for size, part in ((begin, first), (end, last)))
        return array("i", [*first, *next(spaces), *next(spaces), *last])

    def few(self, data: memoryview[int]) -> FileType:
        """The kind of a file of too few bytes."""
        try:
            str(data[: self.config["block_size"]], "utf-8")
        except UnicodeDecodeError:
            return self.type(UNKNOWN, 1.0, "")
        return self.type(TEXT if len(data) else EMPTY, 1.0, "")

    def believed(self, index: int, score: float, mode: str) -> FileType:
        """The kind of a file whose best label this is, in one of the MODES."""
        config = self.config
        guess = config["target_labels_space"][index]
        label = config.get("overwrite_map", {}).get(guess, guess)
        medium = config.get("medium_confidence_threshold", 0.5)
        high = config.get("thresholds", {}).get(guess, medium)
        if score < {"high": high, "medium": medium, "guess": 0.0}[mode]:
            label = TEXT if self.kinds.get(label, {}).get("is_text") else UNKNOWN
        return self.type(label, score, guess)

    def type(self, label: str, score: float, guess: str) -> FileType:
        """The kind of this label with what is known of it."""
        kind = self.kinds.get(label, {})
        return FileType(label, score, guess, *(kind.get(n) or "" for n in ("mime_type", "group", "description")))


def with_best_labels(model: Any, most: int) -> WithPostprocessing:
    """The model with its `most` best scores and the numbers of their labels as its outputs."""

    def extend(graph: Graph) -> None:
        tail, scores = GraphBuilder(graph.name), graph.outputs[0]
        if len(graph.inputs) != 1 or len(graph.outputs) != 1 or graph.inputs[0].type.dtype is not DType.INT32:
            raise ModelFormatError(f"{graph.name!r} is not a file classifier: it needs bytes as int32 and gives scores")
        count = min(most, scores.type.size)
        for value, name in zip(tail.node("top_k", scores, k=count), ("score", "label"), strict=True):
            tail.output(value, name)
        tail.extend(graph)

    return WithPostprocessing(model, f"label{most if most > 1 else ''}", extend)


class FileTypeClassifier(Task[FileType]):
    """Detects the type of a file from its bytes. Create one with `await FileTypeClassifier.create()`."""

    name = "file-type"
    takes = "bytes"
    extension = "label"
    result = ResultSchema(
        "types", "types", "Likely types", "Type",
        (
            ResultField("label", "label", ""), ResultField("score", "number", "0..1"),
            ResultField("description", "text", ""), ResultField("mime_type", "text", ""),
        ),
    )  # fmt: skip

    def __init__(self, session: Session, rules: FileRules, mode: str) -> None:
        super().__init__(session)
        self.rules, self.mode = rules, mode

    @classmethod
    async def create(
        cls,
        model: Any = "magika_standard_v3_3",
        *,
        mode: str = "high",
        most: int = 1,
        rules: FileRules | None = None,
        backend: str | Sequence[str] = "auto",
        progress: Progress | None = None,
        host: Host | None = None,
    ) -> FileTypeClassifier:
        """Creates a classifier. `model` is a known name, or bytes, a path or a URL together with its `rules`.

        `mode` says when the model is believed: from a "high" score, which differs from label to label, from a "medium"
        one, or always ("guess"). Else a file is told to be "txt" or "unknown". `run` tells the `most` likely kinds.

        Raises:  InputError if an option is not allowed; ModelFormatError if the model is of another kind; what
                 `webinfer.load` raises
        """
        if mode not in MODES:
            raise InputError(f"mode is {mode!r}; choose one of {', '.join(MODES)}")
        most = whole_number("most", most, 1, MOST)
        host = host or current()
        rules = rules or FileRules.read(*await files_beside(model, host, "rules=FileRules(…)"))
        session = await load(with_best_labels(model, most), backend=backend, progress=progress, host=host)
        with closed_on_error(session):
            task = cls(session, rules, mode)
            await task.classify(b"warm" * 16)
        return task

    async def classify(self, data: Any) -> FileType:
        """The type of a file with these bytes, any bytes-like object.

        Raises:  InputError if it is none
        """
        return (await self.run(data))[0]

    async def run(self, data: Any, /) -> list[FileType]:
        """As `classify`, and behind it the model's next labels with their scores; one kind where it is not asked.

        Raises:  InputError if `data` has no bytes
        """
        clock = self.session.host.now_ms
        start = clock()
        try:
            view = memoryview(data).cast("B")
        except TypeError:
            raise InputError(f"a {type(data).__name__} has no bytes; give bytes or a buffer") from None
        window = self.rules.window(view)
        prepared = clock()
        if window is None:
            found = self.rules.few(view)
            self._took(start, prepared, prepared)
            return [found]
        outputs = await self.session.run(Tensor(window, (1, len(window)), DType.INT32))
        inferred = clock()
        (label, *others), (score, *scores) = (outputs[name].flat().tolist() for name in ("label", "score"))
        first, names = self.rules.believed(label, score, self.mode), self.rules.config["target_labels_space"]
        kinds = [first, *(self.rules.type(names[i], s, names[i]) for i, s in zip(others, scores, strict=True))]
        self._took(start, prepared, inferred)
        return kinds
