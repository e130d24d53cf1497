"""Pictures that go straight to the GPU: the same numbers and the same faces as through memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser

from e2e_tests.pages import DemoPage, overlap
from e2e_tests.test_gpu_buffers import in_worker

Demo = Callable[..., DemoPage]

SOURCES = """async (photo) => {
  const bitmap = await createImageBitmap(await (await fetch(photo)).blob());
  const { width, height } = bitmap;
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d");
  context.drawImage(bitmap, 0, 0);
  const data = context.getImageData(0, 0, width, height);
  const film = new Uint8Array((width * height * 3) / 2).fill(128); // grey: what the browser makes of colours is its own
  for (let i = 0; i < width * height; i += 1) film[i] = data.data[4 * i + 1];
  const dim = new OffscreenCanvas(width, height);
  const faint = dim.getContext("2d");
  faint.globalAlpha = 0.5;
  faint.drawImage(bitmap, 0, 0);
  self.testSources = {
    ImageBitmap: bitmap,
    OffscreenCanvas: canvas,
    ImageData: data,
    transparent: dim,
    VideoFrame: new VideoFrame(bitmap, { timestamp: 0 }),
    film: new VideoFrame(film, { format: "I420", codedWidth: width, codedHeight: height, timestamp: 0 }),
    wide: await createImageBitmap(bitmap, { resizeWidth: 1280, resizeHeight: 720 }),
  };
  const later = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  self.testImportsAreSlow = (frames) => (frame) => later(frames.texture(frame) ? 0 : 30);
}"""
KINDS = ("ImageBitmap", "OffscreenCanvas", "ImageData", "transparent", "VideoFrame", "film", "wide")
START = """
import dataclasses, time
from webinfer.tasks.gpu_image import gpu_pictures, place_image
from webinfer.tasks.crop import Border, Crop, Region
from webinfer.tasks.image import Picture, prepare_image, read_image
from webinfer.tasks.workspace import Workspace

KINDS = list(js.Object.keys(js.testSources))

def as_on_hardware(session, border=Border.BLACK):
    pictures = gpu_pictures(session, border)
    pictures.device._device.software = False
    return pictures

async def ready(pictures, image):
    crop = Crop.fit(1, 1, 1, 1)
    for _ in range(600):  # until the pipeline is made, pictures pass through memory
        if (size := pictures.size(image)) is not None:
            tensor = place_image(pictures, image, crop, size, scale=1, offset=0)
            if tensor is not None:
                tensor.close()
                return size
        if "pipeline" not in pictures.refusal:
            break
        await asyncio.sleep(0.05)
    return None
"""
NUMBERS = """
async def brought(frames, frame):
    for _ in range(6):  # each way is timed on three frames
        other = frame.clone()
        await frames.bring(other, js.testImportsAreSlow(frames))
        other.close()
    await frames.bring(frame, None)
    assert frames.texture(frame), "the frame was not brought"

CROPS = {
    "": (lambda size: Crop.fit(*size, 128, 96), Border.BLACK),
    " turned": (lambda size: Crop(Region(280, 60, 128, 96, 0.6435), 128, 96), Border.BLACK),
    " turned, edge goes on": (lambda size: Crop(Region(20, 30, 190, 96, -2.2), 128, 96), Border.EDGE),
}

async def test():
    builder = webinfer.GraphBuilder("copy")
    builder.output(builder.input("x", (1, 96, 128, 3)), "y")
    found = {}
    with await webinfer.load(builder, backend="webgpu", strict=True) as session:
        workspace = Workspace(await session.host.kernels())
        for kind in [*KINDS, "VideoFrame brought", "film brought"]:
            source = getattr(js.testSources, kind.removesuffix(" brought"))
            if kind.endswith("brought"):
                await brought(as_on_hardware(session)._pictures.frames, source)
            for name, (crop_of, border) in CROPS.items():
                pictures = as_on_hardware(session, border)
                if kind == "ImageData":
                    assert pictures.size(source) is None and "ImageData" in pictures.refusal
                    continue
                size = await ready(pictures, source)
                crop = crop_of(size)
                tensor = place_image(pictures, source, crop, size, scale=2 / 255, offset=-1.0)
                assert tensor is not None, f"{kind}: {pictures.refusal}"
                straight = (await session.run(tensor))["y"].tolist()
                tensor.close()
                picture = read_image(source, session.host)
                through = prepare_image(workspace, picture, crop, scale=2 / 255, offset=-1.0, border=border)
                through = through.cast("f").tolist()
                errors = [abs(a - b) for a, b in zip(straight, through)]
                found[kind + name] = [max(errors), sum(errors) / len(errors), max(through) - min(through)]
        workspace.close()
    return found
