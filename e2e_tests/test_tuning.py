"""Tuning on the demo page: progress, right results afterwards, logs out and in, damaged memories."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from build_scripts.paths import version
from e2e_tests.pages import DemoPage, overlap

Demo = Callable[..., DemoPage]
LIMIT_S = 240  # a software adapter on a busy machine
# The remembered log, and what a page finds there instead.
SPOIL = """async (text) => {
  const cache = await caches.open("webinfer");
  const keys = (await cache.keys()).filter((request) => new URL(request.url).pathname.includes("tuning-webgpu"));
  for (const key of keys) await cache.put(key, new Response(text));
  return keys.length;
}"""


# Milliseconds of a trivial dispatch on a device with these features: alone, and thrice at once.
TIMES = """async (features) => {
  const { gpu_device, gpu_program } = self.webinfer.gpu;
  const wishes = JSON.stringify({ features, limits: [], ring: 1 });
  const device = await gpu_device.openDevice(wishes, gpu_program.Program);
  const code = `@group(0) @binding(0) var<storage, read_write> y: array<u32>;
    @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x] += 1u; }`;
  const pipeline = await device.createPipelines(JSON.stringify([{ label: "add", code, bindings: ["write"] }]));
  const dispatches = [{ label: "add", pipeline, bindings: [[0, 0, 16384]], groups: [64, 1, 1] }];
  const recipe = JSON.stringify({ label: "t", buffers: [16384], dispatches });
  const program = await device.createProgram(recipe, new Uint8Array(0));
  const alone = await program.time(0, 1, 200);
  const together = await Promise.all([1, 2, 3].map(() => program.time(0, 1, 200)));
  const has = device.gpu.features.has("timestamp-query");
  device.close();
  return { has, times: [alone, ...together] };
}"""


def tune(page: DemoPage, budget: str = "5") -> str:
    """Tunes and gives the status at the end; the page showed how far it was."""
    page.page.locator("#tuning-budget").select_option(budget)
    page.page.locator("#tune").click()
    page.wait_for("progress", lambda: "shape" in page.text("#tuning-status") or ended(page), LIMIT_S)
    page.wait_for("end of tuning", lambda: ended(page), LIMIT_S)
    return page.text("#tuning-status")


def ended(page: DemoPage) -> bool:
    return "timed" in page.text("#tuning-status")


def export(page: DemoPage, folder: Path) -> Path:
    with page.page.expect_download() as download:
        page.page.locator("#tuning-export").click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def same_face(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return len(a["faces"]) == len(b["faces"]) == 1 and overlap(a["faces"][0]["box"], b["faces"][0]["box"]) > 0.98


def detect_again(page: DemoPage) -> dict[str, Any]:
    count = page.count
    page.page.locator("#use-sample").click()
    return page.wait_for_result(after=count)


def test_tuning_shows_progress_leaves_results_right_and_survives_a_damaged_memory(demo: Demo, tmp_path: Path) -> None:
    page = demo("?backend=webgpu&tools=open", viewport={"width": 1100, "height": 900})
    before = page.wait_for_result()
    status = tune(page)
    assert "default" in status or "saved" in status, status
    assert same_face(detect_again(page), before)
    path = export(page, tmp_path)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert rows
    assert {(row["browser"].split()[0], row["engine"]) for row in rows} == {("Chrome", version())}
    assert sum("plan" in row for row in rows) == 1

    assert page.page.evaluate(SPOIL, '{"damaged\n[]\n' + path.read_text()[:100]) == 1
    page.page.reload()
    assert same_face(page.wait_for_result(), before)
    with page.page.expect_file_chooser() as chooser:
        page.page.locator("#tuning-import").click()
    chooser.value.set_files(str(path))
    page.wait_for("import", lambda: "imported" in page.text("#tuning-status"), LIMIT_S)
    assert page.text("#tuning-status").startswith(f"{len(rows)} lines imported")
    assert same_face(detect_again(page), before)
    page.page.locator("#plan-box summary").click()
    page.wait_for("plan", lambda: page.page.locator("#plan table").count())
    kept = next(row["kept"] for row in rows if "plan" in row)
    assert ("tuned" in page.text("#plan")) == kept


def test_a_file_that_is_no_log_is_refused_by_line(demo: Demo, tmp_path: Path) -> None:
    page = demo("?backend=webgpu&tools=open")
    count = page.wait_for_result()["count"]
    path = tmp_path / "broken.jsonl"
    path.write_text("this is not a log\n")
    with page.page.expect_file_chooser() as chooser:
        page.page.locator("#tuning-import").click()
    chooser.value.set_files(str(path))
    error = page.wait_for("error", lambda: page.error)
    assert error["code"] == "model-format"
    assert "line 1" in error["message"]
    page.page.locator("#use-sample").click()
    assert page.wait_for_result(after=count)["faces"]


def test_times_come_from_timestamps_or_from_the_clock(face_page: DemoPage) -> None:
    for features in ([], ["timestamp-query"]):
        found = face_page.worker.evaluate(TIMES, features)
        assert found["has"] == bool(features)
        assert all(0 < ms < 100 for ms in found["times"]), found


def test_the_panel_waits_for_webgpu_and_fits_narrow_screens(demo: Demo) -> None:
    page = demo("?backend=wasm&tools=open", viewport={"width": 360, "height": 780})
    page.wait_for_result()
    assert "WebGPU only" in page.text("#tuning-status")
    assert page.page.locator("#tune").get_attribute("aria-disabled") == "true"
    for scheme in ("light", "dark"):
        page.page.emulate_media(color_scheme=scheme)
        assert page.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, scheme
