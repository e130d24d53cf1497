"""Pages that are given a sound, texts or a file: what they find, keyboard, code, microphone, narrow screens, axe."""

from __future__ import annotations

import base64
import io
import math
import struct
import wave
from collections.abc import Callable

import pytest
from playwright.sync_api import Browser

from build_scripts.paths import NODE_MODULES
from e2e_tests.pages import DemoPage
from e2e_tests.test_access import AXE, RUN
from e2e_tests.test_code import CodePage
from e2e_tests.test_studio import STUDIO, files_of

Open = Callable[..., DemoPage]
NARROW = {"width": 360, "height": 780}


def needs(slug: str) -> None:
    """Skips where the models of a demo are not part of this site."""
    row = next(demo for demo in STUDIO.demos if demo.slug == slug)
    if missing := files_of(row):
        pytest.skip(f"fetched when the demo is opened, and not here yet: {', '.join(sorted(missing))}")


def well_made(page: DemoPage) -> None:
    """Holds where axe finds nothing in either theme and nothing is wider than a narrow screen."""
    page.page.set_viewport_size(NARROW)
    assert page.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    if not AXE.is_file():
        pytest.skip(f"axe-core is not installed in {NODE_MODULES}: python3 -m build_scripts setup")
    page.page.evaluate(AXE.read_text())
    for scheme, only in (("light", None), ("dark", ["color-contrast"])):
        page.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        assert page.page.evaluate(RUN, only) == [], scheme


def hum(seconds: float, rate: int = 8000) -> str:
    """A WAV file of a low tone in two channels, which nobody takes for speech."""
    count = int(seconds * rate)
    values = [round(9000 * math.sin(2 * math.pi * 110 * i / rate)) for i in range(count)]
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(2)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(b"".join(struct.pack("<hh", value, value) for value in values))
    return base64.b64encode(file.getvalue()).decode()


def test_recordings_are_listened_to_from_files_and_the_microphone(demo: Open, browser_with_camera: Browser) -> None:
    needs("speech")
    gone = ("**/sounds/*", lambda route: route.abort())
    page = demo("?backend=wasm", path="/speech", browser=browser_with_camera, broken=gone, reduced_motion="reduce")
    assert "Could not load the sample" in page.wait_for_error("download")["message"]
    page.drop("hum.wav", "audio/wav", hum(1.5))
    page.wait_for("file", lambda: page.error is None)  # until it is decoded the sample's error is shown
    result = page.wait_for_result()
    assert (result["source"], result["speeches"], result["image"]) == ("recording", [], None)
    assert result["about"] == {"name": "hum.wav", "seconds": 1.5}
    assert len(result["beside"]["probabilities"]) == 47  # chunks of 32 ms, the last one filled
    assert page.text("#found") == "Speech segments: 0"
    assert page.page.get_by_label("The recording", exact=True).evaluate("(player) => player.duration") == 1.5
    page.drop("note.txt", "text/plain", base64.b64encode(b"no sound").decode())
    assert "“note.txt” (text/plain) is not a sound" in page.wait_for_error("bad-sound")["message"]
    page.page.get_by_role("button", name="Close").click()
    page.page.get_by_role("button", name="Record", exact=True).click()
    page.wait_for("sound", lambda: page.result["source"] == "microphone" and page.result["about"]["seconds"] > 0.5)
    page.page.get_by_role("button", name="Stop recording").click()
    page.wait_for("recording", lambda: page.result["source"] == "recording")
    assert page.result["about"]["name"] == "your recording"
    assert page.page.get_by_role("button", name="Record", exact=True).get_attribute("aria-pressed") == "false"
    well_made(page)
    page.complaints.clear()  # the sample that was kept from coming


def test_sentences_are_compared_while_one_types_and_stand_in_the_address(demo: Open) -> None:
    needs("sentences")
    page = demo("?backend=wasm&others=A%20cat%20sleeps.%0ATaxes", path="/sentences", reduced_motion="reduce")
    count = page.wait_for_result()["count"]
    assert page.result["about"] == {"texts": 3}
    page.page.get_by_role("textbox", name="Sentence").focus()
    page.page.keyboard.press("ControlOrMeta+a")
    page.page.keyboard.insert_text("A kitten is asleep")
    result = page.wait_for_result(after=count)
    cat, taxes = result["beside"]["similarities"]
    assert cat > 0.6 > 0.3 > taxes
    assert "sentence=A+kitten+is+asleep" in page.page.url
    page.page.keyboard.press("Tab")
    assert page.page.evaluate("document.activeElement.id") == "others"
    rows = page.page.locator("#things tbody tr")
    assert [f"{value:.2f}" in rows.nth(i + 1).inner_text() for i, value in enumerate((cat, taxes))] == [True, True]
    code = CodePage(page)
    code.press("Run")
    assert f"{cat:.3f}"[:4] in code.ended("Ran in")
    well_made(page)


def test_a_file_is_told_by_its_bytes_not_its_name(demo: Open) -> None:
    needs("files")
    page = demo("?backend=wasm", path="/files", reduced_motion="reduce")
    count = page.wait_for_result()["count"]
    assert page.result["types"][0]["label"] == "svg"
    code = b"import os\n\n\ndef main() -> None:\n    print(os.getcwd())\n\n\nif __name__ == '__main__':\n    main()\n"
    page.drop("holiday.jpg", "image/jpeg", base64.b64encode(code * 4000).decode())
    result = page.wait_for_result(after=count)
    assert (result["types"][0]["label"], len(result["types"])) == ("python", 5)
    assert result["about"] == {"name": "holiday.jpg", "bytes": 4000 * len(code)}
    assert "Python" in page.text("#things tbody")
    well_made(page)
