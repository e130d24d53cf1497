"""What sentences mean, as vectors: sentences that mean the same have vectors that point the same way."""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul
from typing import Any

from webinfer.authoring.builder import GraphBuilder
from webinfer.dtypes import DType
from webinfer.errors import InputError, ModelFormatError
from webinfer.graph.ir import Graph
from webinfer.host import current
from webinfer.host.interface import Host, Progress
from webinfer.lazy_dataclass import dataclass
from webinfer.session.loading import load
from webinfer.session.plan_cache import WithPostprocessing
from webinfer.session.session import Session
from webinfer.tasks.base import ResultField, ResultSchema, Task, files_beside
from webinfer.tasks.picture_input import closed_on_error
from webinfer.tasks.token_inputs import IDS, KINDS, LENGTHS, MASK, token_inputs
from webinfer.tasks.word_pieces import WordPieces

MEANING = "meaning"
BATCH = 8  # sentences of one length that run together; what is left over runs alone
TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Embedding:
    """A sentence and its embedding, a vector of length 1. `pieces` is the number of tokens that the model read."""

    text: str
    values: tuple[float, ...]
    pieces: int

    def similarity(self, other: Embedding) -> float:
        """The cosine similarity of two embeddings, -1..1."""
        return float(sum(map(mul, self.values, other.values)))


def with_meaning(model: Any) -> WithPostprocessing:
    """The model with one vector a sentence as its only output: the mean over the pieces, of length 1."""

    def extend(graph: Graph) -> None:
        inputs = {v.name: v for v in graph.inputs}
        if not {IDS, MASK} <= inputs.keys() <= {IDS, MASK, KINDS} or graph.outputs[0].type.rank != 3:
            names = ", ".join(inputs)
            raise ModelFormatError(f"{graph.name!r} is not a sentence model: it needs {IDS} and {MASK}, it has {names}")
        tail, hidden = GraphBuilder(graph.name), graph.outputs[0]
        batch, length, width = hidden.type.shape
        weights = tail.node("cast", inputs[MASK], dtype=DType.FLOAT32)
        weights = tail.node("reshape", weights, shape=(batch, 1, length))
        total = tail.node("reshape", tail.node("matmul", weights, hidden), shape=(batch, width))  # a mean but for scale
        norm = tail.node("maximum", tail.node("reduce_l2", total, axes=(1,), keep_dims=True), TINY)
        tail.output(tail.node("div", total, norm), MEANING)
        tail.extend(graph)

    return WithPostprocessing(model, MEANING, extend)


class SentenceEmbedder(Task[Embedding]):
    """Computes embeddings of sentences. Create one with `await SentenceEmbedder.create()`."""

    name = "sentence-embedding"
    takes = "text"
    reads_several = True
    extension = MEANING
    result = ResultSchema(
        "vectors", "sentences", "Sentences", "Sentence",
        (ResultField("text", "text", ""), ResultField("values", "vector", ""), ResultField("pieces", "number", "")),
    )  # fmt: skip

    def __init__(self, session: Session, pieces: WordPieces) -> None:
        super().__init__(session)
        self._pieces = pieces
        self._found: list[Embedding] = []
        batch, length = session.inputs[0].shape
        self._batches = (batch,) if isinstance(batch, int) else (BATCH, 1)
        self._lengths = (length,) if isinstance(length, int) else LENGTHS

    @classmethod
    async def create(
        cls,
        model: Any = "minilm_l6_v2_int8w",
        *,
        vocabulary: bytes | Sequence[str] | None = None,
        backend: str | Sequence[str] = "auto",
        progress: Progress | None = None,
        host: Host | None = None,
    ) -> SentenceEmbedder:
        """Creates an embedder. `model` is a known name, or bytes, a path or a URL together with its `vocabulary`.

        The vocabulary is that of an uncased BERT model: a file with a piece in each line, or the pieces.

        Raises:  InputError without a vocabulary; ModelFormatError if the model is of another kind; what `webinfer.load`
                 raises
        """
        host = host or current()
        if vocabulary is None:
            (vocabulary,) = await files_beside(model, host, "vocabulary=…")
        pieces = WordPieces(vocabulary)
        session = await load(with_meaning(model), backend=backend, progress=progress, host=host)
        with closed_on_error(session):
            if any(len(info.shape) != 2 for info in session.inputs):
                raise ModelFormatError(f"{session.name!r} is not a sentence model: its inputs are {session.inputs}")
            task = cls(session, pieces)
            await task.embed("")
        return task

    async def embed(self, texts: str | Sequence[str]) -> list[Embedding]:
        """The embeddings of one text or several, in order. Only the first 256 tokens of a text are read.

        Raises:  InputError if something is not text
        """
        texts = [texts] if isinstance(texts, str) else texts
        if wrong := [text for text in texts if not isinstance(text, str)]:
            raise InputError(f"{wrong[0]!r} is not text")
        clock = self.session.host.now_ms
        start = clock()
        read = [self._pieces.encode(text, self._lengths[-1]) for text in texts]
        prepared = clock()
        found: dict[int, Embedding] = {}
        for length in self._lengths:
            below = max((n for n in self._lengths if n < length), default=0)
            places = [i for i, numbers in enumerate(read) if below < len(numbers) <= length]
            while places:
                batch = next((n for n in self._batches if n <= len(places)), self._batches[-1])
                values = await self._run([read[i] for i in places[:batch]], batch, length)
                width = len(values) // batch
                for row, i in enumerate(places[:batch]):
                    meaning = tuple(values[row * width : (row + 1) * width])
                    found[i] = Embedding(texts[i], meaning, len(read[i]))
                places = places[batch:]
        inferred = clock()
        self._found = [found[i] for i in range(len(texts))]
        self._took(start, prepared, inferred)
        return self._found

    async def run(self, texts: str | Sequence[str], /) -> list[Embedding]:
        """As `embed`."""
        return await self.embed(texts)

    @property
    def beside(self) -> dict[str, Any]:
        """How alike the first text is to each of the others, -1..1."""
        return {"similarities": [self._found[0].similarity(other) for other in self._found[1:]]}

    async def similarity(self, one: str, other: str) -> float:
        """The cosine similarity of two texts, -1..1."""
        first, second = await self.embed([one, other])
        return first.similarity(second)

    async def _run(self, read: Sequence[Sequence[int]], batch: int, length: int) -> list[float]:
        """The vectors of sentences that are filled up to this length, and their number to that of the batch."""
        inputs = token_inputs(self.session.inputs, read, self._pieces.padding, batch, length)
        return (await self.session.run(inputs))[MEANING].tolist()
