"""Text generation: the task behind chats."""

from __future__ import annotations

import math
from array import array
from collections.abc import AsyncIterator, Generator, Mapping, Sequence
from types import TracebackType
from typing import Any

from webinfer.backends.registry import AUTO
from webinfer.closing import Closing
from webinfer.deprecated import aliased_arguments, renamed, renamed_arguments
from webinfer.dtypes import DType
from webinfer.errors import InputError
from webinfer.host import current, wait_here
from webinfer.host.interface import Host, Progress
from webinfer.language.batch import generate_batch
from webinfer.language.conversation import Conversation
from webinfer.language.model import LanguageModel
from webinfer.language.sampling import Sampling, Stop
from webinfer.session.options import whole_number
from webinfer.tensor import Tensor

MODEL = "smollm2-135m"
OVERFLOWS = ("error", "slide")
MAX_TOKENS = 1 << 20  # upper limit of the option max_tokens
Prompt = str | Sequence[Mapping[str, str]]


class TextGenerator:
    """Generates text: answers to chat messages, or continuations of plain text.

        async with await webinfer.pipeline("text-generation", "smollm2-135m") as generator:
            async for piece in generator.stream([{"role": "user", "content": "What is WebAssembly?"}]):
                print(piece, end="")

    Messages are formatted with the chat template in the model's file; plain text is used unchanged. The KV cache is
    reused for the longest common prefix with the previous prompt. `conversation()` starts another conversation on the
    same weights.
    """

    name = "text-generation"

    def __init__(self, model: LanguageModel, overflow: str = "error") -> None:
        self.model, self._overflow = model, overflow
        self._conversation = self.conversation()

    @classmethod
    @renamed_arguments(together="batch_size")
    async def create(
        cls, model: Any = MODEL, *, backend: str | Sequence[str] = AUTO, context: int | None = None,
        overflow: str = "error", threads: int | None = None, progress: Progress | None = None, host: Host | None = None,
        batch_size: int = 1, cache: str | None = None,
    ) -> TextGenerator:  # fmt: skip
        """Opens a GGUF file: its bytes, a path, a URL or the name of a known model.

        `context` is the maximum number of tokens of a conversation; the default is 2048, or what the model was trained
        with if that is less. A longer conversation raises LimitError, or with overflow="slide" drops its oldest tokens.
        `batch_size` is how many prompts `answers` generates at a time; each takes memory for a KV cache of its own.
        `cache` is the type of the KV cache: "int16" (13 bits, one scale per row of a head; half the memory, faster on
        wasm), "float32", or None for "int16" where the backend has it.

        Raises:  ModelFormatError, UnsupportedOpError, LimitError by the file; InputError; BackendUnavailableError
        """
        if overflow not in OVERFLOWS:
            raise InputError(f"overflow={overflow!r} is unknown; choose {' or '.join(OVERFLOWS)}")
        opened = LanguageModel.open(model, host or current(), backend, context, threads, progress, batch_size, cache)
        return cls(await opened, overflow)

    def conversation(self) -> Conversation:
        """A new conversation on the same weights; pass it to `stream`."""
        return Conversation(self.model, self._overflow == "slide")

    @property
    def backend(self) -> str:
        """The backend in use."""
        return self.model.backend

    @property
    def generated(self) -> int:
        """Number of tokens of the last answer in the generator's own conversation."""
        return self._conversation.generated

    def tokenize(self, prompt: Prompt) -> list[int]:
        """The token ids of a prompt, with the chat template applied to messages.

        Raises:  InputError if the prompt is neither text nor a list of messages
        """
        tokenizer = self.model.tokenizer
        chat = not isinstance(prompt, str)
        text = self.model.template.text(prompt) if not isinstance(prompt, str) else prompt
        begin = [tokenizer.begin] if tokenizer.adds_begin and tokenizer.begin is not None else []
        found = tokenizer.encode(text, named=chat)
        return found if found[:1] == begin else [*begin, *found]

    words = renamed("words", "tokenize")

    @renamed_arguments(max_words="max_tokens")
    @aliased_arguments(max_new_tokens="max_tokens")
    async def stream(
        self, prompt: Prompt, *, max_tokens: int = 512, temperature: float = 0.0, top_k: int = 0, top_p: float = 1.0,
        seed: int | None = None, stop: str | Sequence[str] = (), conversation: Conversation | None = None,
        progress: Progress | None = None,
    ) -> AsyncIterator[str]:  # fmt: skip
        """Yields the answer to messages, or the continuation of a text, in pieces of text.

        Temperature 0 takes the most likely token; otherwise tokens are sampled with `top_k`, `top_p` and `seed`.
        Generation ends when the model ends it, after `max_tokens` tokens (also called `max_new_tokens`), or before the
        first occurrence of a text in `stop`. Leave the loop to stop it early.

        Raises:  InputError; LimitError if prompt and answer are longer than the context
        """
        sampling, stops = Sampling(temperature, top_k, top_p, seed), Stop(stop)
        whole_number("max_tokens", max_tokens, 1, MAX_TOKENS)
        chat, decoder = conversation or self._conversation, self.model.tokenizer.decoder()
        async for token in chat.write(self.tokenize(prompt), sampling, max_tokens, progress):
            piece = stops.take(decoder.decode(self.model.tokenizer.bytes_of(token)))
            if piece:
                yield piece
            if stops.reached:
                return
        if piece := stops.take(decoder.decode(b"", True), last=True):
            yield piece

    async def run(self, prompt: Prompt, **options: Any) -> str:
        """The whole answer. Options: as for `stream`."""
        return "".join([piece async for piece in self.stream(prompt, **options)])

    async def __call__(self, prompt: Prompt, **options: Any) -> str:
        """As `run`: what is awaited of a pipeline is called as other tasks are."""
        return await self.run(prompt, **options)

    @renamed_arguments(max_words="max_tokens")
    @aliased_arguments(max_new_tokens="max_tokens")
    async def answers(
        self, prompts: Sequence[Prompt], *, max_tokens: int = 512, temperature: float = 0.0, top_k: int = 0,
        top_p: float = 1.0, seed: int | None = None, stop: str | Sequence[str] = (),
    ) -> list[str]:  # fmt: skip
        """The answers to several prompts, each as `run` gives it in a new conversation. Options: as for `stream`.

        Decoding steps are batched: `batch_size` prompts at a time share each pass over the weights.

        Raises:  InputError; LimitError if a prompt and its answer are longer than the context
        """
        whole_number("max_tokens", max_tokens, 1, MAX_TOKENS)
        tokens, found = [self.tokenize(prompt) for prompt in prompts], list[str]()
        for at in range(0, len(tokens), self.model.batch_size):
            some = tokens[at : at + self.model.batch_size]
            samplings = [Sampling(temperature, top_k, top_p, seed) for _ in some]
            stops = [Stop(stop) for _ in some]
            decoders = [self.model.tokenizer.decoder() for _ in some]
            texts = [""] * len(some)
            async for i, token, sequence in generate_batch(self.model, some, samplings, max_tokens):
                texts[i] += stops[i].take(decoders[i].decode(self.model.tokenizer.bytes_of(token)))
                sequence.finished = stops[i].reached
            for i, (end, decoder) in enumerate(zip(stops, decoders, strict=True)):
                texts[i] += "" if end.reached else end.take(decoder.decode(b"", True), last=True)
            found += texts
        return found

    async def logits(self, prompt: Prompt) -> Tensor:
        """The logits of the token after a prompt.

        Shapes:  float32 [1, vocabulary]
        """
        return await self.conversation().logits(self.tokenize(prompt))

    async def hidden(self, prompt: Prompt) -> Tensor:
        """The last layer's normalized hidden states of a prompt.

        Shapes:  float32 [tokens of the prompt, width]
        """
        width, rows = self.model.architecture.width, bytearray()

        def add(hidden: Tensor, count: int) -> None:
            rows.extend(hidden.tobytes()[: 4 * count * width])

        tokens = self.tokenize(prompt)
        await self.conversation().read(tokens, wanted=(), each=add)
        return Tensor(memoryview(rows), (len(tokens), width), DType.FLOAT32)

    async def embed(self, text: str) -> tuple[float, ...]:
        """The embedding of a text: the mean over its tokens of the last hidden states, scaled to length 1."""
        width, total = self.model.architecture.width, array("d")

        def add(hidden: Tensor, rows: int) -> None:
            nonlocal total
            values = hidden.tolist()
            columns = [math.fsum(values[i : rows * width : width]) for i in range(width)]
            total = array("d", map(sum, zip(total, columns, strict=True))) if total else array("d", columns)

        await self.conversation().read(self.tokenize(text), wanted=(), each=add)
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


