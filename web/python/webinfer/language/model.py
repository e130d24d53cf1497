"""A language model on one backend: its plan, and one cache of keys and values that conversations take turns in."""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from weakref import ReferenceType

from webinfer.backends import registry
from webinfer.backends.base import Arriving, BuildOptions, Executor, LastOutput, MemoryReport
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
)
from webinfer.graph.ir import Constant, Graph
from webinfer.graph.verify import verify
from webinfer.host.interface import Host, Progress
from webinfer.importers.gguf.architecture import Architecture, architecture_of
from webinfer.importers.gguf.container import read_file
from webinfer.importers.gguf.convert import rounded_up
from webinfer.importers.gguf.decoder import (
    TOGETHER_IDS,
    cache_name,
    decoder_graph,
    input_names,
    output_names,
    together_names,
)
from webinfer.language.template import ChatTemplate
from webinfer.language.tokenizer import Tokenizer
from webinfer.language.weights import Weights, open_weights
from webinfer.ops.language import CACHES, LANES, cache_row_bytes
from webinfer.session.options import whole_number

log = logging.getLogger("webinfer")
CONTEXT = 2048
MAX_CONTEXT = 1 << 17
MOST_TOGETHER = 64  # conversations
NO_DRAW = struct.pack("<4f", 0, 0, 1, 0)
Spans = list[tuple[int, int]]


