"""A language model of webinfer's, word by word."""

import json
from time import perf_counter

from js import Object
from pyodide.ffi import to_js

import webinfer

COPIED = 1 << 22  # floats, which fit no cache


def configure(urls):
    webinfer.configure(json.loads(urls))


class Writer:
    """A model that is open."""

    def __init__(self, generator):
        self.generator = generator

    async def write(self, prompt, words):
        """Reads a text and goes on with it: what was read and written, and the milliseconds of each."""
        chat = self.generator.conversation()
        count, text, times = len(self.generator.words(prompt)), "", [perf_counter()]
        async for piece in self.generator.stream(prompt, max_words=words, conversation=chat):
            text += piece
            times.append(perf_counter())
        written = len(chat.words) - count  # but for the last one, which nobody read
        prompt_ms, answer_ms = 1000 * (times[1] - times[0]), 1000 * (times[-1] - times[1])
        found = {"prompt_words": count, "prompt_ms": prompt_ms, "words": written, "answer_ms": answer_ms, "text": text}
        return to_js(found, dict_converter=Object.fromEntries)

    async def copy_gbytes(self, threads):
        """Thousands of millions of bytes that a copy, too large for caches, reads and writes in a second."""
        builder = webinfer.GraphBuilder("copy")
        builder.output(builder.node("abs", builder.input("x", (COPIED,))), "y")
        backend = self.generator.backend
        options = {"threads": threads} if backend == "wasm" else {}
        async with await webinfer.load(builder, backend=backend, **options) as session:
            report = await session.profile(rounds=5)
        return 8 * COPIED / report.total_ms / 1e6


async def open_writer(model, backend, threads):
    """The model of this URL on exactly this backend."""
    options = {"threads": threads} if backend == "wasm" else {}
    return Writer(await webinfer.pipeline("text-generation", model, backend=backend, **options))
