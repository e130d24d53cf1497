"""Runs of a webinfer session in the benchmark's worker: from JavaScript's typed arrays to typed arrays."""

import asyncio
import inspect
import json

import js
from pyodide.ffi import to_js

import webinfer


def version():
    return webinfer.__version__


def configure(urls):
    webinfer.configure(json.loads(urls))


class Runs:
    """A loaded model."""

    def __init__(self, session, note):
        self.session, self.note = session, note
        self.names = [info.name for info in session.inputs]

    async def run(self, inputs):
        """[name, typed array] of each output."""
        outputs = await self._once(list(inputs))
        return to_js([[name, data] for name, data in outputs])

    async def times(self, inputs, runs):
        """Milliseconds of each run. The loop is here because a user of this library writes it here."""
        arrays, times, now = list(inputs), [], js.performance.now
        for _ in range(runs):
            begin = now()
            await self.session.run(self._inputs(arrays))
            times.append(now() - begin)
        return to_js(times)

    async def kept_times(self, inputs, runs):
        """As `times`, of runs whose outputs stay on the GPU, each until the GPU is done."""
        arrays, times, now, gpu = list(inputs), [], js.performance.now, await self.session.host.gpu()
        for _ in range(runs):
            begin = now()
            kept = await self.session.run_on_gpu(self._inputs(arrays))
            await gpu.idle()
            times.append(now() - begin)
            for tensor in kept.values():
                tensor.close()
        return to_js(times)

    async def flight(self, inputs, runs, lanes):
        """Runs, so many of them at a time under way."""
        arrays, left = list(inputs), iter(range(runs))

        async def lane():
            for _ in left:
                await self.session.run(self._inputs(arrays))

        await asyncio.gather(*(lane() for _ in range(lanes)))

    def _inputs(self, arrays):
        return dict(zip(self.names, arrays, strict=True))

    async def _once(self, arrays):
        results = await self.session.run(self._inputs(arrays))
        return [(name, to_js(tensor.flat())) for name, tensor in results.items()]

    def close(self):
        self.session.close()


async def open_session(files, backend, threads, shapes):
    """The model on exactly this backend, or as "auto" chooses, with the default kernels: tuning would disturb others.

    `files` is [name, bytes] of each file of the model, its own first.
    """
    options = {"tuning_ms": 0}
    if bound := json.loads(shapes):
        options["shapes"] = bound
    if "threads" in inspect.signature(webinfer.load).parameters and backend != "webgpu":
        options["threads"] = threads or None  # 0: what suits the machine
    elif threads > 1:
        raise RuntimeError("this webinfer runs on one thread only")
    named = {name: data.to_bytes() for name, data in files}
    source = named if len(named) > 1 else next(iter(named.values()))
    session = await webinfer.load(source, backend=backend, strict=backend != "auto", **options)
    return Runs(session, "" if backend != "auto" else session.choice)
