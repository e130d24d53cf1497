"""The panel "Where the time goes": a measurement of the loaded model as figures, bars, table and files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator

from e2e_tests.pages import DemoPage
from e2e_tests.test_layout import RATIO

Demo = Callable[..., DemoPage]
TEXTS = ("#profile-title", "#profile-status", "#profile-caption", ".times .group td", ".times small", ".times .name")


def cells(row: Locator) -> tuple[float, float, float | None, float | None]:
    """Milliseconds, percent, GFLOP/s and percent of the peak of a row of the table."""
    texts = [text.strip() for text in row.locator("td").all_inner_texts()]
    ms, share, speed, peak = (re.sub(r"[^\d.]", "", text) for text in texts)
    return float(ms), float(share), float(speed) if speed else None, float(peak) if peak else None


def downloaded(page: DemoPage, name: str) -> tuple[str, str]:
    """The suggested file name and the text of a download."""
    with page.page.expect_download() as download:
        page.page.get_by_role("link", name=name).click()
    return download.value.suggested_filename, Path(download.value.path()).read_text()


def check_measurement(page: DemoPage, backend: str) -> None:
    """Measures the model; figures, table, bars and files fit together."""
    page.measure()
    name, text = downloaded(page, "Download JSON")
    assert name == f"blazeface_short_range-{backend}-profile.json"
    report: dict[str, Any] = json.loads(text)
    assert report["backend"] == backend
    assert len(report["steps"]) > 20
    assert 0 < report["run_ms"] > report["overhead_ms"] >= 0
    groups = page.page.locator("#profile-table tr.group")
    assert groups.count() == len({step["op"] for step in report["steps"]}) + 1  # and what is outside the kernels
    rows = [cells(groups.nth(i)) for i in range(groups.count())]
    assert sum(share for _, share, *_ in rows) == pytest.approx(100, abs=0.05 * len(rows))
    assert sum(ms for ms, *_ in rows) == pytest.approx(report["total_ms"] + report["overhead_ms"], rel=0.02)
    assert [ms for ms, *_ in rows[:-1]] == sorted((ms for ms, *_ in rows[:-1]), reverse=True)
    assert rows[0][2], "the operator that takes longest has no speed"
    assert rows[0][3], "the operator that takes longest has no share of the peak"
    assert report["peak_gflops"][backend] > 0.1
    assert page.page.locator("#profile-strip span").count() == len(rows)
    name, picture = downloaded(page, "Download the picture")
    assert name.endswith(".svg")
    assert picture.count("<rect") == len(report["steps"]) + 1


def test_every_step_is_measured_on_either_backend_and_the_page_says_how_far_it_is(demo: Demo) -> None:
    page = demo("?backend=wasm&tools=open")
    count = page.wait_for_result()["count"]
    page.page.evaluate(
        """() => {
          globalThis.said = [];
          const status = document.getElementById("profile-status");
          new MutationObserver(() => said.push(status.textContent)).observe(status, { childList: true });
        }"""
    )
    check_measurement(page, "wasm")
    said = page.page.evaluate("said")
    assert "Measuring, round 1 of 5 …" in said
    assert "Measuring, round 5 of 5 …" in said
    assert "an inference" in said[-1]
    assert page.page.locator("#profile-progress").is_hidden()
    page.select_backend("WebGPU")
    page.wait_for_result(after=count)
    assert page.page.locator("#profile").is_hidden()  # a measurement goes with its backend
    check_measurement(page, "webgpu")
    assert "on webgpu" in page.text("#profile-status")


def test_the_figure_unfolds_by_keyboard_fits_narrow_pages_and_reads_well_in_light_and_dark(demo: Demo) -> None:
    page = demo("?backend=wasm&tools=open", reduced_motion="reduce")
    page.wait_for_result()
    page.page.locator("#measure").focus()
    page.page.keyboard.press("Enter")
    page.wait_for_profile()
    table = page.page.get_by_role("table", name="Time by operator")
    # By its whole name: operators stand in the order of their times.
    fold = table.get_by_role("button", name=re.compile(r"^conv2d \d+ steps$"))
    assert fold.get_attribute("aria-expanded") == "false"
    before = table.get_by_role("row").count()
    fold.focus()
    page.page.keyboard.press("Space")
    assert fold.get_attribute("aria-expanded") == "true"
    steps = int(re.search(r"(\d+) steps", fold.inner_text())[1])  # type: ignore[index]
    assert table.get_by_role("row").count() == before + steps
    assert table.get_by_role("rowheader", name="f32_conv2d").count() >= 1
    label = page.page.get_by_role("img", name="outside the kernels").get_attribute("aria-label")
    assert label is not None
    assert "conv2d" in label
    for width in (360, 768, 1600):
        page.page.set_viewport_size({"width": width, "height": 780})
        assert page.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, width
        assert page.page.get_by_role("table", name="Time by operator").get_by_role("cell").count() > 20, width
    for scheme in ("light", "dark"):
        page.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        for selector in TEXTS:
            assert page.page.evaluate(RATIO, selector) >= 4.5, (scheme, selector)
