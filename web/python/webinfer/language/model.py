"""A language model on one backend: its plan and its KV cache, which conversations share by swapping in and out."""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any
from weakref import ReferenceType

from webinfer.backends import registry
from webinfer.backends.base import BuildOptions, GpuPartExecutor, LastOutput, MemoryReport, PartExecutor
from webinfer.backends.registry import AUTO
from webinfer.dtypes import DType
from webinfer.errors import (
    BackendUnavailableError,
    ClosedError,
    GpuError,
    InputError,
    LimitError,
    OutOfMemoryError,
    UnsupportedOpError,
    named,
)
from webinfer.graph.ir import Constant, Graph
from webinfer.graph.verify import verify
from webinfer.host.interface import Host, Progress
from webinfer.importers.gguf.architecture import Architecture, architecture_of
from webinfer.importers.gguf.convert import rounded_up
from webinfer.importers.gguf.decoder import (
    BATCH_IDS,
    batch_names,
    cache_name,
    decoder_graph,
    input_names,
    output_names,
)
from webinfer.importers.gguf.shards import read_files
from webinfer.language.template import ChatTemplate
from webinfer.language.tokenizer import Tokenizer
from webinfer.language.weights import Weights, open_weights
from webinfer.ops.language import CACHES, LANES, cache_row_bytes
from webinfer.session.loop_lock import CrossLoopLock
from webinfer.session.options import whole_number

log = logging.getLogger("webinfer")
CONTEXT = 2048
MAX_CONTEXT = 1 << 17
MAX_BATCH = 64  # conversations
GREEDY = struct.pack("<4f", 0, 0, 1, 0)
Spans = list[tuple[int, int]]
PendingStep = Callable[[], Awaitable[list[Any]]]  # waits for the wanted outputs of a step


