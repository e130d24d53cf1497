"""Throughput of webinfer's webgpu backend: runs begun one after the other, inputs and outputs in GPU buffers."""

import asyncio
import json
from array import array

import js

import webinfer

ROUNDS = 7
LANES = 3  # runs in flight where results are read back


def configure(urls):
    webinfer.configure(json.loads(urls))


async def measure(base, options, tell):
    """Tells ("row", JSON) for every batch and every square."""
    options = json.loads(options)
    shape = (await (await js.fetch(f"{base}shape.json")).json()).to_py()
    for batch in options["batches"]:
        await network(base, [batch, *shape[1:]], options["seconds"], tell)
    for n in options["squares"]:
        await product(n, options["seconds"], tell)


async def fetched(url):
    response = await js.fetch(url)
    if not response.ok:
        raise RuntimeError(f"{url}: HTTP {response.status}")
    return (await response.arrayBuffer()).to_memoryview()


async def network(base, shape, seconds, tell):
    """A whole network at one batch."""
    images = await fetched(f"{base}images.bin")
    want = memoryview(bytes(await fetched(f"{base}results.bin"))).cast("f")
    batch, model = shape[0], bytes(await fetched(f"{base}model.tflite"))
    begin = js.performance.now()
    with await webinfer.load(model, backend="webgpu", strict=True, dequantize=True, shapes={"input": shape}) as session:
        loaded = js.performance.now() - begin
        count = len(images) * batch // 32
        feed = {"input": images[:count]}
        begin = js.performance.now()
        (result,) = (await session.run(feed)).values()
        first = js.performance.now() - begin
        got = result.flat()
        worst = max(abs(a - b) for a, b in zip(got, want[: len(got)], strict=True))
        times = await timed(lambda: session.run(feed), seconds / 2)
        on_gpu = await resident(session, feed, seconds)
        read = await in_flight(session, feed, seconds)
        row = {"load_ms": loaded, "first_ms": first, "max_abs_diff": worst, "dispatches": len(session.plan().rows)}
        row |= {"latency_ms": spread(times), "resident_ms": spread(on_gpu), "in_flight_ms": read}
        row["images_per_s"] = batch / row["resident_ms"]["median"] * 1e3
        tell("row", json.dumps({"label": f"network, batch {batch}", "batch": batch, **row}))


async def product(n, seconds, tell):
    """A square product of matrices that lie on the GPU."""
    graph = webinfer.GraphBuilder(f"matmul {n}")
    a, b = graph.input("a", (n, n)), graph.input("b", (n, n))
    graph.output(graph.node("matmul", a, b), "y")
    with await webinfer.load(graph, backend="webgpu", strict=True) as session:
        period = array("f", ((i * 7 % 13 - 6) / 8 for i in range(n)))
        feed = {"a": period.tobytes() * n, "b": period.tobytes() * n}
        times = spread(await resident(session, feed, seconds))
        tell("row", json.dumps({
            "label": f"matmul {n}", "n": n, "resident_ms": times, "tflops": 2 * n**3 / times["median"] / 1e9,
            "kernel": session.plan().rows[0].kernel,
        }))  # fmt: skip


async def resident(session, feed, seconds):
    """Milliseconds of a run whose inputs and outputs stay on the GPU, begun without waiting: one for each round."""
    device = await session.host.gpu()
    sources = {info.name: await placed(feed[info.name], info) for info in session.inputs}
    runs, times = 4, []
    while True:
        begin = js.performance.now()
        for _ in range(runs):
            kept = await session.run_on_gpu(sources)
            for tensor in kept.values():
                tensor.close()
        await device.idle()
        spent = js.performance.now() - begin
        if spent >= seconds * 1e3 / ROUNDS:
            times.append(spent / runs)
            if len(times) == ROUNDS:
                return times
        else:
            runs *= 2


async def placed(data, info):
    """The data as a tensor on the GPU."""
    graph = webinfer.GraphBuilder("upload")
    graph.output(graph.node("identity", graph.input("x", info.shape)), "y")
    with await webinfer.load(graph, backend="webgpu", strict=True) as upload:
        return (await upload.run_on_gpu(data))["y"]


async def timed(work, seconds):
    """Milliseconds of single runs."""
    times, end = [], js.performance.now() + seconds * 1e3
    while js.performance.now() < end or len(times) < 3:
        begin = js.performance.now()
        await work()
        times.append(js.performance.now() - begin)
    return times


async def in_flight(session, feed, seconds):
    """Milliseconds a run, inputs written and results read back, several runs under way."""
    count, end = 0, js.performance.now() + seconds * 1e3

    async def lane():
        nonlocal count
        while js.performance.now() < end:
            await session.run(feed)
            count += 1

    begin = js.performance.now()
    await asyncio.gather(*(lane() for _ in range(LANES)))
    return (js.performance.now() - begin) / count


def spread(times):
    """Median, least and number."""
    ordered = sorted(times)
    return {"median": ordered[len(ordered) // 2], "min": ordered[0], "samples": len(ordered)}
