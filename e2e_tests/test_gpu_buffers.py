"""Runs that overlap and results that stay on the GPU, as a Python program in the page's worker uses them."""

from __future__ import annotations

from typing import Any

from e2e_tests.pages import DemoPage

START = """
import asyncio, json, js, random
from array import array
import webinfer

def image(seed):
    source = random.Random(seed)
    return array("f", (source.random() for _ in range(128 * 128 * 3)))

def bits(outputs):
    return {name: tensor.tobytes() for name, tensor in outputs.items()}
"""
OVERLAP = """
async def test():
    with await webinfer.load("blazeface_short_range", backend="webgpu", strict=True) as session:
        alone = [bits(await session.run(image(i))) for i in range(5)]
        together = await asyncio.gather(*(session.run(image(i)) for i in range(5)))
        gave_up = asyncio.create_task(session.run(image(0)))
        await asyncio.sleep(0)
        gave_up.cancel()
        after = bits(await session.run(image(4)))
        arrays = [js.Float32Array.new(js.Array.from_(image(i).tolist())) for i in range(5)]
        typed = [bits(await session.run(array)) for array in arrays]
        typed += map(bits, await asyncio.gather(*(session.run(array) for array in arrays)))
        errors = []
        for wrong in (js.Int32Array.new(arrays[0].length), js.Float32Array.new(arrays[0].length - 1)):
            try:
                await session.run(wrong)
            except webinfer.InputError as error:
                errors.append(str(error))
        return {
            "typed": typed == [*alone, *alone] and bits(await session.run(arrays[0])) == alone[0],
            "errors": errors,
            "same": [bits(outputs) == want for outputs, want in zip(together, alone)],
            "different": len({str(sorted(want.items())) for want in alone}),
            "cancelled": (await asyncio.gather(gave_up, return_exceptions=True))[0].__class__.__name__,
            "after": after == alone[4],
        }
"""
SHARED = """
async def test():
    adapter = await js.navigator.gpu.requestAdapter()
    device = await adapter.requestDevice()
    webinfer.use_gpu(device)
    try:
        session = await webinfer.load("blazeface_short_range", backend="webgpu", strict=True)
    finally:
        webinfer.use_gpu(None)
    make = js.testTools.make
    usage = js.GPUBufferUsage.COPY_SRC | js.GPUBufferUsage.COPY_DST
    pixels = js.Uint8Array.new(js.Array.from_(memoryview(image(3)).cast("B").tolist()))
    source = make(device, pixels, usage)
    want = bits(await session.run(image(3)))
    kept = await session.run_on_gpu(source)
    read = {name: (await tensor.read()).tobytes() for name, tensor in kept.items()}
    name = next(iter(kept))
    by_hand = (await js.testTools.copy(device, kept[name].buffer, kept[name].nbytes)).to_bytes()
    errors = []
    small = make(device, js.Uint8Array.new(16), usage)
    for value in (small, kept[name]):
        try:
            await session.run(value)
        except webinfer.InputError as error:
            errors.append(str(error))
    for tensor in kept.values():
        tensor.close()
    try:
        await kept[name].read()
    except webinfer.ClosedError as error:
        errors.append(str(error))
    with await webinfer.load("blazeface_short_range", backend="wasm") as other:
        for work in (other.run(source), other.run_on_gpu(image(3))):
            try:
                await work
            except webinfer.InputError as error:
                errors.append(str(error))
    again = bits(await session.run(source))
    session.close()
    await device.queue.onSubmittedWorkDone()  # the page's device outlives the session
    return {"read": read == want, "by_hand": by_hand == want[name], "again": again == want, "errors": errors}
"""
TOOLS = """() => {
  self.testTools = {
    make(device, bytes, usage) {
      const buffer = device.createBuffer({ size: bytes.length, usage });
      device.queue.writeBuffer(buffer, 0, bytes);
      return buffer;
    },
    async copy(device, source, size) {
      const copy = device.createBuffer({ size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
      const encoder = device.createCommandEncoder();
      encoder.copyBufferToBuffer(source, 0, copy, 0, size);
      device.queue.submit([encoder.finish()]);
      await copy.mapAsync(GPUMapMode.READ);
      return new Uint8Array(copy.getMappedRange()).slice();
    },
  };
}"""


def in_worker(page: DemoPage, code: str) -> Any:
    """What the program's `test()` returns, run by the Python of the page's engine."""
    page.wait_until_ready()
    page.worker.evaluate(TOOLS)
    return page.python(f"{START}{code}\njson.dumps(await test())")


def test_overlapping_runs_do_not_mix(face_page: DemoPage) -> None:
    found = in_worker(face_page, OVERLAP)
    kind, length = found.pop("errors")
    assert "int32, needs float32" in kind
    assert "has 196604 bytes, needs 196608" in length
    assert found == {"typed": True, "same": [True] * 5, "different": 5, "cancelled": "CancelledError", "after": True}


def test_buffers_are_shared_with_a_device_of_the_page(face_page: DemoPage) -> None:
    found = in_worker(face_page, SHARED)
    assert found["read"]
    assert found["by_hand"]
    assert found["again"]
    small, shape, closed, given, kept = found["errors"]
    assert "16 bytes, needs 196608" in small
    assert "needs float32 (1, 128, 128, 3)" in shape
    assert "closed" in closed
    assert "read it first" in given
    assert "only on webgpu" in kept
