"""A conversation: the words that a model has read so far, and their keys and values."""

from __future__ import annotations

import struct
from array import array
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any
from zlib import crc32

from webinfer.backends.base import Arriving
from webinfer.errors import InputError, LimitError, ModelFormatError
from webinfer.host.interface import Progress, ProgressEvent
from webinfer.language.model import NO_DRAW, LanguageModel
from webinfer.language.settings import Sampling
from webinfer.tensor import Tensor

MAGIC = b"WICONV1\0"
KEPT_SHARE = 2  # a conversation that slides keeps one of so many parts of its words
DRAWN, LOGITS, HIDDEN = 0, 1, 2
AHEAD = 2  # steps that may have begun: one that is waited for, and one that the device goes on with


class Conversation:
    """Several of one model take turns in its cache: who is not at work has its keys and values aside.

    With `slides` a conversation that is longer than the context goes on without its oldest words but the first
    `keeps`; else that is a LimitError.
    """

    def __init__(self, model: LanguageModel, slides: bool = False, keeps: int = 0) -> None:
        self.model, self.slides, self.keeps = model, slides, keeps
        self.words: list[int] = []  # that keys and values are there for
        self._aside: list[bytes] | None = None
        self._filled = 0  # positions that `_aside` is of: some of them may have been forgotten since

    def reset(self) -> None:
        """Forgets all words."""
        self.words, self._aside = [], None

    def back_to(self, count: int) -> None:
        """Forgets all words but the first `count`."""
        self.words = self.words[:count]

    async def fork(self) -> Conversation:
        """Another conversation that goes on from here."""
        async with self.model.lock:
            await self._put_aside()
            other = Conversation(self.model, self.slides, self.keeps)
            other.words, other._aside, other._filled = list(self.words), self._aside, self._filled
        return other

    async def save(self) -> bytes:
        """The conversation as bytes, for `restore` on the same model with the same context and kind of cache."""
        async with self.model.lock:
            rows = b"".join(await self.rows())
            return MAGIC + struct.pack("<2I", self._shape(), len(self.words)) + array("i", self.words).tobytes() + rows

    async def restore(self, data: bytes) -> None:
        """Goes on from what `save` gave.

        Raises:  ModelFormatError if the bytes are damaged, or of another model
        """
        head = len(MAGIC) + 8
        shape, count = struct.unpack("<2I", data[len(MAGIC) : head]) if len(data) >= head else (0, 0)
        sizes = (
            [sum(n for _, n in spans) for _, spans in self.model._rows(count)] if count <= self.model.context else []
        )
        fits = data[: len(MAGIC)] == MAGIC and shape == self._shape() and sizes
        if not fits or len(data) != head + 4 * count + sum(sizes):
            raise ModelFormatError("these bytes are no conversation with this model, or they are damaged")
        words = array("i", data[head : head + 4 * count]).tolist()
        if words and not 0 <= min(words) <= max(words) < self.model.architecture.words:
            raise ModelFormatError("this conversation has words that the model does not know")
        at, aside = head + 4 * count, []
        for size in sizes:
            aside.append(data[at : at + size])
            at += size
        async with self.model.lock:
            self.words, self._aside, self._filled = words, aside, count
            if self.model.holder is self:
                self.model.holder = None

    def _shape(self) -> int:
        a = self.model.architecture
        numbers = (a.words, a.blocks, a.width, a.groups, a.head_width, self.model.context, self.model.cache.itemsize)
        return crc32(struct.pack("<7I", *numbers))

    async def rows(self) -> list[bytes]:
        """Its keys and values, as the model's `put_back` takes them; needs the lock."""
        if self.model.holder is not self and self._filled != len(self.words):
            await self.take_cache()
        await self._put_aside()
        return self._aside or []

    async def _put_aside(self) -> None:
        if self.model.holder is self:
            count = len(self.words)  # `back_to` may be called meanwhile
            self._aside, self._filled = await self.model.taken_out(count), count

    async def take_cache(self) -> None:
        """Makes the cache this conversation's; needs the lock."""
        holder = self.model.holder
        if holder is self:
            return
        if holder is not None:
            await holder._put_aside()
        if self._aside is not None and self.words:
            await self.model.put_back(self._aside, self._filled)
        self._aside, self.model.holder = None, self

    # ----- reading and writing

    async def read(
        self, words: Sequence[int], options: bytes = NO_DRAW, wanted: Sequence[int] = (DRAWN,),
        progress: Progress | None = None, each: Callable[[Any, int], None] | None = None,
    ) -> list[Any]:  # fmt: skip
        """Reads words, in chunks; what is wanted of the last chunk. `each` gets all rows' results of every chunk.

        Raises:  LimitError if they do not fit the context; InputError if there are none
        """
        if not words:
            raise InputError("there is nothing to read: the text has no words")
        if not 0 <= min(words) <= max(words) < self.model.architecture.words:
            raise InputError(f"words are numbers from 0 to {self.model.architecture.words - 1}")
        found: list[Any] = []
        for at in range(0, len(words), self.model.chunk):
            chunk = words[at : at + self.model.chunk]
            last = at + len(chunk) == len(words)
            async with self.model.lock:
                await self.take_cache()
                await self._make_room(len(chunk), len(words) - at)
                asked = [*(wanted if last else ()), *([HIDDEN] if each else [])]
                found = await self.model.step(chunk, len(self.words), options, asked)
                self.words += chunk
            if each is not None:
                each(found.pop(), len(chunk))
            if progress is not None:
                progress(ProgressEvent("prompt", at + len(chunk), len(words), "words"))
            await self.model.host.pause()
        return found

    async def _make_room(self, count: int, all_of_it: int) -> None:
        """Sees to it that so many words fit; needs the lock."""
        limit = self.model.context
        if len(self.words) + count <= limit:
            return
        if not self.slides or all_of_it > limit // KEPT_SHARE or self.keeps + count > limit // KEPT_SHARE:
            what = f"words of a conversation with {self.model.name!r}"
            todo = "open the model with a larger context, begin a new conversation, or let it slide"
            if self.slides:
                most = limit // KEPT_SHARE - self.keeps
                todo = f"one that slides reads {most} at once: give it less, or open the model with a larger context"
            raise LimitError(what, len(self.words) + all_of_it, limit, todo)
        kept = self.words[: self.keeps]
        rest = self.words[self.keeps :][-(limit // KEPT_SHARE - self.keeps) :]
        self.words = []
        for at in range(0, len(kept + rest), self.model.chunk):
            chunk = (kept + rest)[at : at + self.model.chunk]
            await self.model.step(chunk, len(self.words), NO_DRAW, ())
            self.words += chunk

    async def write(
        self, words: Sequence[int], sampling: Sampling, most: int, progress: Progress | None = None
    ) -> AsyncIterator[int]:
        """Reads words, then yields one drawn word after the other, up to `most` or to the end of the answer.

        Between two words others run, so that whoever waits for them can stop.
        """
        kept = 0
        while kept < min(len(words) - 1, len(self.words)) and self.words[kept] == words[kept]:
            kept += 1
        if kept < len(self.words):
            self.back_to(kept)
        given = list(words[kept:])
        (drawn,) = await self.read(given, sampling.options(), (DRAWN,), progress)
        word, ahead = _number(drawn), _Ahead(self, sampling)
        for left in range(most - 1, -1, -1):
            if word in self.model.tokenizer.ends:
                return
            await ahead.begin(word, left)
            yield word
            if left:
                word = await ahead.after(word)

    async def logits(self, words: Sequence[int]) -> Tensor:
        """Reads words; the logits of the word that follows."""
        found: list[Tensor] = await self.read(words, wanted=(LOGITS,))
        return found[0]


class _Ahead:
    """Steps that have begun before anybody asked for their words: the device computes them while a word is passed on.

    Where a backend cannot do so, or another conversation has taken the cache meanwhile, the words are read anew, with
    the draws that the steps had.
    """

    def __init__(self, conversation: Conversation, sampling: Sampling) -> None:
        self._conversation, self._sampling = conversation, sampling
        self._begun = deque[tuple[int, Arriving]]()  # the position that a step reads, and what waits for its word
        self._draws = deque[bytes]()  # of steps that have begun, or of those that were given up

    async def begin(self, word: int, most: int) -> None:
        """Begins steps: the first one reads this word, others what the one before them draws."""
        chat = self._conversation
        model = chat.model
        depth = min(AHEAD, most) if model.executor.abilities.parts_ahead else 0
        async with model.lock:
            while len(self._begun) < depth:
                position = len(chat.words) + len(self._begun)
                if model.holder is not chat or position >= model.context or not self._is_valid():
                    return
                if len(self._draws) == len(self._begun):
                    self._draws.append(self._sampling.options())
                step = await model.begin_step(None if self._begun else word, position, self._draws[len(self._begun)])
                self._begun.append((position, step))

    def _is_valid(self) -> bool:
        """Whether the first step that has begun reads what follows the conversation's words."""
        return not self._begun or self._begun[0][0] == len(self._conversation.words)

    async def after(self, word: int) -> int:
        """The word after this one."""
        chat = self._conversation
        found = None
        async with chat.model.lock:  # nobody puts the conversation aside without the word
            if self._begun and chat.model.holder is chat and self._is_valid():
                found = await self._begun.popleft()[1]()
                self._draws.popleft()
                chat.words.append(word)
        if found is not None:
            await chat.model.host.pause()
            return _number(next(iter(found.values())))
        self._begun.clear()
        draw = self._draws.popleft() if self._draws else self._sampling.options()
        (drawn,) = await chat.read([word], draw)
        return _number(drawn)


def _number(drawn: Any) -> int:
    found = drawn.tolist()[0]
    assert isinstance(found, int)
    return found
