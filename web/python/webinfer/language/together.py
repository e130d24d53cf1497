"""Several conversations that are written together: each word of all of them reads the weights once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from webinfer.errors import LimitError
from webinfer.language.conversation import Conversation
from webinfer.language.model import LanguageModel
from webinfer.language.settings import Sampling


class Writing:
    """One of the conversations: the words that it has read, and the next one, which nobody has read yet."""

    def __init__(self, words: Sequence[int], sampling: Sampling) -> None:
        self.read, self.sampling, self.next, self.is_over = list(words), sampling, -1, False


async def written(
    model: LanguageModel, prompts: Sequence[Sequence[int]], samplings: Sequence[Sampling], most: int
) -> AsyncIterator[tuple[int, int, Writing]]:
    """Yields words as (number of the prompt, word, its conversation), up to `most` of each or to its answer's end.

    Whoever has heard enough of one sets its `is_over`. No more prompts than the model writes together.

    Raises:  LimitError where a conversation is longer than the context; InputError if a prompt has no words
    """
    first = Conversation(model)
    all_of_them = [Writing(words, sampling) for words, sampling in zip(prompts, samplings, strict=True)]
    async with model.slots_lock:
        for slot in reversed(range(len(prompts))):  # the first one stays where its prompt was read
            writing, chat = all_of_them[slot], Conversation(model) if slot else first
            (drawn,) = await chat.read(writing.read, writing.sampling.options())
            writing.next = drawn.tolist()[0]
            if slot:
                async with model.lock:
                    await model.put_back(await chat.rows(), len(writing.read), slot)
        for left in range(most - 1, -1, -1):
            for number, writing in enumerate(all_of_them):
                if not writing.is_over:
                    writing.is_over = writing.next in model.tokenizer.ends
                if not writing.is_over:
                    yield number, writing.next, writing
            if not left or all(writing.is_over for writing in all_of_them):
                return
            await _step(model, first, all_of_them)


async def _step(model: LanguageModel, first: Conversation, all_of_them: Sequence[Writing]) -> None:
    """Reads the next word of each that is not over."""
    given: list[tuple[int, int, bytes] | None] = [None] * model.together
    for slot, writing in enumerate(all_of_them):
        if writing.is_over:
            continue
        if len(writing.read) >= model.context:
            what = f"words of a conversation with {model.name!r}"
            raise LimitError(what, len(writing.read) + 1, model.context, "open the model with a larger context")
        given[slot] = (writing.next, len(writing.read), writing.sampling.options())
    async with model.lock:
        await first.take_cache()
        found = await model.step_together(given)
        first.words += [given[0][0]] if given[0] is not None else []
    for writing, one, word in zip(all_of_them, given, found, strict=False):
        if one is not None:
            writing.read.append(one[0])
            writing.next = word
    await model.host.pause()