class LanguageModel:
    """Weights, tokenizer and chat template of one file. `lock` serializes the work of its conversations."""

    def __init__(
        self, name: str, architecture: Architecture, tokenizer: Tokenizer, template: ChatTemplate,
        executor: PartExecutor, host: Host, context: int, choice: str, chunk: int, batch_size: int, cache: DType,
    ) -> None:  # fmt: skip
        self.name, self.architecture, self.tokenizer, self.template = name, architecture, tokenizer, template
        self.host, self.context, self.choice, self.batch_size, self.cache = host, context, choice, batch_size, cache
        self.chunk = chunk  # tokens of a prompt per prefill step
        self._executor: PartExecutor | None = executor
        self.lock = CrossLoopLock()
        self._sampled = ""  # the output of the last step that names a token
        self._cache_owner: ReferenceType[Any] | None = None
        self.slots_lock = CrossLoopLock()  # of the KV caches after the first one, which batches use

    @classmethod
    async def open(
        cls, source: Any, host: Host, backend: str | Sequence[str] = AUTO, context: int | None = None,
        threads: int | None = None, progress: Progress | None = None, batch_size: int = 1, cache: str | None = None,
    ) -> LanguageModel:  # fmt: skip
        """The model of a GGUF file. `context` is the maximum number of tokens of a conversation.

        Up to `batch_size` sequences are generated at a time, each with its own KV cache. `cache` is the type of the
        KV cache: "int16" (13 bits and one scale per row of a head), "float32", or None for the backend's fastest.

        Raises:  ModelFormatError, UnsupportedOpError, LimitError by the file; InputError; BackendUnavailableError
        """
        whole_number("batch_size", batch_size, 1, MAX_BATCH)
        if cache is not None and cache not in CACHES:
            raise InputError(f"cache={cache!r} is unknown; choose {' or '.join(CACHES)}")
        kept = None if cache is None else DType(cache)
        weights = await open_weights(source, host, progress)
        try:
            options = BuildOptions(progress, threads=threads)
            return await cls._of(weights, host, backend, context, options, batch_size, kept)
        finally:
            weights.close()

    @classmethod
    async def _of(
        cls, weights: Weights, host: Host, backend: str | Sequence[str], context: int | None, options: BuildOptions,
        batch_size: int, cache: DType | None,
    ) -> LanguageModel:  # fmt: skip
        file = read_files(weights.data, weights.name, weights.files)
        architecture = architecture_of(file)
        most = min(architecture.context, MAX_CONTEXT)
        context = min(CONTEXT, most) if context is None else whole_number("context", context, 1, most)
        tokenizer = Tokenizer(file)
        if len(tokenizer.tokens) > architecture.vocabulary:
            raise InputError(
                f"{file.name!r} has {len(tokenizer.tokens)} tokens, {architecture.vocabulary} of them with weights"
            )
        template = ChatTemplate(file.facts.get("tokenizer.chat_template"), tokenizer)

        def graph(rows: int, kept: DType) -> Graph:
            made = decoder_graph(file, architecture, (1, rows), rounded_up(context), batch_size, kept)
            verify(made)
            return made

        executor, choice, row, chunk = await _built(weights.name, graph, host, backend, options, cache)
        return cls(
            weights.name, architecture, tokenizer, template, executor, host, context, choice, chunk,
            batch_size, cache or row.caches[0],
        )  # fmt: skip

    @property
    def cache_owner(self) -> Any:
        """The conversation whose keys and values are in the KV cache; None if there is none or it was deleted."""
        return None if self._cache_owner is None else self._cache_owner()

    @cache_owner.setter
    def cache_owner(self, conversation: Any) -> None:
        self._cache_owner = None if conversation is None else ReferenceType(conversation)

    @property
    def executor(self) -> PartExecutor:
        """The plan.

        Raises:  ClosedError
        """
        if self._executor is None:
            raise ClosedError(f"the model {self.name!r} is closed; open it again")
        return self._executor

    @property
    def backend(self) -> str:
        """The backend in use."""
        return self.executor.backend

    def memory(self) -> MemoryReport:
        """Bytes of the weights, the KV cache and the arena."""
        return self.executor.memory()

    def cache_bytes(self) -> int:
        """Bytes of all KV caches."""
        a = self.architecture
        row = cache_row_bytes(self.cache, a.head_width)
        return self.batch_size * 2 * a.layers * rounded_up(self.context) * a.groups * row

    async def step(self, tokens: Sequence[int], position: int, options: bytes, wanted: Sequence[int]) -> list[Any]:
        """Runs the model on tokens at a position; `wanted`: SAMPLED, LOGITS (of the last token) or HIDDEN, as indices.

        Needs:   the lock; 1 to `chunk` tokens that fit the context
        """
        return await (await self.begin_step(tokens, position, options, wanted))()

    async def begin_step(
        self, tokens: Sequence[int] | None, position: int, options: bytes, wanted: Sequence[int]
    ) -> PendingStep:
        """As `step`, but on a GPU returns when the step is under way; call what it returns to wait for the results.

        Without tokens the step is on the one that the last step sampled, on a GPU only.
        """
        count = 1 if tokens is None else len(tokens)
        part, rows = (0, 1) if count == 1 else (1, self.chunk)
        ids, last = input_names(rows)
        read: LastOutput | bytes = LastOutput(self._sampled)
        if tokens is not None:
            read = struct.pack(f"<{rows}i", *tokens, *[0] * (rows - count))
        inputs = {
            "place": struct.pack("<2i", position, count), "options": options,
            ids: read, last: struct.pack("<i", count - 1),
        }  # fmt: skip
        names = [output_names(rows)[i] for i in wanted]
        self._sampled = output_names(rows)[0]
        executor = self.executor
        if isinstance(executor, GpuPartExecutor):
            pending = await executor.begin_part(part, inputs, names)
        else:
            done = await executor.run_part(part, inputs, names)

            async def pending() -> dict[str, Any]:
                return done

        async def results() -> list[Any]:
            found = await pending()
            return [found[name] for name in names]

        return results

    async def step_batch(self, tokens: Sequence[tuple[int, int, bytes] | None]) -> list[int]:
        """One decoding step of a batch. An entry is (token, position, sampling options), or None for an ended sequence.

        Returns the next token of each; of ended sequences any number. Needs: the lock; `batch_size` entries
        """
        if self.batch_size == 1:  # the batch part exists for larger batches only
            if tokens[0] is None:
                return [0]
            (sampled,) = await self.step([tokens[0][0]], tokens[0][1], tokens[0][2], [0])
            return [int(sampled.tolist()[0])]
        ids, inputs = [0 if one is None else one[0] for one in tokens], dict[str, bytes]()
        for slot, one in enumerate(tokens):
            place, options, _ = batch_names(slot)
            inputs[place] = struct.pack("<2i", *((0, 0) if one is None else (one[1], 1)))
            inputs[options] = GREEDY if one is None else one[2]
        inputs[BATCH_IDS] = struct.pack(f"<{len(ids)}i", *ids)
        names = [batch_names(slot)[2] for slot in range(len(tokens))]
        found = await self.executor.run_part(2, inputs, names)
        return [int(found[name].tolist()[0]) for name in names]

    async def save_kv(self, count: int) -> list[bytes]:
        """The keys and values of the first `count` positions, in the form of `restore_kv`. Needs: the lock."""
        return await asyncio.gather(*(self.executor.read_resident(name, spans) for name, spans in self._rows(count)))

    async def restore_kv(self, rows: Sequence[bytes], count: int, slot: int = 0) -> None:
        """Copies keys and values of the first `count` positions into the KV cache of a slot. Needs: the lock."""
        for (name, spans), data in zip(self._rows(count, slot), rows, strict=True):
            await self.executor.write_resident(name, spans, memoryview(data))

    def _rows(self, count: int, slot: int = 0) -> list[tuple[str, Spans]]:
        a, capacity = self.architecture, rounded_up(self.context)
        row, whole = cache_row_bytes(self.cache, a.head_width), -(-count // LANES) * LANES
        spans = {}
        for kind, filled in (("keys", whole), ("values", count if self.cache is DType.FLOAT32 else whole)):
            spans[kind] = [(g * capacity * row, filled * row) for g in range(a.groups)]
        return [(cache_name(kind, block, slot), spans[kind]) for block in range(a.layers) for kind in spans]

    def close(self) -> None:
        """Frees weights and KV cache; a second call does nothing."""
        if self._executor is not None:
            self._executor.close()
            self._executor = None


async def _built(
    name: str, graph: Callable[[int, DType], Graph], host: Host, backend: str | Sequence[str], options: BuildOptions,
    cache: DType | None,
) -> tuple[PartExecutor, str, registry.Row, int]:  # fmt: skip
    """The graph on the first backend that can run it, why that one, and how many tokens of a prompt a step reads."""
    able = registry.able(PartExecutor)
    order = [backend] if isinstance(backend, str) else list(backend)
    order = able if order == [AUTO] else order
    if unable := [one for one in order if one not in able]:
        raise InputError(f"language models do not run on {unable[0]!r}; they run on {', '.join(able)}")
    refused = []
    for one in order:
        row = registry.ROWS[one]
        try:
            if len(order) > 1 and (reason := await row.skip_in_auto(host)):
                refused.append(f"{one} {reason}")
                continue
            taken = replace(options, threads=options.threads if "threads" in row.options else None)
            chunk = await row.prefill_chunk(host)
            wanted = graph(chunk, cache or row.caches[0])
            executor = await registry.open_backend(one).build(wanted, host, taken)
            assert isinstance(executor, PartExecutor)
            _release_weights(wanted)
            return executor, "; ".join([f"{one} runs it", *refused]), row, chunk
        except (BackendUnavailableError, GpuError, LimitError, OutOfMemoryError, UnsupportedOpError) as error:
            if one == order[-1] and not isinstance(error, BackendUnavailableError):
                raise
            refused.append(named(one, error))
            log.warning("%s falls back from %s: %s", name, one, error)
    raise BackendUnavailableError(f"no backend can run {name!r}: {'; '.join(refused)}")


def _release_weights(graph: Graph) -> None:
    """Weights lie in the backend's memory now; the file's bytes need not be there twice."""
    for node in graph.nodes:
        for value in node.inputs:
            if value is not None and value.constant is not None:
                value.constant = Constant(memoryview(b""), value.constant.stored)
