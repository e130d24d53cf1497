"""The chat of a page: one language model, and answers to messages, piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from webinfer.backends.registry import AUTO
from webinfer.errors import InputError
from webinfer.host import current
from webinfer.host.interface import Progress, ProgressEvent
from webinfer.models.registry import MODELS
from webinfer.page.model_controller import StoppedError
from webinfer.tasks import LATE_TASKS, pipeline

Answer = dict[str, Any]
ACTIONS = ("chat_prepare", "chat_open", "chat_answer", "chat_close", "chat_stored", "chat_forget")
STOPPABLE = ("elsewhere", "model", "prompt")  # stages that may take long, and leave what is done for the next time


class ChatController:
    """Holds one generator; `piece` is called with each piece of an answer."""

    def __init__(self, progress: Progress, piece: Callable[[str], None]) -> None:
        self._told, self._piece, self._stopping = progress, piece, False
        self._generator: Any = None
        self._recent: Any = None  # what of a chat the generator still reads

    def stop(self) -> None:
        """Stops an answer at its next token, a download at its next bytes."""
        self._stopping = True

    def _progress(self, event: ProgressEvent) -> None:
        if self._stopping and event.stage in STOPPABLE:
            raise StoppedError("it was stopped")
        self._told(event)

    async def answer(self, action: str, fields: Mapping[str, Any]) -> tuple[Answer, list[memoryview]]:
        """What a message asks for: one of ACTIONS.

        Raises:  InputError if no model is open; what opening or answering raises
        """
        found: Answer = await getattr(self, f"_{action}")(**fields)
        return found, []

    async def _chat_prepare(self, model: str) -> Answer:
        """Loads the Python that opening takes, and checks the weights of a known model that are kept here, so that
        opening it waits for neither; whether they are here and whole."""
        import_module(LATE_TASKS["text-generation"])
        from webinfer.language.template import PLAIN
        from webinfer.language.template_sandbox import compiled

        compiled(PLAIN)  # what its compiler does first takes as long as all that follow
        known = MODELS[model]
        file = await current().kept_file((known.sha256, *known.other_editions))
        if file is not None:
            file.close()
        return {"kept": file is not None}

    async def _chat_open(
        self, name: str = "", kept: str = "", files: Mapping[str, Any] | None = None, context: int | None = None,
        backend: str = AUTO,
    ) -> Answer:  # fmt: skip
        """Opens a known model, one whose weights are kept here, or the one file that is given; what it is, what runs
        it, and the memory that it takes."""
        self.close()
        self._stopping, name = False, name or kept
        source: Any = name or next(iter((files or {}).values()), None)
        start = current().now_ms()
        options: dict[str, Any] = {"context": context, "backend": backend, "overflow": "slide"}
        options["progress"] = self._progress
        self._generator = await pipeline("text-generation", source, **options)
        from webinfer.language.recent import RecentMessages

        self._recent = RecentMessages(self._generator)
        model = self._generator.model
        memory = model.memory()
        return {
            "name": name or next(iter(files or {})), "backend": model.backend, "ms": current().now_ms() - start,
            "architecture": model.architecture.name, "layers": model.architecture.layers, "context": model.context,
            "weights": memory.constants - model.cache_bytes(), "cache": model.cache_bytes(), "arena": memory.arena,
        }  # fmt: skip

    async def _chat_answer(self, messages: Sequence[Mapping[str, str]], options: Mapping[str, Any]) -> Answer:
        """Streams an answer; returns its text, its speed and whether the user stopped it."""
        if self._generator is None:
            raise InputError("no model is open")
        self._stopping = False
        clock, text, first = current().now_ms, "", 0.0
        messages = self._recent.of(messages)
        count = len(self._generator.tokenize(messages))
        start, before = clock(), len(self._generator._conversation.tokens)
        async for piece in self._generator.stream(messages, progress=self._progress, **options):
            first = first or clock()
            text += piece
            self._piece(piece)
            if self._stopping:
                break
        end = clock()
        return {
            "text": text, "stopped": self._stopping, "left_out": self._recent.left_out, "prompt": count, "read": before,
            "tokens": self._generator.generated, "prompt_ms": (first or end) - start, "answer_ms": end - (first or end),
        }  # fmt: skip

    async def _chat_stored(self, model: str) -> Answer:
        """What is kept in this browser: whether a model is complete here, and the bytes of all weights together."""
        files = await current().kept_files()
        return {"complete": f"{MODELS[model].sha256}.json" in files, "bytes": sum(files.values())}

    async def _chat_forget(self) -> Answer:
        """Deletes all weights that are kept here, and says how many bytes that freed."""
        return {"freed": await current().forget_files()}

    async def _chat_close(self) -> Answer:
        """Frees the model."""
        self.close()
        return {}

    def close(self) -> None:
        """Frees the model; a second call does nothing."""
        if self._generator is not None:
            self._generator.close()
            self._generator = None
