"""What a text says, of a few classes: an encoder with a classifier behind it, and BERT's word pieces before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from webinfer.authoring.builder import GraphBuilder
from webinfer.errors import InputError, ModelFormatError
from webinfer.graph.ir import Graph
from webinfer.host import current
from webinfer.host.interface import Host, Progress
from webinfer.session.loading import load
from webinfer.session.options import whole_number
from webinfer.session.plan_cache import WithPostprocessing
from webinfer.session.session import Session
from webinfer.tasks.base import ResultField, ResultSchema, Task
from webinfer.tasks.classifier import Category
from webinfer.tasks.picture_input import closed_on_error
from webinfer.tasks.token_inputs import IDS, KINDS, LENGTHS, MASK, token_inputs
from webinfer.tasks.word_pieces import WordPieces

SCORES = "scores"
MOST = 1000


def with_scores(model: Any, several: bool) -> WithPostprocessing:
    """The model with scores of 0..1 as its only output: of classes that exclude each other, or with `several` not."""

    def extend(graph: Graph) -> None:
        names, types = {v.name for v in graph.inputs}, [v.type for v in graph.outputs]
        fits = {IDS, MASK} <= names <= {IDS, MASK, KINDS} and len(types) > 0 and types[0].dtype.is_float
        if not fits or types[0].rank != 2:
            raise ModelFormatError(
                f"{graph.name!r} does not classify text: inputs {sorted(names)}, outputs {[t.shape for t in types]}; "
                f"needed are {IDS}, {MASK} and perhaps {KINDS}, and a number for each class [batch, classes]"
            )
        tail, logits = GraphBuilder(graph.name), graph.outputs[0]
        alone = several or logits.type.shape[1] == 1
        tail.output(tail.node("sigmoid", logits) if alone else tail.node("softmax", logits, axis=1), SCORES)
        tail.extend(graph)

    return WithPostprocessing(model, f"{SCORES}{'each' if several else ''}", extend)


class TextClassifier(Task[Category]):
    """Classifies texts. Create one with `await TextClassifier.create(model, …)`."""

    name = "text-classification"
    takes = "text"
    extension = SCORES
    result = ResultSchema(
        "categories", "categories", "Categories", "Category",
        (ResultField("label", "label", ""), ResultField("score", "number", "0..1")),
    )  # fmt: skip

    def __init__(self, session: Session, pieces: WordPieces, labels: Sequence[str]) -> None:
        super().__init__(session)
        self.most, self._pieces, self._labels = 5, pieces, labels
        batch, length = session.inputs[0].shape
        self._batch = batch if isinstance(batch, int) else 1
        self._lengths = (length,) if isinstance(length, int) else LENGTHS

    @classmethod
    async def create(
        cls,
        model: Any,
        *,
        vocabulary: bytes | Sequence[str] | None = None,
        labels: Sequence[str] = (),
        most: int = 5,
        several: bool = False,
        backend: str | Sequence[str] = "auto",
        progress: Progress | None = None,
        host: Host | None = None,
    ) -> TextClassifier:
        """Creates a classifier. `model` is bytes, a path or a URL of a BERT with a classifier behind it, as
        Hugging Face's exporters write it: `input_ids` and `attention_mask` in, logits out.

        The vocabulary is that of an uncased BERT model: a file with a piece in each line, or the pieces. `labels` are
        the classes in the order of the logits. `most` classes are returned. Classes exclude each other, and their
        scores sum to 1; with `several` a text may have several of them.

        Raises:  InputError if an option is out of range, or there is no vocabulary, or more or fewer labels
                 than classes; ModelFormatError if the model is of another kind; what `webinfer.load` raises
        """
        most = whole_number("most", most, 1, MOST)
        if vocabulary is None:
            raise InputError("no vocabulary is given; give vocabulary=…, that of the model's tokenizer")
        pieces = WordPieces(vocabulary)
        source = with_scores(model, bool(several))
        session = await load(source, backend=backend, progress=progress, host=host or current())
        with closed_on_error(session):
            if any(len(info.shape) != 2 for info in session.inputs):
                raise ModelFormatError(f"{session.name!r} does not classify text: its inputs are {session.inputs}")
            task = cls(session, pieces, labels)
            task.most = MOST
            classes = len(await task.classify(""))
            if labels and len(labels) != classes:
                raise InputError(f"{session.name!r} has {classes} classes; {len(labels)} labels are given")
            task.most = most
        return task

    async def classify(self, text: str) -> list[Category]:
        """The classes of a text, best first. Only the first 256 tokens are read.

        Raises:  InputError if it is not text
        """
        if not isinstance(text, str):
            raise InputError(f"{text!r} is not text")
        clock = self.session.host.now_ms
        start = clock()
        numbers = self._pieces.encode(text, self._lengths[-1])
        length = next(n for n in self._lengths if len(numbers) <= n)
        inputs = token_inputs(self.session.inputs, [numbers], self._pieces.padding, self._batch, length)
        prepared = clock()
        scores = (await self.session.run(inputs))[SCORES].tolist()
        inferred, scores = clock(), scores[: len(scores) // self._batch]
        order = sorted(range(len(scores)), key=lambda i: -scores[i])[: self.most]
        found = [Category(i, self._labels[i] if i < len(self._labels) else "", scores[i]) for i in order]
        self._took(start, prepared, inferred)
        return found

    async def run(self, text: str, /) -> list[Category]:
        """As `classify`."""
        return await self.classify(text)
