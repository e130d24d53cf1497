"""A language model of webinfer's, token by token."""

import json
from time import perf_counter

import pyodide_js
from js import Object
from pyodide.ffi import to_js

import webinfer

CONVERSATIONS = 50
COPIED = 1 << 22  # floats, which fit no cache


def configure(urls):
    webinfer.configure(json.loads(urls))


class Writer:
    """A model that is open."""

    def __init__(self, generator):
        self.generator = generator

    async def write(self, prompt, tokens):
        """Reads a text and goes on with it: what was read and written, and the milliseconds of each.

        As by llama.cpp's clocks, cutting the text into tokens does not count.
        """
        chat, text = self.generator.conversation(), ""
        self.generator.tokenize(prompt)  # words that it sees for the first time take longer
        begin = perf_counter()
        count = len(self.generator.tokenize(prompt))
        times = [perf_counter() + (perf_counter() - begin)]  # it is cut once more
        async for piece in self.generator.stream(prompt, max_tokens=tokens, conversation=chat):
            text += piece
            times.append(perf_counter())
        written = len(chat.tokens) - count  # but for the last one, which nobody read
        prompt_ms, answer_ms = 1000 * (times[1] - times[0]), 1000 * (times[-1] - times[1])
        found = {"prompt_words": count, "prompt_ms": prompt_ms, "tokens": written, "answer_ms": answer_ms, "text": text}
        return to_js(found, dict_converter=Object.fromEntries)

    async def long(self, tokens):
        """Pieces a second at the beginning and at the end of a long answer, and bytes of memory before and after it and
        CONVERSATIONS more."""
        model, share, chat = self.generator.model, max(tokens // 10, 1), self.generator.conversation()
        ends, model.tokenizer.ends = model.tokenizer.ends, frozenset()  # as long as it is asked to be
        before = self._bytes()
        marks = [perf_counter() async for _ in self.generator.stream("The", max_tokens=tokens, conversation=chat)]
        for number in range(CONVERSATIONS):
            chat = self.generator.conversation()
            async for _ in self.generator.stream(f"Number {number}", max_tokens=8, conversation=chat):
                pass
        model.tokenizer.ends = ends
        first, last = ((share - 1) / (some[-1] - some[0]) for some in (marks[:share], marks[-share:]))
        found = {"tokens": tokens, "first": first, "last": last, "before": before, "after": self._bytes()}
        return to_js(found, dict_converter=Object.fromEntries)

    def _bytes(self):
        """Memory of Python, and of the kernels, where they have one of their own."""
        executor = self.generator.model.executor
        kernels = executor.kernels.size() if self.generator.backend == "wasm" else 0
        return pyodide_js._module.HEAP8.length + kernels

    async def copy_gbytes(self, threads):
        """Thousands of millions of bytes that a copy, too large for caches, reads and writes in a second."""
        builder = webinfer.GraphBuilder("copy")
        builder.output(builder.node("abs", builder.input("x", (COPIED,))), "y")
        backend = self.generator.backend
        options = {"threads": threads} if backend == "wasm" else {}
        with await webinfer.load(builder, backend=backend, **options) as session:
            report = await session.profile(rounds=5)
        return 8 * COPIED / report.total_ms / 1e6


async def open_writer(model, backend, threads):
    """The model of this URL on exactly this backend."""
    options = {"threads": threads} if backend == "wasm" else {}
    return Writer(await webinfer.pipeline("text-generation", model, backend=backend, **options))
