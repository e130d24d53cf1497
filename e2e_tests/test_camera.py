"""The webcam: faces in frames, frames per second, and a readable reason when there is no camera."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser

from e2e_tests.pages import DemoPage

Demo = Callable[..., DemoPage]
HELD = """() => ({
  objects: pyodide.runPython("import gc; gc.collect(); len(gc.get_objects())"),
  bytes: pyodide._module.HEAP8.length,
})"""
LISTEN = """() => {
  self.heard = [];
  const { postMessage } = Worker.prototype;
  const known = new WeakSet();
  Worker.prototype.postMessage = function (message, ...more) {
    if (!known.has(this)) {
      known.add(this);
      this.addEventListener("message", ({ data }) => data.type === "result" && self.heard.push([data.type, data.id]));
    }
    if (message.type === "detect") self.heard.push([message.type, message.id]);
    return postMessage.call(this, message, ...more);
  };
}"""
# Memory grows by a fifth at a time, and a fragmented heap may need one such growth at any moment. A leak of one crop of
# 128 x 128 x 3 floats a frame would need three.
ONE_GROWTH = 1.25
CAMERA = "document.getElementById('video').srcObject?.getVideoTracks()[0].label"
CAMERAS_STOPPED = "document.getElementById('video').srcObject === null"


def _start(page: DemoPage) -> None:
    page.page.get_by_role("button", name="Start the camera").click()
    page.wait_for("camera", lambda: page.page.locator("#video").is_visible())


def _wait_for_frames(page: DemoPage, number: int) -> dict:
    count = page.count
    return page.wait_for_result(after=count + number)


def test_frames_are_searched_and_counted(demo: Demo, browser_with_camera: Browser) -> None:
    page = demo("?backend=wasm", browser=browser_with_camera)
    page.wait_for_result()
    _start(page)
    result = _wait_for_frames(page, 10)
    assert result["source"] == "camera"
    assert result["image"]["width"] >= 320
    page.wait_for("frames per second", lambda: page.text("#fps") != "–" and float(page.text("#fps")) > 1)


def test_the_face_before_the_camera_is_found(demo: Demo, browser_that_films_the_photo: Browser) -> None:
    page = demo("?backend=wasm", browser=browser_that_films_the_photo)
    page.wait_for_result()
    _start(page)
    result = _wait_for_frames(page, 3)
    assert result["source"] == "camera"
    assert len(result["faces"]) == 1
    width, height = result["image"]["width"], result["image"]["height"]
    x, y = result["faces"][0]["keypoints"]["nose_tip"]
    assert 0.35 < x / width < 0.55
    assert 0.15 < y / height < 0.4


def test_webgpu_searches_camera_frames(demo: Demo, browser_that_films_the_photo: Browser) -> None:
    page = demo("?backend=webgpu", browser=browser_that_films_the_photo)
    assert page.wait_for_result()["backend"] == "webgpu"
    _start(page)
    assert len(_wait_for_frames(page, 2)["faces"]) == 1


@pytest.mark.parametrize("frames_on_the_gpu", [True, False])
def test_frames_overlap_on_webgpu_and_come_back_in_order(
    demo: Demo,
    browser_that_films_the_photo: Browser,
    browser_with_frames_on_the_gpu: Browser,
    frames_on_the_gpu: bool,
) -> None:
    browser = browser_with_frames_on_the_gpu if frames_on_the_gpu else browser_that_films_the_photo
    page = demo("?backend=webgpu", browser=browser)
    page.wait_for_result()
    page.page.evaluate(LISTEN)
    _start(page)
    result = _wait_for_frames(page, 12)
    assert (result["backend"], len(result["faces"])) == ("webgpu", 1)
    # Read while the camera runs: stopping it sends the sample after the frames that are still on their way.
    log = page.page.evaluate("self.heard")
    page.page.get_by_role("button", name="Stop the camera").click()
    sent, answered = ([id for kind, id in log if kind == name] for name in ("detect", "result"))
    assert sent[: len(answered)] == answered
    flying, most = 0, 0
    for kind, _ in log:
        flying += 1 if kind == "detect" else -1
        most = max(most, flying)
    assert most == 2


def test_frames_leave_nothing_behind(demo: Demo, browser_that_films_the_photo: Browser) -> None:
    page = demo("?backend=wasm", browser=browser_that_films_the_photo)
    page.wait_for_result()
    engine = page.worker
    _start(page)
    _wait_for_frames(page, 20)
    before = engine.evaluate(HELD)
    _wait_for_frames(page, 100)
    after = engine.evaluate(HELD)
    assert after["bytes"] <= ONE_GROWTH * before["bytes"]
    assert after["objects"] - before["objects"] < 70  # a leak of one object a frame would be 100


def test_the_camera_can_be_changed_stopped_and_started_again(demo: Demo, browser_with_camera: Browser) -> None:
    page = demo("?backend=wasm", browser=browser_with_camera)
    page.wait_for_result()
    _start(page)
    _wait_for_frames(page, 2)
    choice = page.page.get_by_role("combobox", name="Camera")
    page.wait_for("names of cameras", choice.is_visible)
    assert choice.locator("option").all_inner_texts() == ["fake_device_0", "fake_device_1"]
    choice.select_option("fake_device_1")
    page.wait_for("the other camera", lambda: page.page.evaluate(CAMERA) == "fake_device_1")
    _wait_for_frames(page, 2)
    page.page.get_by_role("button", name="Stop the camera").click()
    result = page.wait_for("sample", lambda: page.result if page.result["source"] == "sample" else None)
    assert len(result["faces"]) == 1
    assert page.page.evaluate(CAMERAS_STOPPED)
    assert choice.is_hidden()
    _start(page)
    _wait_for_frames(page, 2)


def test_a_missing_camera_is_said(demo: Demo) -> None:
    page = demo("?backend=wasm")
    page.page.get_by_role("button", name="Start the camera").click()
    assert "No camera was found" in page.wait_for_error("no-camera")["message"]
    assert page.page.locator("#sample").is_visible()


def test_a_forbidden_camera_is_said(demo: Demo, browser_that_denies_the_camera: Browser) -> None:
    page = demo("?backend=wasm", browser=browser_that_denies_the_camera)
    page.page.get_by_role("button", name="Start the camera").click()
    assert "not allowed to use the camera" in page.wait_for_error("camera-denied")["message"]
