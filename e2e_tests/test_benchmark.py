"""The page "Benchmark": a measurement, its end by hand, its result in a link and beside another's."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from e2e_tests.pages import DemoPage

Demo = Callable[..., DemoPage]


def ready(demo: Demo, query: str) -> DemoPage:
    """The page once a measurement can be started."""
    page = demo(query, path="/benchmark")
    page.wait_for("engine", lambda: page.page.locator("#start").get_attribute("aria-disabled") == "false")
    return page


def test_a_model_is_measured_and_the_result_travels_in_a_link(demo: Demo) -> None:
    page = ready(demo, "?models=blazeface_short_range&rounds=5")
    assert page.page.locator("#models input:checked").count() == 1
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
    # What is no result is refused, and the page goes on.
    page.page.evaluate("location.hash = 'result=AAAA'")
    assert "damaged" in page.wait_for_error("input")["message"]
    row = {"model": "<b>x</b>", "backend": "wasm", "median": "fast"}
    bad = json.dumps({"version": 1, "when": "", "engine": "", "device": "", "rows": [row]}).encode()
    page.page.locator("#file").set_input_files({"name": "r.json", "mimeType": "application/json", "buffer": bad})
    page.wait_for_error("input", "is no number")
    numbers = dict.fromkeys(("least", "low", "median", "high", "most", "runs", "compile", "first"), 2)
    good = json.dumps({"version": 1, "when": "", "engine": "", "device": "<i>", "rows": [{**row, **numbers}]}).encode()
    page.page.locator("#file").set_input_files({"name": "r.json", "mimeType": "application/json", "buffer": good})
    page.wait_for("chart", lambda: "<b>x</b>" in (page.page.locator("#chart").text_content() or ""))  # no element
    assert page.error is None
