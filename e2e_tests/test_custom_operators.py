"""Custom operators in a browser: a Python program in the page's worker, and the benchmark's interop page."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser

from build_scripts.bench.interop import WEBINFER, pack, ratios
from build_scripts.bench.server import serving
from e2e_tests.pages import DemoPage

LIMIT_S = 240
PROGRAM = r"""
import json
from array import array
import webinfer

def reference(x, scale):  # there is no NumPy here: x is a Tensor
    return array("f", [max(n, 0.0) * scale for n in x.tolist()])

webinfer.register_operator("my.scaled_relu", params={"scale": 1.0}, wgsl="max(load_x(i), 0.0) * params.scale",
                           reference=reference)
webinfer.register_operator("my.broken", wgsl="\n    let a = load_x(i);\n    return a + missing;\n")

def graph(op, **attrs):
    g = webinfer.GraphBuilder("mixed")
    y = g.node("neg", g.input("x", (2, 5)))
    g.output(g.node("add", g.node(op, y, **attrs), 1.0), "y")
    return g

async def test():
    x, found = array("f", [n - 4.5 for n in range(10)]), {}
    for backend in ("webgpu", "wasm"):
        with await webinfer.load(graph("my.scaled_relu", scale=2), backend=backend) as session:
            outputs = await session.run(x)
            found[backend] = [outputs["y"].tolist(), [row.backend for row in session.plan().rows]]
    try:
        await webinfer.load(graph("my.broken"), backend="webgpu")
    except webinfer.GpuError as error:
        found["error"] = str(error)
    webinfer.unregister_operator("my.broken")
    return json.dumps(found)

await test()
"""


def test_a_program_in_the_browser_registers_and_runs_one(demo: Callable[..., DemoPage]) -> None:
    page = demo("?backend=wasm")
    page.wait_for_result()
    found: dict[str, Any] = page.python(PROGRAM)
    want = [2 * max(4.5 - n, 0) + 1 for n in range(10)]
    assert found["webgpu"] == [want, ["webgpu", "webgpu", "webgpu"]]
    assert found["wasm"] == [want, ["wasm", "python", "wasm"]]
    assert "my.broken" in found["error"]
    assert "missing" in found["error"]
    assert ":3:" in found["error"]  # the line of the operator's own text


def test_the_interop_page_gets_the_references_result_on_every_way(browser: Browser, tmp_path: Path) -> None:
    site = tmp_path / "site"
    with ThreadPoolExecutor() as thread:  # this one has Playwright's event loop
        thread.submit(pack, site, size=9, channels=8, runs=2).result()
    reports: list[list[Any]] = []
    with serving(site, None) as (address, posted):
        page = browser.new_page()
        page.goto(f"{address}/interop.html?feed=host")
        while not reports or reports[-1][0] != "done":
            reports.append(posted.get(timeout=LIMIT_S))
        cells = page.locator("#results tbody tr").count()
        page.close()
    rows = [value for key, value in reports if key == "row"]
    assert reports[-1] == ["done", True]
    assert cells == len(rows)
    ours = [row for row in rows if row["system"] == "webinfer"]
    assert not [row["error"] for row in rows if "error" in row]
    assert {row["test"] for row in ours} == set(WEBINFER)
    assert all(row["max_rel_diff"] < 1e-5 and row["samples"] == 2 for row in ours)
    plans = {row["test"]: [step.split(":")[0] for step in row["plan"]] for row in ours}
    assert plans["shared"] == ["conv2d on webgpu", "interop.add_relu on webgpu"]
    assert plans["builtin"] == ["conv2d on webgpu"]
    assert set(ratios(rows)) == {"host"}
