"""Tuning a model in the page's worker, and both plans run in turns."""

import dataclasses
import json
import statistics

import js

import webinfer


def configure(urls):
    webinfer.configure(json.loads(urls))


async def tune(url, dequantize, batch, budget, runs, tell):
    """JSON of {text, report, gain, runs}: nothing is known at the beginning. `batch` 0 is the model's own.

    The model is loaded twice: what it was before tuning runs against what it is after, with readback.
    """
    options = {"backend": "webgpu", "strict": True, "dequantize": bool(dequantize)}
    before = await webinfer.load(url, **options)
    await before.forget_tuning()
    if batch:
        options["shapes"] = {info.name: (int(batch), *info.shape[1:]) for info in before.inputs}
        before.close()
        before = await webinfer.load(url, **options)
    after = await webinfer.load(url, **options)
    try:
        report = await after.tune(
            budget, lambda event: tell(event.done, event.total) if event.stage == "tune" else None
        )
        times = await _interleaved(before, after, int(runs))
    finally:
        before.close()
        after.close()
    return json.dumps({"text": str(report), "gain": report.gain, "runs": times, "report": dataclasses.asdict(report)})


async def _interleaved(before, after, runs):
    inputs, times = before.noise(), {"default": [], "tuned": []}
    for session in (before, after):
        for _ in range(5):
            await session.run(inputs)
    for turn in range(runs):
        pair = [("default", before), ("tuned", after)]
        for label, session in pair if turn % 2 else pair[::-1]:
            begin = js.performance.now()
            await session.run(inputs)
            times[label].append(js.performance.now() - begin)
    return {label: {"min_ms": min(t), "median_ms": statistics.median(t)} for label, t in times.items()}
