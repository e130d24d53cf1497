"""A language model on one backend: its plan, and one cache of keys and values that conversations take turns in."""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from webinfer.backends import registry
from webinfer.backends.base import Arriving, BuildOptions, Executor, LastOutput, MemoryReport
from webinfer.backends.registry import AUTO
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
from webinfer.importers.gguf.decoder import decoder_graph, input_names, output_names
from webinfer.language.template import ChatTemplate
from webinfer.language.tokenizer import Tokenizer
from webinfer.language.weights import Weights, open_weights
from webinfer.ops.language import LANES
from webinfer.session.options import whole_number

log = logging.getLogger("webinfer")
CHUNK = 64  # words of a prompt that are read together
PARTS = (1, CHUNK)
CONTEXT = 2048
MAX_CONTEXT = 1 << 17
NO_DRAW = struct.pack("<4f", 0, 0, 1, 0)
Spans = list[tuple[int, int]]


class LanguageModel:
    """Weights, words and the template of a file. One lock orders what its conversations compute."""

    def __init__(
        self, name: str, architecture: Architecture, tokenizer: Tokenizer, template: ChatTemplate, executor: Executor,
        host: Host, context: int, choice: str,
    ) -> None:  # fmt: skip
        self.name, self.architecture, self.tokenizer, self.template = name, architecture, tokenizer, template
        self.host, self.context, self.choice = host, context, choice
        self._executor: Executor | None = executor
        self.lock = asyncio.Lock()
        self._drawn = ""  # the output of the last step that names a word
        self.holder: object | None = None  # the conversation whose keys and values are in the cache

    @classmethod
    async def open(
        cls, source: Any, host: Host, backend: str | Sequence[str] = AUTO, context: int | None = None,
        threads: int | None = None, progress: Progress | None = None,
    ) -> LanguageModel:  # fmt: skip
        """The model of a GGUF file; `context` is how many words a conversation may have, up to what the model knows.

        Raises:  ModelFormatError, UnsupportedOpError, LimitError by the file; InputError; BackendUnavailableError
        """
        weights = await open_weights(source, host, progress)
        try:
            return await cls._of(weights, host, backend, context, BuildOptions(progress, threads=threads))
        finally:
            weights.close()

    @classmethod
    async def _of(
        cls, weights: Weights, host: Host, backend: str | Sequence[str], context: int | None, options: BuildOptions
    ) -> LanguageModel:
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
        graph = decoder_graph(file, architecture, PARTS, rounded_up(context))
        verify(graph)
        executor, choice = await _built(graph, host, backend, options)
        _let_weights_go(graph)
        return cls(weights.name, architecture, tokenizer, template, executor, host, context, choice)

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
        """Bytes of the cache."""
        a = self.architecture
        return 8 * a.blocks * rounded_up(self.context) * a.groups * a.head_width

    async def step(self, words: Sequence[int], position: int, options: bytes, wanted: Sequence[int]) -> list[Any]:
        """Reads words at a position. Wanted are some of (drawn and likeliest word, the last's logits, rows' results).

        Needs:   the lock; 1 to CHUNK words that fit the context
        """
        part = 0 if len(words) == 1 else 1
        rows = PARTS[part]
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
        rows = PARTS[0]
        ids, last = input_names(rows)
        given = LastOutput(self._drawn) if word is None else struct.pack("<i", word)
        place = struct.pack("<2i", position, 1)
        self._drawn = output_names(rows)[0]
        return await self.executor.begin_part(
            0, {"place": place, "options": options, ids: given, last: bytes(4)}, [self._drawn]
        )

    async def taken_out(self, count: int) -> list[bytes]:
        """The keys and values of the first `count` positions, as `put_back` takes them; needs the lock."""
        return [await self.executor.read_resident(name, spans) for name, spans in self._rows(count)]

    async def put_back(self, rows: Sequence[bytes], count: int) -> None:
        """Puts keys and values of the first `count` positions into the cache; needs the lock."""
        for (name, spans), data in zip(self._rows(count), rows, strict=True):
            await self.executor.write_resident(name, spans, memoryview(data))

    def _rows(self, count: int) -> list[tuple[str, Spans]]:
        a, capacity = self.architecture, rounded_up(self.context)
        spans = {}
        for kind, filled in (("keys", -(-count // LANES) * LANES), ("values", count)):
            spans[kind] = [(4 * g * capacity * a.head_width, 4 * filled * a.head_width) for g in range(a.groups)]
        return [(f"{kind}.{block}", spans[kind]) for block in range(a.blocks) for kind in spans]

    def close(self) -> None:
        """Frees weights and cache; a second call does nothing."""
        if self._executor is not None:
            self._executor.close()
            self._executor = None


async def _built(graph: Graph, host: Host, backend: str | Sequence[str], options: BuildOptions) -> tuple[Executor, str]:
    """The graph on the first backend that can run it, and why that one."""
    able = registry.able("parts")
    order = [backend] if isinstance(backend, str) else list(backend)
    order = able if order == [AUTO] else order
    if unable := [name for name in order if name not in able]:
        raise InputError(f"language models do not run on {unable[0]!r}; they run on {', '.join(able)}")
    refused = []
    for name in order:
        row = registry.ROWS[name]
        try:
            if len(order) > 1 and (reluctance := await row.reluctance(host)):
                refused.append(f"{name} {reluctance}")
                continue
            taken = replace(options, threads=options.threads if "threads" in row.options else None)
            return await registry.open_backend(name).build(graph, host, taken), "; ".join([f"{name} runs it", *refused])
        except (BackendUnavailableError, GpuError, LimitError, OutOfMemoryError, UnsupportedOpError) as error:
            if name == order[-1] and not isinstance(error, BackendUnavailableError):
                raise
            refused.append(f"{name}: {error}")
            log.warning("%s falls back from %s: %s", graph.name, name, error)
    raise BackendUnavailableError(f"no backend can run {graph.name!r}: {'; '.join(refused)}")


def _let_weights_go(graph: Graph) -> None:
    """Weights lie in the backend's memory now; the file's bytes need not be there twice."""
    for node in graph.nodes:
        for value in node.inputs:
            if value is not None and value.constant is not None:
                value.constant = Constant(memoryview(b""), value.constant.stored)
