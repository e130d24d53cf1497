"""An ONNX decoder in webinfer: a prompt and an answer of fixed tokens, timed step by step."""

import json
from array import array
from time import perf_counter

from js import Object
from pyodide.ffi import to_js

import webinfer

COMPARED = 64  # numbers at the end of the last logits


def configure(urls):
    webinfer.configure(json.loads(urls))


class Decoder:
    """A session that is open."""

    def __init__(self, session):
        self.session, self.names = session, {info.name for info in session.inputs}

    async def write(self, prompt, tokens):
        """Milliseconds of a prompt of so many tokens and of each token behind it, in a new conversation."""
        cache = self.session.kv_cache()
        times = []
        for step in range(1 + tokens):
            ids = [n % 1000 for n in range(prompt)] if step == 0 else [37 * step % 1000]
            begin = perf_counter()
            results = await self.session.run(self._inputs(ids, cache.length), kv_cache=cache)
            times.append(1000 * (perf_counter() - begin))
        last = bytes(results["logits"].flat().cast("B"))[-4 * COMPARED :]
        cache.reset()
        found = {"prompt_ms": times[0], "token_ms": times[1:], "last": list(memoryview(last).cast("f"))}
        return to_js(found, dict_converter=Object.fromEntries)

    def _inputs(self, ids, past):
        whole = past + len(ids)
        rows = {"input_ids": ids, "position_ids": range(past, whole), "attention_mask": [1] * whole}
        return {name: _integers(values) for name, values in rows.items() if name in self.names}


def _integers(values):
    return webinfer.Tensor(array("q", values).tobytes(), (1, len(values)), webinfer.DType.INT64)


async def open_decoder(model, backend, threads):
    """The model in a Blob on exactly this backend."""
    data = (await model.arrayBuffer()).to_bytes()
    options = {"threads": threads} if backend == "wasm" else {}
    return Decoder(await webinfer.load(data, backend=backend, strict=True, **options))