class PendingGenerator(Closing):
    """A generator that is opened when it is needed.

    In a script it is called: `answer = pipeline("What is WebAssembly?")`, and stays open for the next call. In async
    code it is awaited, or `stream` is called, which opens a generator and closes it at the end.
    """

    def __init__(self, model: Any, options: Mapping[str, Any]) -> None:
        self._model, self._options = model, options
        self._opened: TextGenerator | None = None

    async def _open(self) -> TextGenerator:
        return await TextGenerator.create(MODEL if self._model is None else self._model, **self._options)

    def __call__(self, prompt: Prompt, **options: Any) -> str:
        """The whole answer to messages, or the continuation of a text. Options: as for `TextGenerator.stream`.

        Raises:  what `TextGenerator.create` and `stream` raise; InputError where nothing can wait
        """
        return wait_here(self._answered(prompt, options))

    async def _answered(self, prompt: Prompt, options: Mapping[str, Any]) -> str:
        if self._opened is None:
            self._opened = await self._open()
        return await self._opened.run(prompt, **options)

    def close(self) -> None:
        """Frees the generator of calls, if it was opened."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def __await__(self) -> Generator[Any, None, TextGenerator]:
        return self._open().__await__()

    async def stream(self, prompt: Prompt, **options: Any) -> AsyncIterator[str]:
        """As `TextGenerator.stream`."""
        async with await self._open() as generator:
            async for piece in generator.stream(prompt, **options):
                yield piece
