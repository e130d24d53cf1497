"""A language model of webinfer's, word by word."""

import json

from js import Object
from pyodide.ffi import to_js

import webinfer
from webinfer.host import current
from webinfer.session import roofline


def configure(urls):
    webinfer.configure(json.loads(urls))


class Writer:
    """A model that is open."""

    def __init__(self, generator):
        self.generator = generator

    async def write(self, prompt, words):
        """Reads a text and goes on with it: what was read and written, and the milliseconds of each."""
        chat, clock = self.generator.conversation(), current().now_ms
        count, text, times = len(self.generator.words(prompt)), "", [clock()]
        async for piece in self.generator.stream(prompt, max_words=words, conversation=chat):
            text += piece
            times.append(clock())
        written = len(chat.words) - count  # but for the last one, which nobody read
        found = {"prompt_words": count, "prompt_ms": times[1] - times[0], "words": written, "text": text}
        return to_js({**found, "answer_ms": times[-1] - times[1]}, dict_converter=Object.fromEntries)

    async def copy_gbytes(self, threads):
        """Thousands of millions of bytes that a copy, too large for caches, reads and writes in a second."""
        peaks = await roofline.measured(self.generator.backend, current(), threads)
        nbytes, ms = peaks.copies[-1] if peaks.copies else (0, 1.0)
        return nbytes / ms / 1e6


async def open_writer(model, backend, threads):
    """The model of this URL on exactly this backend."""
    options = {"threads": threads} if backend == "wasm" else {}
    return Writer(await webinfer.pipeline("text-generation", model, backend=backend, **options))
