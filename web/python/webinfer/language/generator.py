"""Text generation: the task that chats are made of."""

from __future__ import annotations

import math
from array import array
from collections.abc import AsyncIterator, Generator, Mapping, Sequence
from types import TracebackType
from typing import Any

from webinfer.backends.registry import AUTO
from webinfer.dtypes import DType
from webinfer.errors import InputError
from webinfer.host import current
from webinfer.host.interface import Host, Progress
from webinfer.language.conversation import Conversation
from webinfer.language.model import LanguageModel
from webinfer.language.settings import Sampling, Stop
from webinfer.language.together import written
from webinfer.session.options import whole_number
from webinfer.tensor import Tensor

MODEL = "smollm2-135m"
OVERFLOWS = ("error", "slide")
MOST = 1 << 20  # words of an answer
Prompt = str | Sequence[Mapping[str, str]]


class TextGenerator:
    """Answers to chats, and texts that go on, piece by piece.

        async with await webinfer.pipeline("text-generation", "smollm2-135m") as generator:
            async for piece in generator.stream([{"role": "user", "content": "What is WebAssembly?"}]):
                print(piece, end="")

    Messages become a text by the template in the model's file; a text in their place is taken as it is. What a prompt
    begins like the last one is not read again. `conversation()` makes more of them on the same weights.
    """

    name = "text-generation"

    def __init__(self, model: LanguageModel, overflow: str = "error") -> None:
        self.model, self._overflow = model, overflow
        self._conversation = self.conversation()

    @classmethod
    async def create(
        cls, model: Any = MODEL, *, backend: str | Sequence[str] = AUTO, context: int | None = None,
        overflow: str = "error", threads: int | None = None, progress: Progress | None = None, host: Host | None = None,
        together: int = 1, cache: str | None = None,
    ) -> TextGenerator:  # fmt: skip
        """A generator with a GGUF file: its bytes, a path, a URL or the name of a known model.

        `context` is how many words a conversation may have: 2048 unless the model knows fewer. A longer one is an
        error, or with overflow="slide" goes on without its oldest words. `together` is how many prompts `answers`
        writes at a time; each takes memory for a cache of its own. `cache` is what keys and values are kept as:
        "int16" (13 bits, a scale for each row of a head; half the memory, faster on wasm) or "float32"; None: "int16"
        where the backend has it.

        Raises:  ModelFormatError, UnsupportedOpError, LimitError by the file; InputError; BackendUnavailableError
        """
        if overflow not in OVERFLOWS:
            raise InputError(f"overflow={overflow!r} is unknown; choose {' or '.join(OVERFLOWS)}")
        opening = LanguageModel.open(model, host or current(), backend, context, threads, progress, together, cache)
        return cls(await opening, overflow)

    def conversation(self) -> Conversation:
        """A conversation of its own on the same weights; give it to `stream`."""
        return Conversation(self.model, self._overflow == "slide")

    @property
    def backend(self) -> str:
        """The backend in use."""
        return self.model.backend

    def words(self, prompt: Prompt) -> list[int]:
        """The numbers of a prompt's words, as the model reads them.

        Raises:  InputError if these are no messages and no text
        """
        tokenizer = self.model.tokenizer
        chat = not isinstance(prompt, str)
        text = self.model.template.text(prompt) if not isinstance(prompt, str) else prompt
        begin = [tokenizer.begin] if tokenizer.adds_begin and tokenizer.begin is not None else []
        found = tokenizer.encode(text, named=chat)
        return found if found[:1] == begin else [*begin, *found]

    async def stream(
        self, prompt: Prompt, *, max_words: int = 512, temperature: float = 0.0, top_k: int = 0, top_p: float = 1.0,
        seed: int | None = None, stop: str | Sequence[str] = (), conversation: Conversation | None = None,
        progress: Progress | None = None,
    ) -> AsyncIterator[str]:  # fmt: skip
        """The answer, piece by piece: to messages, or what a text goes on with.

        With temperature 0 the likeliest word is taken; else `top_k`, `top_p` and `seed` say how words are drawn. It
        ends where the model ends it, at `max_words`, or before the first of the texts in `stop`. Leave the loop to
        stop it.

        Raises:  InputError; LimitError if prompt and answer are longer than the context
        """
        sampling, stops = Sampling(temperature, top_k, top_p, seed), Stop(stop)
        whole_number("max_words", max_words, 1, MOST)
        chat, decoder = conversation or self._conversation, self.model.tokenizer.decoder()
        async for word in chat.write(self.words(prompt), sampling, max_words, progress):
            piece = stops.take(decoder.decode(self.model.tokenizer.bytes_of(word)))
            if piece:
                yield piece
            if stops.reached:
                return
        if piece := stops.take(decoder.decode(b"", True), last=True):
            yield piece

    async def run(self, prompt: Prompt, **options: Any) -> str:
        """The whole answer; options as `stream` has them."""
        return "".join([piece async for piece in self.stream(prompt, **options)])

    async def answers(
        self, prompts: Sequence[Prompt], *, max_words: int = 512, temperature: float = 0.0, top_k: int = 0,
        top_p: float = 1.0, seed: int | None = None, stop: str | Sequence[str] = (),
    ) -> list[str]:  # fmt: skip
        """The answers to several prompts, each as `run` gives it in a new conversation; options as `stream` has them.

        As many at a time as the model was opened with (`together`) are written word by word together, so that the
        weights are read once for all of them.

        Raises:  InputError; LimitError if a prompt and its answer are longer than the context
        """
        whole_number("max_words", max_words, 1, MOST)
        words, found = [self.words(prompt) for prompt in prompts], list[str]()
        for at in range(0, len(words), self.model.together):
            some = words[at : at + self.model.together]
            samplings = [Sampling(temperature, top_k, top_p, seed) for _ in some]
            stops = [Stop(stop) for _ in some]
            decoders = [self.model.tokenizer.decoder() for _ in some]
            texts = [""] * len(some)
            async for i, word, writing in written(self.model, some, samplings, max_words):
                texts[i] += stops[i].take(decoders[i].decode(self.model.tokenizer.bytes_of(word)))
                writing.is_over = stops[i].reached
            for i, (end, decoder) in enumerate(zip(stops, decoders, strict=True)):
                texts[i] += "" if end.reached else end.take(decoder.decode(b"", True), last=True)
            found += texts
        return found

    async def logits(self, prompt: Prompt) -> Tensor:
        """The logits of the word after a prompt, float32 [1, words]."""
        return await self.conversation().logits(self.words(prompt))

    async def hidden(self, prompt: Prompt) -> Tensor:
        """The last block's normed results for each word of a prompt, float32 [words of the prompt, width]."""
        width, rows = self.model.architecture.width, bytearray()

        def add(hidden: Tensor, count: int) -> None:
            rows.extend(hidden.tobytes()[: 4 * count * width])

        words = self.words(prompt)
        await self.conversation().read(words, wanted=(), each=add)
        return Tensor(memoryview(rows), (len(words), width), DType.FLOAT32)

    async def embed(self, text: str) -> tuple[float, ...]:
        """What a text means, as a vector of length 1: the mean over its words of the last block's results."""
        width, total = self.model.architecture.width, array("d")

        def add(hidden: Tensor, rows: int) -> None:
            nonlocal total
            values = hidden.tolist()
            columns = [math.fsum(values[i : rows * width : width]) for i in range(width)]
            total = array("d", map(sum, zip(total, columns, strict=True))) if total else array("d", columns)

        await self.conversation().read(self.words(text), wanted=(), each=add)
        length = math.sqrt(math.fsum(x * x for x in total)) or 1.0
        return tuple(x / length for x in total)

    def close(self) -> None:
        """Frees the model; a second call does nothing."""
        self.model.close()

    async def __aenter__(self) -> TextGenerator:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Opening:
    """A generator that is not open yet: await it, or stream from it at once, which opens and closes it."""

    def __init__(self, model: Any, options: Mapping[str, Any]) -> None:
        self._model, self._options = model, options

    async def _open(self) -> TextGenerator:
        return await TextGenerator.create(MODEL if self._model is None else self._model, **self._options)

    def __await__(self) -> Generator[Any, None, TextGenerator]:
        return self._open().__await__()

    async def stream(self, prompt: Prompt, **options: Any) -> AsyncIterator[str]:
        """As `TextGenerator.stream`."""
        async with await self._open() as generator:
            async for piece in generator.stream(prompt, **options):
                yield piece