"""
FACES = """
async def test():
    detector = await webinfer.tasks.FaceDetector.create(backend="webgpu", strict=True)
    size = gpu_pictures(detector.session).size(js.testSources.ImageBitmap)
    default = size, gpu_pictures(detector.session).refusal
    pictures, found = as_on_hardware(detector.session), {}
    first = await detector.detect(js.testSources.ImageBitmap)  # whatever road is open
    for kind in KINDS:
        source, answers = getattr(js.testSources, kind), []
        straight = await ready(pictures, source)
        for detector.straight in (True, False):
            answers.append([dataclasses.asdict(face) for face in await detector.detect(source)])
        found[kind] = [*answers, bool(straight)]
    detector.straight = True
    order = [js.testSources.ImageBitmap, js.testSources.wide, js.testSources.VideoFrame] * 2
    alone = [await detector.detect(source) for source in order]
    together = await asyncio.gather(*(detector.detect(source) for source in order))
    refused = []
    js.testSources.VideoFrame.close()
    js.testSources.ImageBitmap.close()
    for source in (js.testSources.VideoFrame, js.testSources.ImageBitmap, js.Object.new()):
        try:
            await detector.detect(source)
        except webinfer.InputError as error:
            refused.append(str(error))
    after = await detector.detect(js.testSources.wide)
    detector.close()
    mixed, counts = together != alone, [len(first), len(after)]
    return {"default": default, "found": found, "counts": counts, "mixed": mixed, "refused": refused}
"""
COUNT = """() => {
  self.testCounts = { reads: 0, together: 0, submits: 0 };
  let reading = 0;
  let another = () => {};
  const { mapAsync } = GPUBuffer.prototype;
  GPUBuffer.prototype.mapAsync = async function (...given) {
    if (given[0] !== GPUMapMode.READ) return mapAsync.apply(this, given);
    self.testCounts.reads += 1;
    self.testCounts.together = Math.max(self.testCounts.together, ++reading);
    another();
    try {
      await mapAsync.apply(this, given);
      // On a busy machine the next one may be long in coming: who does not wait for this one must be able to begin.
      if (self.testHold && reading === 1) await Promise.race([begun(), later(self.testHold)]);
    } finally {
      reading -= 1;
    }
  };
  const begun = () => new Promise((resolve) => (another = resolve));
  const later = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const { submit } = GPUQueue.prototype;
  GPUQueue.prototype.submit = function (...given) {
    if (given[0].length) self.testCounts.submits += 1; // an empty one only wakes the GPU's process (gpu_wait.js)
    return submit.apply(this, given);
  };
}"""
TRACKED = """
from webinfer.page.worker import EngineWorker
from webinfer.tasks.landmarks import SmoothTrack

async def warm_up(self, image):  # empty pictures in the pauses, which would be counted
    pass

EngineWorker.warm_up = warm_up

def counted():
    counts = js.testCounts.to_py()
    js.testCounts = js.Object.fromEntries(js.Object.entries(js.testCounts).map(lambda row, *_: [row[0], 0]))
    return [counts["submits"], counts["reads"], counts["together"]]

async def test():
    points = webinfer.GraphBuilder("points")  # a model whose landmarks are the first pixels that it sees
    flat = points.node("reshape", points.input("x", (1, 192, 192, 3)), shape=(1, 192 * 192 * 3))
    for name, size in (("points", 3 * 468), ("score", 1)):
        points.output(points.node("slice", flat, starts=(0, 0), sizes=(1, size), steps=(1, 1)), name)
    task = await webinfer.tasks.FaceLandmarker.opened(
        points, backend="webgpu", progress=None, host=webinfer.host.current()
    )
    task.most, task.min_score, found = 2, 0.0, []
    regions = [Region(60 + 90 * i, 80, 70, 70) for i in range(2)]
    for straight in (True, False):
        task.straight = straight
        await ready(gpu_pictures(task.session, task.border), js.testSources.VideoFrame)
        alone = [(await task.run(js.testSources.VideoFrame, region))[0].landmarks.xyz.tolist() for region in regions]
        for count in (1, 2):
            task.most = count
            task._tracked = [(region, SmoothTrack(task._smoothing)) for region in regions[:count]]
            counted()
            js.testHold = 3000
            told = await task.detect_for_video(js.testSources.VideoFrame)
            js.testHold = 0
            numbers = counted()
            found.append([*numbers, [one.landmarks.xyz.tolist() for one in told] == alone[:count]])
    task.close()
    return found
