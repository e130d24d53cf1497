"""The benchmark's report: ratios, failed rows, table and chart."""

from typing import Any
from xml.etree import ElementTree

import pytest

from build_scripts.bench.chart import SYSTEMS, chart, specification, with_dark_colours
from build_scripts.bench.columns import entries_of
from build_scripts.bench.compare import parse
from build_scripts.bench.report import Collected, complete, markdown
from build_scripts.errors import BuildError


def row(model: str, system: str, threads: int, median: float, **more: Any) -> dict[str, Any]:
    times = {"median_ms": median, "min_ms": median / 2, "start_ms": 1, "load_ms": 2, "first_run_ms": 3, "first_ms": 6}
    return {"model": model, "system": system, "backend": "wasm", "threads": threads, **times, **more}


@pytest.fixture
def collected() -> Collected:
    found = Collected("a machine", "2026-01-02T03:04:05+00:00", {"rounds": 5}, browser="a <browser>")
    for name, quantised in (("face", False), ("pose", False), ("bytes", True)):
        found.take("model", {"name": name, "quantised": quantised, "flops": 2_000_000})
    found.take("wasm_peak_gflops", 40.0)
    found.take("wasm_peak_gflops", 58.0)
    for model, ours, theirs in (("face", 1.0, 2.0), ("pose", 2.0, 16.0), ("bytes", 3.0, 3.0)):
        found.take("row", row(model, "webinfer", 1, ours, max_abs_diff=1e-5))
        found.take("row", row(model, "litertjs", 1, theirs, max_abs_diff=0.0))
    found.take("row", {"model": "face", "system": "ortweb", "backend": "wasm", "threads": 1, "error": "no duplicate"})
    found.take("done", True)
    return found


def test_ratios_are_geometric_means_of_each_kind_of_model(collected: Collected) -> None:
    rows = complete(collected)["summary"]
    means = {(item["models"], item["system"]): item["geometric_mean"] for item in rows}
    wanted = {("float", "litertjs"): 4.0, ("quantised", "litertjs"): 1.0, ("all", "litertjs"): 16 ** (1 / 3)}
    assert means == pytest.approx(wanted)
    assert rows[0]["geometric_mean_of_first"] == 1.0
    assert rows[0]["least"] == pytest.approx(2.0)


def test_a_failed_row_keeps_its_reason_and_has_null_figures(collected: Collected) -> None:
    (failed,) = [found for found in complete(collected)["rows"] if found.get("error")]
    assert failed["error"] == "no duplicate"
    assert failed["median_ms"] is failed["bytes"] is failed["max_abs_diff"] is None
    assert "- face: ORT-web wasm 1 thr.: no duplicate" in markdown(complete(collected))


def test_the_best_peak_counts_and_gives_gflops(collected: Collected) -> None:
    report = complete(collected)
    assert report["wasm_peak_gflops"] == 58.0
    assert report["rows"][0]["gflops"] == pytest.approx(2.0)
    assert report["rows"][0]["of_peak"] == pytest.approx(2.0 / 58.0)
    assert "| face | 2.0 (3 %) |" in markdown(report)


def test_the_chart_has_a_mark_for_every_time(collected: Collected) -> None:
    drawn = specification(complete(collected))
    marks = drawn["data"]["values"]
    assert len(marks) == 6
    assert "pose: LiteRT.js wasm 16.00 ms (min 8.00)" in [mark["tip"] for mark in marks]
    scale = drawn["encoding"]["shape"]["scale"]
    assert dict(zip(scale["domain"], scale["range"], strict=True)) == {"webinfer": "circle", "LiteRT.js": "square"}
    assert drawn["title"]["subtitle"] == "a machine; a <browser>; 2026-01-02"


def test_every_row_that_can_be_measured_has_a_shape_and_a_colour_of_its_own() -> None:
    for backend in ("wasm", "webgpu"):
        for entry in entries_of(parse(["--backend", backend])):
            assert (entry.system, "") in SYSTEMS
    shapes, colours = zip(*((shape, colour) for _, shape, colour, _ in SYSTEMS.values()), strict=True)
    assert len(set(shapes)) == len(set(colours)) == len(SYSTEMS)


def test_a_chart_changes_every_colour_on_a_dark_page() -> None:
    found = with_dark_colours('<svg xmlns="http://www.w3.org/2000/svg"><rect fill="#ffffff"/></svg>')
    style = ElementTree.fromstring(found)[0].text or ""
    assert style.startswith("@media (prefers-color-scheme:dark)")
    assert '[fill="#ffffff" i]{fill:#14181d}' in style
    assert all(f'[fill="{light}" i]{{fill:{dark}}}' in style for _, _, light, dark in SYSTEMS.values())


def test_the_chart_is_drawn_with_a_label_for_every_mark(collected: Collected) -> None:
    pytest.importorskip("vl_convert", reason="only `bench` installs what draws the chart")
    tree = ElementTree.fromstring(chart(complete(collected)))
    labels = [element.get("aria-label", "") for element in tree.iter("{http://www.w3.org/2000/svg}path")]
    assert len([label for label in labels if " ms (min " in label]) == 6
    assert ElementTree.fromstring(chart(complete(Collected("", "", {})))).tag.endswith("svg")


def test_native_and_plain_javascript_stand_where_they_make_sense() -> None:
    names = [(entry.system, entry.backend, entry.threads) for entry in entries_of(parse(["--threads", "2"]))]
    assert ("native", "cpu", 2) in names
    assert ("tfjs", "cpu", 1) not in names
    gpu = entries_of(parse(["--backend", "webgpu"]))
    assert {entry.backend for entry in gpu} == {"webgpu"}
    assert "native" not in {entry.system for entry in gpu}


def test_an_unknown_system_is_named() -> None:
    with pytest.raises(BuildError, match="no system 'jax'"):
        parse(["--systems", "webinfer,jax"])