class LanguageModel:
    """Weights, words and the template of a file. One lock orders what its conversations compute."""

    def __init__(
        self, name: str, architecture: Architecture, tokenizer: Tokenizer, template: ChatTemplate, executor: Executor,
        host: Host, context: int, choice: str, chunk: int, together: int, cache: DType,
    ) -> None:  # fmt: skip
        self.name, self.architecture, self.tokenizer, self.template = name, architecture, tokenizer, template
        self.host, self.context, self.choice, self.together, self.cache = host, context, choice, together, cache
        self.chunk = chunk  # words of a prompt that are read together
        self._executor: Executor | None = executor
        self.lock = asyncio.Lock()
        self._drawn = ""  # the output of the last step that names a word
        self._holder: ReferenceType[Any] | None = None
        self.slots_lock = asyncio.Lock()  # of the caches behind the first one, which conversations together have

    @classmethod
    async def open(
        cls, source: Any, host: Host, backend: str | Sequence[str] = AUTO, context: int | None = None,
        threads: int | None = None, progress: Progress | None = None, together: int = 1, cache: str | None = None,
    ) -> LanguageModel:  # fmt: skip
        """The model of a GGUF file; `context` is how many words a conversation may have, up to what the model knows.

        So many conversations as `together` says can be written at a time, each with a cache of its own. `cache` is what
        keys and values are kept as, "int16" (13 bits and a scale for each row of a head) or "float32"; None: as the
        backend is fastest.

        Raises:  ModelFormatError, UnsupportedOpError, LimitError by the file; InputError; BackendUnavailableError
        """
        whole_number("together", together, 1, MOST_TOGETHER)
        if cache is not None and cache not in CACHES:
            raise InputError(f"cache={cache!r} is unknown; choose {' or '.join(CACHES)}")
        kept = None if cache is None else DType(cache)
        weights = await open_weights(source, host, progress)
        try:
            options = BuildOptions(progress, threads=threads)
            return await cls._of(weights, host, backend, context, options, together, kept)
        finally:
            weights.close()

    @classmethod
    async def _of(
        cls, weights: Weights, host: Host, backend: str | Sequence[str], context: int | None, options: BuildOptions,
        together: int, cache: DType | None,
    ) -> LanguageModel:  # fmt: skip
        file = read_file(weights.data, weights.name)
        architecture = architecture_of(file)
        most = min(architecture.context, MAX_CONTEXT)
        context = min(CONTEXT, most) if context is None else whole_number("context", context, 1, most)
        tokenizer = Tokenizer(file)
        if len(tokenizer.words) > architecture.words:
            raise InputError(
                f"{file.name!r} has {len(tokenizer.words)} words, {architecture.words} of them with weights"
            )
        template = ChatTemplate(file.facts.get("tokenizer.chat_template"), tokenizer)

        def graph(rows: int, kept: DType) -> Graph:
            made = decoder_graph(file, architecture, (1, rows), rounded_up(context), together, kept)
            verify(made)
            return made

        executor, choice, row = await _built(weights.name, graph, host, backend, options, cache)
        return cls(
            weights.name, architecture, tokenizer, template, executor, host, context, choice, row.rows_together,
            together, cache or row.caches[0],
        )  # fmt: skip

    @property
    def holder(self) -> Any:
        """The conversation whose keys and values are in the cache; None if nobody has it any more."""
        return None if self._holder is None else self._holder()

    @holder.setter
    def holder(self, conversation: Any) -> None:
        self._holder = None if conversation is None else ReferenceType(conversation)

    @property
    def executor(self) -> Executor:
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
        """Bytes of weights and cache, and of what runs use."""
        return self.executor.memory()

    def cache_bytes(self) -> int:
        """Bytes of the caches."""
        a = self.architecture
        row = cache_row_bytes(self.cache, a.head_width)
        return self.together * 2 * a.blocks * rounded_up(self.context) * a.groups * row

    async def step(self, words: Sequence[int], position: int, options: bytes, wanted: Sequence[int]) -> list[Any]:
        """Reads words at a position. Wanted are some of (drawn and likeliest word, the last's logits, rows' results).

        Needs:   the lock; 1 to `chunk` words that fit the context
        """
        part, rows = (0, 1) if len(words) == 1 else (1, self.chunk)
        ids, last = input_names(rows)
        inputs = {
            "place": struct.pack("<2i", position, len(words)), "options": options,
            ids: struct.pack(f"<{rows}i", *words, *[0] * (rows - len(words))), last: struct.pack("<i", len(words) - 1),
        }  # fmt: skip
        names = [output_names(rows)[i] for i in wanted]
        self._drawn = output_names(rows)[0]
        found = await self.executor.run_part(part, inputs, names)
        return [found[name] for name in names]

    async def begin_step(self, word: int | None, position: int, options: bytes) -> Arriving:
        """Begins to read a word, None for the one that the last step drew; what it returns waits for the next word.

        Needs:   the lock; `parts_ahead`; a position that fits the context
        """
        ids, last = input_names(1)
        given = LastOutput(self._drawn) if word is None else struct.pack("<i", word)
        place = struct.pack("<2i", position, 1)
        self._drawn = output_names(1)[0]
        return await self.executor.begin_part(
            0, {"place": place, "options": options, ids: given, last: bytes(4)}, [self._drawn]
        )

    async def step_together(self, words: Sequence[tuple[int, int, bytes] | None]) -> list[int]:
        """Reads one word of each conversation, given with its position and options; None: that one has ended.

        The words that follow, in this order; of one that has ended any number. Needs: the lock; `together` of them
        """
        if self.together == 1:  # of which there is no plan of its own
            if words[0] is None:
                return [0]
            (drawn,) = await self.step([words[0][0]], words[0][1], words[0][2], [0])
            return [int(drawn.tolist()[0])]
        ids, inputs = [0 if one is None else one[0] for one in words], dict[str, bytes]()
        for slot, one in enumerate(words):
            place, options, _ = together_names(slot)
            inputs[place] = struct.pack("<2i", *((0, 0) if one is None else (one[1], 1)))
            inputs[options] = NO_DRAW if one is None else one[2]
        inputs[TOGETHER_IDS] = struct.pack(f"<{len(ids)}i", *ids)
        names = [together_names(slot)[2] for slot in range(len(words))]
        found = await self.executor.run_part(2, inputs, names)
        return [int(found[name].tolist()[0]) for name in names]

    async def taken_out(self, count: int) -> list[bytes]:
        """The keys and values of the first `count` positions, as `put_back` takes them; needs the lock."""
        return await asyncio.gather(*(self.executor.read_resident(name, spans) for name, spans in self._rows(count)))

    async def put_back(self, rows: Sequence[bytes], count: int, slot: int = 0) -> None:
        """Puts keys and values of the first `count` positions into the cache, or into another one; needs the lock."""
        for (name, spans), data in zip(self._rows(count, slot), rows, strict=True):
            await self.executor.write_resident(name, spans, memoryview(data))

    def _rows(self, count: int, slot: int = 0) -> list[tuple[str, Spans]]:
        a, capacity = self.architecture, rounded_up(self.context)
        row, whole = cache_row_bytes(self.cache, a.head_width), -(-count // LANES) * LANES
        spans = {}
        for kind, filled in (("keys", whole), ("values", count if self.cache is DType.FLOAT32 else whole)):
            spans[kind] = [(g * capacity * row, filled * row) for g in range(a.groups)]
        return [(cache_name(kind, block, slot), spans[kind]) for block in range(a.blocks) for kind in spans]

    def close(self) -> None:
        """Frees weights and cache; a second call does nothing."""
        if self._executor is not None:
            self._executor.close()
            self._executor = None


async def _built(
    name: str, graph: Callable[[int, DType], Graph], host: Host, backend: str | Sequence[str], options: BuildOptions,
    cache: DType | None,
) -> tuple[Executor, str, registry.Row]:  # fmt: skip
    """The graph on the first backend that can run it, and why that one."""
    able = registry.able("parts")
    order = [backend] if isinstance(backend, str) else list(backend)
    order = able if order == [AUTO] else order
    if unable := [one for one in order if one not in able]:
        raise InputError(f"language models do not run on {unable[0]!r}; they run on {', '.join(able)}")
    refused = []
    for one in order:
        row = registry.ROWS[one]
        try:
            if len(order) > 1 and (reluctance := await row.reluctance(host)):
                refused.append(f"{one} {reluctance}")
                continue
            taken = replace(options, threads=options.threads if "threads" in row.options else None)
            wanted = graph(row.rows_together, cache or row.caches[0])
            executor = await registry.open_backend(one).build(wanted, host, taken)
            _let_weights_go(wanted)
            return executor, "; ".join([f"{one} runs it", *refused]), row
        except (BackendUnavailableError, GpuError, LimitError, OutOfMemoryError, UnsupportedOpError) as error:
            if one == order[-1] and not isinstance(error, BackendUnavailableError):
                raise
            refused.append(f"{one}: {error}")
            log.warning("%s falls back from %s: %s", name, one, error)
    raise BackendUnavailableError(f"no backend can run {name!r}: {'; '.join(refused)}")


def _let_weights_go(graph: Graph) -> None:
    """Weights lie in the backend's memory now; the file's bytes need not be there twice."""
    for node in graph.nodes:
        for value in node.inputs:
            if value is not None and value.constant is not None:
                value.constant = Constant(memoryview(b""), value.constant.stored)