"""
DECODED = """
async def test():
    found = []
    for apart in (False, True):
        detector = await webinfer.tasks.FaceDetector.create(backend="webgpu", strict=True, decode_apart=apart)
        for detector.min_score in (0.5, 0.0, 1.0, 0.5):
            found.append([dataclasses.asdict(face) for face in await detector.detect(js.testSources.ImageBitmap)])
        found.append([list(output.shape) for output in detector.session.outputs])
        detector.close()
    return found
"""


def _in_worker(page: DemoPage, code: str) -> Any:
    page.wait_until_ready()
    worker = page.worker
    worker.evaluate(SOURCES, page.page.evaluate("document.getElementById('sample').src"))
    return in_worker(page, START + code)


def test_both_roads_give_the_same_numbers(demo: Demo, browser_with_frames_on_the_gpu: Browser) -> None:
    found = _in_worker(demo("?backend=wasm", browser=browser_with_frames_on_the_gpu), NUMBERS)
    assert len(found) == 3 * (len(KINDS) + 1)
    for kind, (worst, mean, span) in found.items():
        of_eight_bits = kind.startswith("film")  # from YUV, which the browser turns into RGB in two ways
        assert worst <= (2 * 2 / 255 if of_eight_bits else 1e-4), kind  # of a range of 2
        repeated = of_eight_bits and "edge" in kind  # the rounding of an outermost pixel counts many times
        assert mean <= (2e-3 if repeated else 1e-3), kind
        assert span > 1, kind


@pytest.mark.parametrize("frames_on_the_gpu", [True, False])
def test_both_roads_give_the_same_faces(
    demo: Demo, browser: Browser, browser_with_frames_on_the_gpu: Browser, frames_on_the_gpu: bool
) -> None:
    chosen = browser_with_frames_on_the_gpu if frames_on_the_gpu else browser
    kinds = KINDS if frames_on_the_gpu else ("ImageBitmap", "VideoFrame", "film")  # the others pass here as there
    answer = _in_worker(demo("?backend=webgpu", browser=chosen), f"KINDS = {kinds}\n{FACES}")
    through_memory = [kind for kind, (_, _, went_straight) in answer["found"].items() if not went_straight]
    assert through_memory == (["ImageData"] if frames_on_the_gpu else ["VideoFrame", "film"])
    for kind, (straight, through, _) in answer["found"].items():
        assert len(straight) == len(through) == 1, kind
        assert overlap(straight[0]["box"], through[0]["box"]) >= 0.98, kind
        assert abs(straight[0]["score"] - through[0]["score"]) < 0.01, kind
    assert answer["default"][0] is None
    assert "software" in answer["default"][1]
    assert answer["counts"] == [1, 1]
    assert not answer["mixed"]
    assert len(answer["refused"]) == 3


def test_a_frame_of_what_is_followed_is_one_submit_and_one_readback_each_side_by_side(
    demo: Demo, browser_with_frames_on_the_gpu: Browser
) -> None:
    page = demo("?backend=wasm", browser=browser_with_frames_on_the_gpu)  # nothing but the test's own is counted
    page.wait_for_result()
    page.worker.evaluate(COUNT)
    assert _in_worker(page, TRACKED) == [[1, 1, 1, True], [2, 2, 2, True], [1, 1, 1, True], [2, 2, 1, True]]


def test_decoding_in_the_plan_and_apart_give_the_same_faces(face_page: DemoPage) -> None:
    answers = _in_worker(face_page, DECODED)
    (*inside, few), (*apart, raw) = answers[:5], answers[5:]
    assert few == [[1, 100, 17]]
    assert sorted(raw) == [[1, 896, 1], [1, 896, 16]]
    assert [len(faces) for faces in inside] == [len(faces) for faces in apart]
    assert [len(faces) > 50 for faces in inside] == [False, True, False, False]
    for one, other in zip(inside, apart, strict=True):
        for here, there in zip(one[:1], other[:1], strict=True):
            assert here["score"] == pytest.approx(there["score"], abs=1e-5)
            assert here["box"] == pytest.approx(there["box"], abs=1e-2)
            assert here["keypoints"]["mouth"] == pytest.approx(there["keypoints"]["mouth"], abs=1e-2)


def test_frames_that_lose_the_device_pass_through_memory_from_then_on(
    demo: Demo, browser_that_loses_frames: Browser
) -> None:
    page = demo("?backend=webgpu", browser=browser_that_loses_frames)
    page.wait_for_result()
    page.page.get_by_role("button", name="Start the camera").click()
    page.wait_for_error("device-lost")
    after = page.wait_for("frames", lambda: page.result if page.result["source"] == "camera" else None)["count"]
    result = page.wait_for_result(after + 5)
    assert (result["backend"], len(result["faces"])) == ("webgpu", 1)
    assert "the GPU was lost 1 time" in result["reason"]
    page.complaints.clear()  # what was lost
