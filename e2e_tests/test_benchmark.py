"""The page "Benchmark": a measurement, its end by hand, its result in a link and beside another's."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from build_scripts.paths import BENCHMARKS
from build_scripts.site.rivals import SCRIPTS
from build_scripts.site.serving import running_server
from e2e_tests.pages import DemoPage
from server.settings import Settings

Demo = Callable[..., DemoPage]
FORGETFUL = """
export const start = async () => ({
  files: () => ({}),
  load: async () => { throw new Error("it reads nothing today"); },
});
"""
READER = """
export const start = async ({ threads, backend }) => ({
  files: ({ files }) => ({ model: Object.values(files)[0] }),
  load: async (model, { model: bytes }) => ({
    note: `${backend} ${threads}`,
    async run([x]) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      return [{ name: "sum", data: x.map((value) => value + bytes.byteLength) }];
    },
  }),
});
"""


def ready(demo: Demo, query: str) -> DemoPage:
    """The page once a measurement can be started."""
    page = demo(query, path="/benchmark")
    page.wait_for("engine", lambda: page.page.locator("#start").get_attribute("aria-disabled") == "false")
    return page


def test_sizes_of_models_stay_in_one_line_on_a_phone(demo: Demo) -> None:
    page = demo(path="/benchmark", viewport={"width": 360, "height": 740}).page
    page.locator("#models .size").first.wait_for()
    lines = page.locator("#models .size").evaluate_all("sizes => sizes.map((size) => size.getClientRects().length)")
    assert set(lines) == {1}
    assert page.locator("#models").evaluate("list => list.scrollWidth - list.clientWidth") <= 0


def test_a_model_is_measured_and_the_result_travels_in_a_link(demo: Demo) -> None:
    page = ready(demo, "?models=blazeface_short_range&rounds=5")
    assert page.page.locator("#models input:checked").count() == 1
    faces = page.page.get_by_role("group", name="Face detection")
    assert faces.get_by_role("checkbox", name="BlazeFace, faces nearby").is_checked()
    page.page.locator("#start").click()
    result: dict[str, Any] = page.wait_for("result", lambda: page._dataset("webinferBenchmark"))
    rows = {row["backend"]: row for row in result["rows"]}
    assert result["whole"]
    assert rows.keys() == {"wasm", "webgpu"}
    for row in rows.values():
        assert 0 < row["least"] <= row["low"] <= row["median"] <= row["high"] <= row["most"]
        assert row["runs"] >= 5
    assert page.page.locator("#chart .bar-of").count() == 2
    assert page.page.locator("#table tbody tr").count() == 2
    assert "Face detection: BlazeFace, faces nearby" in page.text("#table")
    page.page.evaluate("navigator.clipboard.writeText = async (text) => { document.title = text; }")
    page.page.locator("#copy").click()
    link: str = page.wait_for("link", lambda: page.page.title() if "#result=" in page.page.title() else None)
    assert len(link) < 1500
    other = demo(link[link.index("?") :], path="/benchmark")
    other.wait_for("chart", lambda: other.page.locator("#chart .bar-of").count() == 2)
    assert other.page.locator("#chart [fill='url(#hatch)']").count() == 2  # another's
    assert f"{rows['wasm']['runs']}" in other.text("#table")


def test_a_measurement_is_stopped_and_what_is_no_result_is_refused(demo: Demo) -> None:
    page = ready(demo, "?models=blazeface_short_range,face_mesh&backends=wasm&rounds=50")
    page.page.locator("#start").click()
    page.wait_for("row", lambda: page.page.locator("#table tbody tr").count() == 1)
    page.page.get_by_role("button", name="Stop").click()
    result: dict[str, Any] = page.wait_for("result", lambda: page._dataset("webinferBenchmark"))
    assert not result["whole"]
    assert [row["model"] for row in result["rows"]] == ["blazeface_short_range"]
    # What is not a result is refused, and the page goes on.
    page.page.evaluate("location.hash = 'result=AAAA'")
    assert "damaged" in page.wait_for_error("input")["message"]
    row = {"model": "<b>x</b>", "backend": "wasm", "median": "fast"}
    bad = json.dumps({"version": 1, "when": "", "engine": "", "device": "", "rows": [row]}).encode()
    page.page.locator("#file").set_input_files({"name": "r.json", "mimeType": "application/json", "buffer": bad})
    page.wait_for_error("input", "is not a number")
    numbers = dict.fromkeys(("least", "low", "median", "high", "most", "runs", "compile", "first"), 2)
    good = json.dumps({"version": 1, "when": "", "engine": "", "device": "<i>", "rows": [{**row, **numbers}]}).encode()
    page.page.locator("#file").set_input_files({"name": "r.json", "mimeType": "application/json", "buffer": good})
    page.wait_for("chart", lambda: "<b>x</b>" in (page.page.locator("#chart").text_content() or ""))  # no element
    assert page.error is None


@pytest.fixture
def rivals(tmp_path: Path) -> Path:
    """A folder of rivals whose systems are the test's own: their page scripts are those of `bench`."""
    (tmp_path / "systems").mkdir()
    for name in SCRIPTS:
        shutil.copyfile(BENCHMARKS / "page" / name, tmp_path / name)
    (tmp_path / "systems" / "litertjs.js").write_text(READER)
    (tmp_path / "systems" / "tfjs.js").write_text(FORGETFUL)
    (tmp_path / "x.bin").write_bytes(bytes(16))
    given = {"name": "x", "dtype": "float32", "shape": [4], "file": "x.bin"}
    model = {"format": "tflite", "files": {"m": "x.bin"}, "tfjs": {"graph": "x.bin"}, "inputs": [given], "outputs": []}
    facts = {"systems": {"litertjs": "Reader", "tfjs": "Forgetful"}, "models": {"blazeface_short_range": model}}
    (tmp_path / "rivals.json").write_text(json.dumps(facts))
    return tmp_path


def test_rivals_take_turns_and_one_that_fails_has_a_row(demo: Demo, rivals: Path) -> None:
    with running_server(Settings(rivals=str(rivals))) as address:
        page = demo("?models=blazeface_short_range&backends=wasm&rounds=5", path="/benchmark", address=address)
        page.wait_for("engine", lambda: page.page.locator("#start").get_attribute("aria-disabled") == "false")
        assert page.page.locator("#rivals input:checked").count() == 2
        page.page.locator("#start").click()
        result: dict[str, Any] = page.wait_for("result", lambda: page._dataset("webinferBenchmark"))
    rows = {row["backend"]: row for row in result["rows"]}
    assert result["whole"]
    assert rows.keys() == {"wasm", "litertjs wasm", "tfjs wasm"}
    assert rows["tfjs wasm"]["error"] == "it reads nothing today"
    assert rows["litertjs wasm"].get("runs", 0) >= 5, rows["litertjs wasm"]
    assert rows["litertjs wasm"]["least"] <= rows["litertjs wasm"]["median"]
    assert "Reader, WASM" in page.text("#table")
