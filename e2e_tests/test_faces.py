"""A face is found in the sample photo, on every backend, and the page tells how."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Route

from build_scripts.paths import MODELS
from e2e_tests.litert_judge import litert_face
from e2e_tests.pages import DemoPage, overlap

Demo = Callable[..., DemoPage]
KEYPOINTS = {"left_eye", "right_eye", "nose_tip", "mouth", "left_ear", "right_ear"}
# Where eyes, nose and mouth are in the photo by eye, to within PIXELS: an independent look at the truth.
SEEN = {"right_eye": (202, 101), "left_eye": (246, 104), "nose_tip": (223, 127), "mouth": (222, 145)}
PIXELS = 8
EDGE = 6  # pixels by which lines and the dots on the ears reach over the box
MEMORY = "**/assets/snapshot/*"  # of Python, without which nothing but downloads goes on
results: dict[str, dict] = {}


def _answer(page: DemoPage, held: list[Route]) -> None:
    """Has the server answer requests that were held back, and later ones."""
    page.mended = True
    for route in held:
        route.continue_()


@pytest.mark.parametrize("backend", ["wasm", "webgpu"])
def test_the_face_in_the_sample_photo_is_found(demo: Demo, backend: str) -> None:
    result = demo(f"?backend={backend}").wait_for_result()
    assert result["backend"] == backend, result["reason"]
    assert len(result["faces"]) == 1
    face = result["faces"][0]
    assert face["score"] > 0.8
    assert set(face["keypoints"]) == KEYPOINTS
    for name, (x, y) in SEEN.items():
        assert face["keypoints"][name] == pytest.approx((x, y), abs=PIXELS), name
    assert all(time >= 0 for time in result["times"].values())
    assert result["times"]["infer_ms"] > 0
    results[backend] = result


def test_the_backends_agree(demo: Demo) -> None:
    for backend in {"wasm", "webgpu"} - set(results):
        results[backend] = demo(f"?backend={backend}").wait_for_result()
    one, other = (results[backend]["faces"][0] for backend in ("wasm", "webgpu"))
    assert overlap(one["box"], other["box"]) >= 0.98
    assert one["score"] == pytest.approx(other["score"], abs=0.01)


@pytest.mark.parametrize("backend", ["wasm", "webgpu"])
def test_the_box_is_that_of_a_detector_on_litert_s_outputs(demo: Demo, photo: Path, backend: str) -> None:
    pytest.importorskip("ai_edge_litert")
    model = MODELS / "face_detection_short_range.tflite"
    box, score = litert_face(model, photo)
    result = results.get(backend) or demo(f"?backend={backend}").wait_for_result()
    face = result["faces"][0]
    print(f"{backend}: IoU with LiteRT {overlap(face['box'], box):.4f}, score {face['score']:.4f} and {score:.4f}")
    assert overlap(face["box"], box) >= 0.98
    assert face["score"] == pytest.approx(score, abs=0.01)


def test_auto_runs_and_says_why(demo: Demo) -> None:
    page = demo()
    result = page.wait_for_result()
    assert result["backend"] in ("wasm", "webgpu")
    assert result["reason"].startswith(f"auto chose {result['backend']}: ")
    assert page.text("#backend") == f"Runs on {result['reason'].removeprefix('auto chose ')}"


def test_the_backend_can_be_changed_while_the_page_is_open(demo: Demo) -> None:
    page = demo("?backend=wasm")
    first = page.wait_for_result()
    page.select_backend("WebGPU")
    second = page.wait_for_result(after=first["count"])
    assert (first["backend"], second["backend"]) == ("wasm", "webgpu")
    assert overlap(first["faces"][0]["box"], second["faces"][0]["box"]) >= 0.98


def test_the_photo_is_there_before_the_engine(demo: Demo) -> None:
    held: list[Route] = []
    page = demo("?backend=wasm", broken=(MEMORY, held.append))
    page.page.locator("#sample").evaluate("(image) => image.decode()")
    assert page.page.locator("#sample").is_visible()
    assert page.result is None
    assert page.page.locator("#progress").is_visible()
    _answer(page, held)
    page.wait_for_result()
    assert page.page.locator("#progress").is_hidden()


def test_what_is_done_before_the_page_listens_is_done_when_it_does(demo: Demo) -> None:
    page = demo("?backend=wasm", wait_until="commit", broken=("**/engine_worker.js", lambda route: None))
    page.page.locator("#backends [value=webgpu]").check(force=True)
    page.wait_for("the address", lambda: "backend=webgpu" in page.page.url)
    assert page.page.locator("#backends [value=webgpu]").is_checked()


def test_loading_shows_bytes_and_stages(demo: Demo) -> None:
    held: list[Route] = []
    page = demo("?backend=wasm", broken=(MEMORY, held.append))
    page.wait_for("megabytes", lambda: " MB" in page.text("#progress-text"))
    _answer(page, held)
    page.wait_for_result()
    page.wait_for("half of the bar", lambda: page.page.evaluate("document.getElementById('progress').value") > 0.5)
    stages = page.page.evaluate("[...document.querySelectorAll('#stages li')].map((row) => row.textContent)")
    assert {"Python", "Engine", "Kernels", "Model"} <= set(stages)
    page.wait_for("a tick at every stage", lambda: page.page.locator("#stages li:not(.done)").count() == 0)


def test_a_second_visit_works_from_the_cache(demo: Demo) -> None:
    page = demo("?backend=wasm")
    before = page.wait_for_result()
    page.page.reload()
    after = page.wait_for_result()
    assert after["faces"][0]["box"] == pytest.approx(before["faces"][0]["box"])
    assert after["count"] == 1


def test_the_result_is_readable_without_seeing_the_picture(face_page: DemoPage) -> None:
    page, result = face_page, face_page.wait_for_result()
    page.open_tools()
    status = page.page.get_by_role("status").filter(has_text="Faces found")
    assert status.inner_text() == "Faces found: 1"
    box = result["faces"][0]["box"]
    assert f"{round(box['width'])} × {round(box['height'])}" in page.text("#things")
    for name in ("prepare", "infer", "decode"):
        assert float(page.text(f"#{name}")) == pytest.approx(result["times"][f"{name}_ms"], abs=0.051)


DRAWN = """() => {
  const canvas = document.getElementById("overlay");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const xs = [], ys = [];
  for (let i = 3; i < data.length; i += 4) {
    if (data[i]) { xs.push(((i - 3) / 4) % canvas.width); ys.push(Math.floor((i - 3) / 4 / canvas.width)); }
  }
  if (!xs.length) return null; // nothing is drawn yet
  const scale = Math.min(canvas.width, canvas.height) / 512; // the photo is 512 x 512
  const left = (canvas.width - 512 * scale) / 2, top = (canvas.height - 512 * scale) / 2;
  const least = (v) => v.reduce((a, b) => Math.min(a, b)), most = (v) => v.reduce((a, b) => Math.max(a, b));
  const crisp = canvas.width === 2 * canvas.clientWidth;
  const [right, bottom] = [(most(xs) - left) / scale, (most(ys) - top) / scale];
  return { crisp, left: (least(xs) - left) / scale, right, bottom };
}"""


def test_boxes_are_drawn_over_the_face(demo: Demo) -> None:
    page = demo("?backend=wasm", device_scale_factor=2)
    box = page.wait_for_result()["faces"][0]["box"]
    drawn = page.wait_for("box", lambda: page.page.evaluate(DRAWN))
    assert drawn["crisp"]
    assert drawn["left"] == pytest.approx(box["left"], abs=EDGE)
    assert drawn["right"] == pytest.approx(box["left"] + box["width"], abs=EDGE)
    assert drawn["bottom"] == pytest.approx(box["top"] + box["height"], abs=EDGE)
