"""A conversation: the tokens that a model has read so far, with their keys and values."""

from __future__ import annotations

import struct
from array import array
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any
from zlib import crc32

from webinfer.backends.base import GpuPartExecutor
from webinfer.errors import InputError, LimitError, ModelFormatError
from webinfer.host.interface import Progress, ProgressEvent
from webinfer.language.model import GREEDY, LanguageModel, PendingStep
from webinfer.language.sampling import Sampling
from webinfer.tensor import Tensor

MAGIC = b"WICONV1\0"
SLIDE_DIVISOR = 2  # a full conversation that slides keeps 1 / SLIDE_DIVISOR of the context
SAMPLED, LOGITS, HIDDEN = 0, 1, 2
MAX_STEPS_AHEAD = 2  # steps in flight: one whose result is awaited, one that keeps the device busy meanwhile


class Conversation:
    """The conversations of a model share its KV cache; one that is not in use is swapped out to the host's memory.

    With `slides`, a conversation that reaches the context's limit drops its oldest tokens except the first `keeps`;
    without it, that is a LimitError.
    """

    def __init__(self, model: LanguageModel, slides: bool = False, keeps: int = 0) -> None:
        self.model, self.slides, self.keeps = model, slides, keeps
        self.tokens: list[int] = []  # whose keys and values are known
        self.generated = 0  # tokens that the last call of `write` has yielded
        self._saved_kv: list[bytes] | None = None
        self._saved_count = 0  # positions in `_saved_kv`; `truncate` may have dropped some of them since

    def reset(self) -> None:
        """Drops all tokens."""
        self.tokens, self._saved_kv = [], None

    def truncate(self, count: int) -> None:
        """Keeps the first `count` tokens and drops the others."""
        self.tokens = self.tokens[:count]

    async def fork(self) -> Conversation:
        """A copy that continues independently from the same tokens."""
        async with self.model.lock:
            await self._swap_out()
            other = Conversation(self.model, self.slides, self.keeps)
            other.tokens, other._saved_kv, other._saved_count = list(self.tokens), self._saved_kv, self._saved_count
        return other

    async def save(self) -> bytes:
        """The conversation as bytes, for `restore` with the same model, context and type of KV cache."""
        async with self.model.lock:
            rows = b"".join(await self.rows())
            return (
                MAGIC + struct.pack("<2I", self._shape(), len(self.tokens)) + array("i", self.tokens).tobytes() + rows
            )

    async def restore(self, data: bytes) -> None:
        """Continues from bytes that `save` returned.

        Raises:  ModelFormatError if the bytes are damaged or belong to another model
        """
        head = len(MAGIC) + 8
        shape, count = struct.unpack("<2I", data[len(MAGIC) : head]) if len(data) >= head else (0, 0)
        sizes = (
            [sum(n for _, n in spans) for _, spans in self.model._rows(count)] if count <= self.model.context else []
        )
        fits = data[: len(MAGIC)] == MAGIC and shape == self._shape() and sizes
        if not fits or len(data) != head + 4 * count + sum(sizes):
            raise ModelFormatError("these bytes are not a conversation with this model, or they are damaged")
        tokens = array("i", data[head : head + 4 * count]).tolist()
        if tokens and not 0 <= min(tokens) <= max(tokens) < self.model.architecture.vocabulary:
            raise ModelFormatError("this conversation has tokens outside the model's vocabulary")
        at, aside = head + 4 * count, []
        for size in sizes:
            aside.append(data[at : at + size])
            at += size
        async with self.model.lock:
            self.tokens, self._saved_kv, self._saved_count = tokens, aside, count
            if self.model.cache_owner is self:
                self.model.cache_owner = None

    def _shape(self) -> int:
        a = self.model.architecture
        numbers = (
            a.vocabulary,
            a.layers,
            a.width,
            a.groups,
            a.head_width,
            self.model.context,
            self.model.cache.itemsize,
        )
        return crc32(struct.pack("<7I", *numbers))

    async def rows(self) -> list[bytes]:
        """Its keys and values, in the form of `LanguageModel.restore_kv`. Needs: the lock."""
        if self.model.cache_owner is not self and self._saved_count != len(self.tokens):
            await self.swap_in()
        await self._swap_out()
        return self._saved_kv or []

    async def _swap_out(self) -> None:
        if self.model.cache_owner is self:
            count = len(self.tokens)  # `truncate` may be called meanwhile
            self._saved_kv, self._saved_count = await self.model.save_kv(count), count

    async def swap_in(self) -> None:
        """Gives this conversation the KV cache; the one that had it is swapped out. Needs: the lock."""
        owner = self.model.cache_owner
        if owner is self:
            return
        if owner is not None:
            await owner._swap_out()
        if self._saved_kv is not None and self.tokens:
            await self.model.restore_kv(self._saved_kv, self._saved_count)
        self._saved_kv, self.model.cache_owner = None, self

    # ----- reading and writing

    async def read(
        self, tokens: Sequence[int], options: bytes = GREEDY, wanted: Sequence[int] = (SAMPLED,),
        progress: Progress | None = None, each: Callable[[Any, int], None] | None = None,
    ) -> list[Any]:  # fmt: skip
        """Runs the model on tokens (prefill), in chunks; returns the `wanted` outputs of the last chunk.

        `each` is called with the hidden states of every chunk and the number of its tokens.

        Raises:  LimitError if the tokens exceed the context; InputError if there are none
        """
        if not tokens:
            raise InputError("the prompt is empty: it has no tokens")
        if not 0 <= min(tokens) <= max(tokens) < self.model.architecture.vocabulary:
            raise InputError(f"token ids must be from 0 to {self.model.architecture.vocabulary - 1}")
        found: list[Any] = []
        under_way = deque[tuple[PendingStep, int, int]]()  # with the tokens that it reads, from and to
        for at in range(0, len(tokens), self.model.chunk):
            chunk = tokens[at : at + self.model.chunk]
            read = at + len(chunk)
            last = read == len(tokens)
            async with self.model.lock:
                await self.swap_in()
                await self._make_room(len(chunk), len(tokens) - at)
                asked = [*(wanted if last else ()), *([HIDDEN] if each else [])]
                results = await self.model.begin_step(chunk, len(self.tokens), options, asked)
                self.tokens += chunk
            under_way.append((results, at, read))
            # A GPU computes one chunk while the next one is encoded; results of each are not kept waiting.
            while len(under_way) > (0 if last or each else 1):
                results, begin, end = under_way.popleft()
                try:
                    found = await results()
                except BaseException:
                    self.truncate(len(self.tokens) - (read - begin))
                    raise
                if each is not None:
                    each(found.pop(), end - begin)
                if progress is not None:
                    progress(ProgressEvent("prompt", end, len(tokens), "tokens"))
            await self.model.host.pause()
        return found

    async def _make_room(self, count: int, total: int) -> None:
        """Ensures that `count` more tokens fit. Needs: the lock."""
        limit = self.model.context
        if len(self.tokens) + count <= limit:
            return
        if not self.slides or total > limit // SLIDE_DIVISOR or self.keeps + count > limit // SLIDE_DIVISOR:
            what = f"tokens of a conversation with {self.model.name!r}"
            todo = 'open the model with a larger context or overflow="slide", or start a new conversation'
            if self.slides:
                most = limit // SLIDE_DIVISOR - self.keeps
                todo = (
                    f"a sliding conversation reads at most {most} at once; shorten the prompt or use a larger context"
                )
            raise LimitError(what, len(self.tokens) + total, limit, todo)
        kept = self.tokens[: self.keeps]
        rest = self.tokens[self.keeps :][-(limit // SLIDE_DIVISOR - self.keeps) :]
        self.tokens = []
        for at in range(0, len(kept + rest), self.model.chunk):
            chunk = (kept + rest)[at : at + self.model.chunk]
            await self.model.step(chunk, len(self.tokens), GREEDY, ())
            self.tokens += chunk

    async def write(
        self, tokens: Sequence[int], sampling: Sampling, most: int, progress: Progress | None = None
    ) -> AsyncIterator[int]:
        """Reads a prompt, then yields sampled tokens, at most `most`, until the answer ends.

        The event loop runs between two tokens, so the caller can stop.
        """
        kept = self.generated = 0
        while kept < min(len(tokens) - 1, len(self.tokens)) and self.tokens[kept] == tokens[kept]:
            kept += 1
        if kept < len(self.tokens):
            self.truncate(kept)
        given = list(tokens[kept:])
        (sampled,) = await self.read(given, sampling.options(), (SAMPLED,), progress)
        token, ahead = _number(sampled), _StepsAhead(self, sampling)
        for left in range(most - 1, -1, -1):
            if token in self.model.tokenizer.ends:
                return
            await ahead.begin(token, left)
            self.generated += 1
            yield token
            if left:
                token = await ahead.after(token)

    async def logits(self, tokens: Sequence[int]) -> Tensor:
        """The logits of the token that follows these tokens."""
        found: list[Tensor] = await self.read(tokens, wanted=(LOGITS,))
        return found[0]


class _StepsAhead:
    """Decoding steps started before their results are needed: the device works while Python hands a token on.

    Where the backend cannot do that, or another conversation has taken the KV cache meanwhile, the step is repeated
    with the same random numbers.
    """

    def __init__(self, conversation: Conversation, sampling: Sampling) -> None:
        self._conversation, self._sampling = conversation, sampling
        self._begun = deque[tuple[int, PendingStep]]()  # position and pending result of each step
        self._draws = deque[bytes]()  # sampling options of steps in flight or abandoned

    async def begin(self, token: int, most: int) -> None:
        """Starts steps: the first reads this token, each later one the token that its predecessor samples."""
        chat = self._conversation
        model = chat.model
        depth = min(MAX_STEPS_AHEAD, most) if isinstance(model.executor, GpuPartExecutor) else 0
        async with model.lock:
            while len(self._begun) < depth:
                position = len(chat.tokens) + len(self._begun)
                if model.cache_owner is not chat or position >= model.context or not self._is_valid():
                    return
                if len(self._draws) == len(self._begun):
                    self._draws.append(self._sampling.options())
                draw = self._draws[len(self._begun)]
                step = await model.begin_step(None if self._begun else [token], position, draw, (SAMPLED,))
                self._begun.append((position, step))

    def _is_valid(self) -> bool:
        """Whether the oldest step in flight continues the conversation as it is now."""
        return not self._begun or self._begun[0][0] == len(self._conversation.tokens)

    async def after(self, token: int) -> int:
        """The token that follows this one."""
        chat = self._conversation
        found = None
        async with chat.model.lock:  # the conversation must not be swapped out without the token
            if self._begun and chat.model.cache_owner is chat and self._is_valid():
                (found,) = await self._begun.popleft()[1]()
                self._draws.popleft()
                chat.tokens.append(token)
        if found is not None:
            await chat.model.host.pause()
            return _number(found)
        self._begun.clear()
        draw = self._draws.popleft() if self._draws else self._sampling.options()
        (sampled,) = await chat.read([token], draw)
        return _number(sampled)


def _number(sampled: Any) -> int:
    found = sampled.tolist()[0]
    assert isinstance(found, int)
    return found
