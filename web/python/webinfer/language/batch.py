"""Batched generation: one decoding step serves several prompts, so the weights are read once for all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from webinfer.errors import LimitError
from webinfer.language.conversation import Conversation
from webinfer.language.model import LanguageModel
from webinfer.language.sampling import Sampling


class BatchSequence:
    """Tokens of one prompt and its answer. `next_token` was sampled but is not in the KV cache yet."""

    def __init__(self, tokens: Sequence[int], sampling: Sampling) -> None:
        self.tokens, self.sampling, self.next_token, self.finished = list(tokens), sampling, -1, False


async def generate_batch(
    model: LanguageModel, prompts: Sequence[Sequence[int]], samplings: Sequence[Sampling], max_tokens: int
) -> AsyncIterator[tuple[int, int, BatchSequence]]:
    """Yields (prompt index, token, sequence) until every sequence ends or has `max_tokens` tokens.

    The caller may set `sequence.finished` to stop one sequence early. At most `model.batch_size` prompts.

    Raises:  LimitError if a sequence exceeds the context; InputError if a prompt has no tokens
    """
    first = Conversation(model)
    sequences = [BatchSequence(tokens, sampling) for tokens, sampling in zip(prompts, samplings, strict=True)]
    async with model.slots_lock:
        for slot in reversed(range(len(prompts))):  # slot 0 last: it stays in the cache that its prompt was read into
            sequence, chat = sequences[slot], Conversation(model) if slot else first
            (sampled,) = await chat.read(sequence.tokens, sequence.sampling.options())
            sequence.next_token = sampled.tolist()[0]
            if slot:
                async with model.lock:
                    await model.restore_kv(await chat.rows(), len(sequence.tokens), slot)
        for left in range(max_tokens - 1, -1, -1):
            for index, sequence in enumerate(sequences):
                if not sequence.finished:
                    sequence.finished = sequence.next_token in model.tokenizer.ends
                if not sequence.finished:
                    yield index, sequence.next_token, sequence
            if not left or all(sequence.finished for sequence in sequences):
                return
            await _step(model, first, sequences)


async def _step(model: LanguageModel, first: Conversation, sequences: Sequence[BatchSequence]) -> None:
    """One decoding step for every sequence that is not finished."""
    given: list[tuple[int, int, bytes] | None] = [None] * model.batch_size
    for slot, sequence in enumerate(sequences):
        if sequence.finished:
            continue
        if len(sequence.tokens) >= model.context:
            what = f"tokens of a conversation with {model.name!r}"
            raise LimitError(what, len(sequence.tokens) + 1, model.context, "open the model with a larger context")
        given[slot] = (sequence.next_token, len(sequence.tokens), sequence.sampling.options())
    async with model.lock:
        await first.swap_in()
        found = await model.step_batch(given)
        first.tokens += [given[0][0]] if given[0] is not None else []
    for sequence, one, token in zip(sequences, given, found, strict=False):
        if one is not None:
            sequence.tokens.append(one[0])
            sequence.next_token = token
    await model.host.pause()
