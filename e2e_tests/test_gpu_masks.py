"""Masks that stay on the GPU: the same pixels as by way of memory, and nothing is read back."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

from playwright.sync_api import Browser
from tests.docs.pages import blocks_of

from build_scripts.paths import WEB
from e2e_tests.pages import DemoPage
from e2e_tests.test_gpu_buffers import in_worker

Demo = Callable[..., DemoPage]
SOURCES = """async (photo) => {
  const bitmap = await createImageBitmap(await (await fetch(photo)).blob(), { resizeWidth: 200, resizeHeight: 160 });
  self.testFrame = () => new VideoFrame(bitmap, { timestamp: 0 });
  const small = await createImageBitmap(bitmap, { resizeWidth: 96, resizeHeight: 64 });
  self.testSmall = () => new VideoFrame(small, { timestamp: 0 });
  self.testCounts = {};
  for (const [owner, name] of [[GPUBuffer, "mapAsync"], [GPUQueue, "submit"]]) {
    const own = owner.prototype[name];
    owner.prototype[name] = function (...given) {
      self.testCounts[name] = (self.testCounts[name] ?? 0) + 1;
      return own.apply(this, given);
    };
  }
  self.testPixels = (bitmap) => {
    const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
    context.drawImage(bitmap, 0, 0);
    return context.getImageData(0, 0, bitmap.width, bitmap.height).data;
  };
}"""
MASKS = """
import js, json
from webinfer.tasks import MaskLook, SelfieSegmenter

WHITE, BLACK = (1, 1, 1, 1), (0, 0, 0, 1)

def counted():
    counts = js.testCounts.to_py()
    js.testCounts = js.Object.new()
    return {"read": counts.get("mapAsync", 0), "submitted": counts.get("submit", 0)}

def pixels(bitmap):
    data = js.testPixels(bitmap)
    bitmap.close()
    return bytes(data.to_py())

async def painted(painter, look):
    while True:  # until the pipeline of pictures is made
        bitmap = await painter.paint(js.testFrame(), look)
        if bitmap:
            return pixels(bitmap)
        await asyncio.sleep(0.05)

async def test():
    grey = webinfer.GraphBuilder("grey")  # a model whose mask is how light each pixel is
    grey.output(grey.node("reduce_mean", grey.input("x", (1, 256, 256, 3)), axes=(3,), keep_dims=True), "mask")
    segmenter = await SelfieSegmenter.create(grey, backend="webgpu")
    painter = await segmenter.painter()
    stencil = await painted(painter, MaskLook(front=WHITE, back=BLACK))
    mask = await segmenter.segment(js.testFrame())
    want = [min(1, max(0, 2 * value - 0.5)) * 255 for value in mask.values]
    worst = max(abs(a - b) for a, b in zip(stencil[::4], want, strict=True))
    plain = await painted(painter, MaskLook())
    frame = pixels(await js.createImageBitmap(js.testFrame()))
    clear = max(abs(a - b) for a, b in zip(plain, frame, strict=True))
    cut = await painted(painter, MaskLook(cut=True))
    alpha = max(abs(a - b) for a, b in zip(cut[3::4], want, strict=True))
    blurred = await painted(painter, MaskLook(blurred=True))
    people = [i for i, value in enumerate(want) if value == 255]
    behind = [i for i, value in enumerate(want) if value == 0]
    moved = lambda places: sum(abs(blurred[4 * i] - frame[4 * i]) for i in places) / len(places)

    asked, tell = [], painter.handle.sized
    def sized(*given):
        asked.append(given)
        return tell(*given)
    painter.handle.sized = sized
    counted()
    for _ in range(3):
        (await painter.paint(js.testFrame(), MaskLook(blurred=True))).close()
    frames = counted() | {"asked": len(asked)}
    (await painter.paint(js.testSmall(), MaskLook(blurred=True))).close()
    small = len(asked)

    counted()
    kept = await segmenter.segment_on_gpu(js.testFrame())
    before = counted()
    read = await kept.read()
    after = counted()
    kept.close()
    same = (read.width, read.height) == (mask.width, mask.height) and bytes(read.values) == bytes(mask.values)
    painter.close()
    segmenter.close()
    return {
        "stencil": worst, "plain": clear, "cut": alpha, "people": moved(people), "behind": moved(behind),
        "frames": frames, "small": small, "kept": before, "read": after, "same": same,
    }
"""
PIXEL = """([x, y]) => {
  const canvas = document.getElementById("overlay");
  return [...canvas.getContext("2d").getImageData(canvas.width * x, canvas.height * y, 1, 1).data];
}"""
COUNT_ENTRIES = """
from webinfer.page.worker import EngineWorker

EngineWorker.frames = 0

async def detect(self, *given, detect=EngineWorker.detect):
    EngineWorker.frames += 1
    return await detect(self, *given)

async def warm_up(self, image):  # empty pictures in the pauses, which would be counted
    pass

EngineWorker.detect, EngineWorker.warm_up = detect, warm_up
"""


def test_frames_are_painted_as_their_masks_say_and_nothing_is_read_back(
    demo: Demo, browser_with_frames_on_the_gpu: Browser
) -> None:
    page = demo("?backend=webgpu&effect=colour&colour=%23ff0000", path="/segmentation",
                browser=browser_with_frames_on_the_gpu)  # fmt: skip
    count = page.wait_for_result()["count"]
    worker = page.worker
    worker.evaluate(SOURCES, page.page.evaluate("document.getElementById('sample').src"))
    worker.evaluate("(code) => pyodide.runPython(code)", COUNT_ENTRIES)
    found = in_worker(page, MASKS)
    # Bytes are whole numbers; where a frame's colours end sharply a texture and memory differ (tasks/gpu_image.py).
    assert max(found["stencil"], found["cut"]) <= 1.5
    assert found["plain"] <= 2
    assert found["people"] < 0.5 < 4 < found["behind"]
    assert found["frames"] == {"read": 0, "submitted": 3, "asked": 0}
    assert found["small"] == 1
    assert found["kept"] == {"read": 0, "submitted": 1}
    assert found["read"]["read"] == 1
    assert found["same"]

    page.page.get_by_role("button", name="Start the camera").click()
    page.wait_for("frames", lambda: "values" not in page.result["masks"][0])
    worker.evaluate("self.testCounts = {}")
    before = worker.evaluate("pyodide.runPython('EngineWorker.frames')")
    result = page.wait_for_result(page.count + 2)
    assert (result["backend"], result["masks"][0].keys()) == ("webgpu", {"width", "height"})
    assert worker.evaluate("[self.testCounts.mapAsync ?? 0, pyodide.runPython('EngineWorker.frames')]") == [0, before]
    assert page.page.evaluate(PIXEL, [0.3, 0.04])[:3] == [255, 0, 0]
    assert count == 1


def test_the_example_in_the_documentation_paints_a_frame(demo: Demo, browser_with_frames_on_the_gpu: Browser) -> None:
    (block,) = [block for block in blocks_of(WEB / "docs/using.md") if block.kind == "python page"]
    page = demo("?backend=webgpu", path="/segmentation", browser=browser_with_frames_on_the_gpu)
    page.wait_for_result()
    page.worker.evaluate(SOURCES, page.page.evaluate("document.getElementById('sample').src"))
    example = textwrap.indent(block.text, "    ")
    code = (
        f"async def test():\n    frame, picture = js.testFrame(), None\n{example}\n    return picture and picture.width"
    )
    assert in_worker(page, code) in (None, 200)  # None while the shader that takes frames is being compiled
