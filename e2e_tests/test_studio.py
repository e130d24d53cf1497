"""Every page of the site: right results on samples, home, models on demand, files, background, addresses."""

from __future__ import annotations

import base64
import csv
import json
from collections.abc import Callable
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Browser

from build_scripts.paths import ROOT, SITE
from e2e_tests.pages import DemoPage, overlap
from server.settings import Settings
from server.studio import Demo, read_studio

Open = Callable[..., DemoPage]
STUDIO = read_studio(Settings().tables)
RECORDED = json.loads((ROOT / "web/static/recorded.json").read_text())
PIXEL = """([x, y]) => {
  const canvas = document.getElementById("overlay");
  return [...canvas.getContext("2d").getImageData(canvas.width * x, canvas.height * y, 1, 1).data];
}"""


def files_of(demo: Demo) -> set[str]:
    """The files of the models that a demo starts with, which this site lacks."""
    manifest = json.loads((SITE / "manifest.json").read_text())
    models = manifest["page"]["models"]
    return {file for name in (demo.model, *demo.also) if name for file in models[name]} - set(manifest["assets"])


@pytest.mark.parametrize("row", STUDIO.demos, ids=lambda row: row.slug)
def test_the_sample_s_result_is_the_one_that_the_home_page_shows(demo: Open, row: Demo) -> None:
    if not row.model:
        pytest.skip("this page waits for a model of the user's: test_own_models.py")
    if missing := files_of(row):
        pytest.skip(f"fetched when the demo is opened, and not here yet: {', '.join(sorted(missing))}")
    page = demo("?backend=wasm", path=row.address)
    result = page.wait_for_result()
    (name,) = (key for key, value in result.items() if isinstance(value, list))
    found, wanted = result[name], RECORDED[row.address]["found"]
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        if "box" in other:
            assert overlap(one["box"], other["box"]) > 0.85
        if "landmarks" in other:
            pairs = zip(one["landmarks"]["xyz"], other["landmarks"]["xyz"], strict=True)
            sure = other["landmarks"]["confidences"]  # of points that nobody sees the model tells anything
            seen = [i % 3 < 2 and (not sure or sure[2 * (i // 3)] >= 0.5) for i in range(len(one["landmarks"]["xyz"]))]
            places = [abs(a - b) for (a, b), counts in zip(pairs, seen, strict=True) if counts]
            assert sum(places) / len(places) < 2  # pixels; recorded ones are whole
        for name in {"text", "label"} & {*other}:
            assert one[name] == other[name]
        if "start" in other:
            assert [one["start"], one["end"]] == pytest.approx([other["start"], other["end"]], abs=0.05)
    rows = page.page.locator("#things tbody tr")
    assert rows.count() == len(found)
    assert "_" not in " ".join(rows.all_inner_texts())  # names of classes in words; files keep the model's own
    page.page.set_viewport_size({"width": 360, "height": 780})
    assert page.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    with page.page.expect_download() as download:
        page.page.get_by_role("button", name="Download picture" if result["image"] else "Download drawing").click()
    picture = Image.open(download.value.path())
    size = result["image"] or {"width": 1200, "height": 480}
    assert picture.size == (size["width"], size["height"])
    with page.page.expect_download() as download:
        page.page.get_by_role("button", name="Download CSV").click()
    lines = list(csv.DictReader(Path(download.value.path()).read_text().splitlines()))
    assert len(lines) == len(found)
    for line, one in zip(lines, found, strict=True):
        if "box" in one:
            assert float(line["box.left"]) == pytest.approx(one["box"]["left"], abs=0.01)


def test_the_home_page_draws_what_was_found_and_says_what_ran_here(
    demo: Open, browser_that_films_the_photo: Browser
) -> None:
    gone = ("**/*.webinfer", lambda route: route.fulfill(status=503))
    page = demo("?backend=wasm", browser=browser_that_films_the_photo, broken=gone)
    page.wait_for_result()
    page.page.get_by_role("navigation", name="Site").get_by_role("link", name="Demos").click()
    cards = page.page.locator("[data-demo]")
    page.wait_for("all cards", lambda: cards.count() == len(STUDIO.demos))
    card = page.page.locator("[data-demo='/face-detection']")
    page.wait_for("speed", lambda: "ms here on wasm" in card.inner_text())
    drawn = """(canvas) => canvas.width > 0 &&
      canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value)"""
    page.wait_for("drawing", lambda: card.locator("canvas").evaluate(drawn))
    loaded = "(images) => images.every(({ complete, naturalWidth }) => complete && naturalWidth)"
    page.wait_for("samples below the window", lambda: page.page.locator(".shot img").evaluate_all(loaded))
    lowest = page.page.locator("[data-demo='/text'] canvas")
    page.wait_for("drawing below the window", lambda: lowest.evaluate(drawn))
    page.wait_for("recorded faces", lambda: page.page.locator(".hero-shot canvas").evaluate(drawn))
    install = page.page.locator("#install").inner_text()
    wheel = install.removeprefix('pip install "webinfer[native,pillow] @ ').rstrip().removesuffix('"')
    answer = page.page.request.get(wheel)
    assert answer.ok
    assert answer.body().startswith(b"PK")
    sizes = page.page.locator("[data-size]").all_inner_texts()
    assert all(size.endswith(" MB") or size == "needs your own model file" for size in sizes), (
        sizes
    )  # what is downloaded, whether it is here or has to be fetched
    detects_live(page)
    card.get_by_role("link").click()
    assert page.page.url.endswith("/face-detection")


def detects_live(page: DemoPage) -> None:
    """The face detector of the home page, whose package does not come at first: its error, pictures, and the camera."""
    box, status = page.page.locator("#live"), page.page.locator("#live-status")

    def told(name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(box.get_attribute(f"data-{name}") or "{}")
        return found

    def look(press: str, source: str, faces: int) -> None:
        page.page.get_by_role("button", name=press).click()
        page.wait_for(
            f"{faces} faces after {press!r}",
            lambda: (told("result").get("source"), len(told("result").get("found", ()))) == (source, faces),
        )

    page.wait_for("error", lambda: told("error").get("code") == "network")
    assert "The face detector could not start" in status.inner_text()
    page.complaints.clear()  # the 503
    page.mended = True
    look("Try again", "sample", 4)
    hero = RECORDED["hero"]["found"]
    for one, known in zip(told("result")["found"], hero, strict=True):
        assert one["box"]["left"] == pytest.approx(known["box"]["left"], abs=2)
    page.wait_for("words", lambda: status.inner_text().startswith("4 faces in "))
    assert told("error") == {}
    assert page.page.get_by_role("button", name="Try again").is_hidden()
    look("Next picture", "sample", 2)
    look("Camera", "camera", 1)
    assert "stay on this device" in status.inner_text()
    look("Camera", "sample", 2)
    fetched: list[str] = []
    page.page.on("request", lambda request: fetched.append(request.url))
    page.page.emulate_media(reduced_motion="reduce")
    page.page.reload(wait_until="load")
    button = page.page.get_by_role("button", name="Detect faces here")
    page.wait_for("offer", button.is_visible)
    assert not [url for url in fetched if "/packages/" in url]
    look("Detect faces here", "sample", 4)


def test_the_background_is_blurred_coloured_or_shown_as_the_address_says(demo: Open) -> None:
    page = demo("?backend=wasm&effect=colour&colour=%23ff0000", path="/segmentation")
    page.wait_for_result()
    corner, person = [0.25, 0.04], [0.5, 0.75]  # of the stage: the photo lies in its middle
    page.wait_for("colour", lambda: page.page.evaluate(PIXEL, [0.5 - 0.2, 0.04])[:3] == [255, 0, 0])
    assert page.page.evaluate(PIXEL, person)[3] < 40
    page.page.get_by_role("radio", name="Mask").check(force=True)
    assert "effect=mask" in page.page.url
    assert page.page.evaluate(PIXEL, person)[3] > 100
    assert page.page.evaluate(PIXEL, corner)[3] < 40
    page.page.get_by_role("radio", name="Blur").check(force=True)
    assert page.page.evaluate(PIXEL, person)[3] < 40
    page.page.get_by_role("radio", name="Transparent").check(force=True)
    squares = page.page.evaluate(PIXEL, [0.5 - 0.2, 0.04])
    assert squares in ([255, 255, 255, 255], [213, 213, 213, 255])
    with page.page.expect_download() as started:
        page.page.locator("#download-picture").click()
    picture = Image.open(started.value.path())
    width, height = picture.size
    assert picture.mode == "RGBA"
    assert picture.getpixel((width // 20, height // 20))[3] < 10
    assert picture.getpixel((width // 2, height * 3 // 4))[3] > 245


def test_landmarks_are_followed_before_the_camera_and_options_are_in_the_address(
    demo: Open, browser_that_films_the_photo: Browser
) -> None:
    page = demo("?backend=wasm&most=2&model=face_mesh", path="/face-landmarks", browser=browser_that_films_the_photo)
    page.wait_for_result()
    assert page.page.locator("[data-option=most]").input_value() == "2"
    assert page.page.locator("#model").input_value() == "face_mesh"
    page.page.locator("[data-option=most]").fill("1")
    page.page.locator("[data-option=most]").press("Enter")
    page.wait_for("options", lambda: "most=1" in page.page.url)
    page.page.get_by_role("button", name="Start the camera").click()
    page.wait_for("camera", lambda: (page.result or {}).get("source") == "camera")
    result = page.wait_for_result(after=page.count + 5)
    assert len(result["faces"]) == 1
    assert "source=camera" in page.page.url
    page.page.get_by_role("button", name="Stop the camera").click()
    page.wait_for("sample", lambda: page.result["source"] == "sample")
    assert "source" not in page.page.url
    page.page.locator("#model").select_option("face_mesh_attention")
    page.page.get_by_role("button", name="Sample photo").click()
    assert "model=face_mesh_attention" in page.page.url
    assert page.page.locator("#model").input_value() == "face_mesh_attention"


def test_a_dropped_picture_is_segmented_too(demo: Open, photo: Path) -> None:
    page = demo("?backend=wasm", path="/segmentation")
    count = page.wait_for_result()["count"]
    data = BytesIO()
    Image.open(photo).crop((60, 0, 460, 300)).save(data, "PNG")
    page.drop("part.png", "image/png", base64.b64encode(data.getvalue()).decode())
    result = page.wait_for_result(after=count)
    assert (result["source"], result["image"]) == ("picture", {"width": 400, "height": 300})


def test_several_pictures_are_looked_at_one_after_the_other_and_told_apart(face_page: DemoPage, photo: Path) -> None:
    page = face_page
    grey = BytesIO()
    Image.new("RGB", (64, 48), "grey").save(grey, "PNG")
    files = {
        "face.png": photo.read_bytes(),
        "nothing.png": grey.getvalue(),
        "broken.png": b"no picture",
        "again.png": photo.read_bytes(),
    }
    page.page.set_input_files(
        "#file", [{"name": n, "mimeType": "image/png", "buffer": data} for n, data in files.items()]
    )
    counts = page.page.locator("#strip button span:last-child")
    page.wait_for("all four", lambda: counts.all_text_contents() == ["1", "0", "cannot be read", "1"])
    page.page.locator("#strip button").nth(1).click()
    page.wait_for("the second", lambda: page.text("#found") == "Faces found: 0")
    with page.page.expect_download() as download:
        page.page.get_by_role("button", name="Download CSV").click()
    lines = list(csv.DictReader(Path(download.value.path()).read_text().splitlines()))
    assert [line["file"] for line in lines] == ["face.png", "again.png"]
    page.page.locator("#use-sample").click()
    assert page.page.locator("#strip").is_hidden()
    page.complaints.clear()


def _answer(body: str, route: Any) -> None:
    route.fulfill(body=body)


def test_a_package_that_cannot_be_had_is_said(demo: Open) -> None:
    failed = {"state": "failed", "done": 0, "total": 1, "message": "no network.", "assets": {}}

    def without(route: Any) -> None:
        body = route.fetch().text()
        route.fulfill(body=body.replace('"models/hand_landmark_full.tflite": {', '"gone": {'), content_type="text/html")

    page = demo("?backend=wasm", path="/face-detection")
    page.wait_for_result()
    page.context.route("**/hand-landmarks*", without)
    for said, told in (
        (json.dumps(failed), "could not download the package mediapipe: no network."),
        ("<html>", "cannot be read"),
    ):
        page.context.route("**/api/packages/*", partial(_answer, said))
        page.page.goto(f"{page.address}/hand-landmarks?backend=wasm")
        assert told in page.wait_for_error("model-missing")["message"]


def test_the_page_of_this_browser_names_every_ability(demo: Open) -> None:
    page = demo(path="/browser")
    page.wait_for("capabilities", lambda: page.page.locator("#capabilities li strong").count())
    names = page.page.locator(".capabilities strong").all_inner_texts()
    assert {"Camera", "Storage", "Service worker"} <= set(names)
    assert len(names) >= 9
    for absent in page.page.locator(".capabilities .absent").all():
        assert absent.locator("p").count(), absent.inner_text()


def test_examples_come_behind_the_first_result_and_are_looked_at(face_page: DemoPage) -> None:
    page, count = face_page, face_page.count
    page.page.get_by_role("button", name="a cat").click()
    assert page.wait_for_result(after=count)["faces"] == []
    assert "a cat" in str(page.page.locator("#picture").get_attribute("aria-label"))
