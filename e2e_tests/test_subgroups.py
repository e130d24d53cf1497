"""Sums that workgroups share, in a browser whose device has subgroups: the same as without them and as NumPy's."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Browser

from build_scripts.bench.kernel_page import write_page
from build_scripts.bench.server import serving
from build_scripts.bench.sum_cases import sum_cases
from e2e_tests.pages import DemoPage

LIMIT_S = 240
SHARED = ("gemv", "split_k")  # variants of a product whose workgroups share sums
ROWS, DEPTH = 5, 1028
DEVICE = """async () => {
  const adapter = await navigator.gpu.requestAdapter();
  return adapter.features.has("subgroups");
}"""
PROGRAM = f"""
import json
from array import array
import webinfer

async def test():
    x = array("f", [(i * 7919 % 1000) / 250 - 2 for i in range({ROWS * DEPTH})])
    g = webinfer.GraphBuilder("sums")
    v = g.input("x", ({ROWS}, {DEPTH}))
    for name in ("sum", "mean", "max", "min", "l2", "log_sum_exp"):
        g.output(g.node("reduce_" + name, v, axes=(1,)), name)
    g.output(g.node("softmax", v, axis=1), "softmax")
    with await webinfer.load(g, backend="webgpu", strict=True) as session:
        outputs = await session.run(x)
        plan = [[row.kernel, row.why] for row in session.plan().rows]
        return json.dumps([plan, {{name: tensor.tolist() for name, tensor in outputs.items()}}])

await test()
"""


def test_reductions_use_subgroups_and_equal_numpys(face_page: DemoPage) -> None:
    assert face_page.worker.evaluate(DEVICE)
    plan, found = face_page.python(PROGRAM)
    assert {kernel for kernel, _ in plan} == {"reduce_workgroup", "softmax_workgroup"}
    assert all("by subgroups" in why for _, why in plan), plan
    x = ((np.arange(ROWS * DEPTH) * 7919 % 1000) / 250 - 2).astype(np.float32).astype(np.float64).reshape(ROWS, DEPTH)
    e = np.exp(x)
    want: dict[str, Any] = {
        "sum": x.sum(1), "mean": x.mean(1), "max": x.max(1), "min": x.min(1), "l2": np.sqrt((x * x).sum(1)),
        "log_sum_exp": np.log(e.sum(1)), "softmax": e / e.sum(1, keepdims=True),
    }  # fmt: skip
    for name, values in want.items():
        np.testing.assert_allclose(np.array(found[name]).reshape(values.shape), values, 1e-4, 1e-6, err_msg=name)


def test_products_are_the_same_by_every_kernel(browser: Browser, tmp_path: Path) -> None:
    texts: dict[str, int] = {}
    products = (((1, 1, 1, 260), (13, 1, 1, 260), 0), ((1, 3, 3, 64), (12, 3, 3, 64), 1))
    with ThreadPoolExecutor() as thread:  # this one has Playwright's event loop
        found = sum_cases(texts, products, [(3, 260)], [(3, 257)], [(2, 77, 12)])
        cases = thread.submit(list, found).result()
    for case in cases[: len(products)]:  # tiles share no sums; ring 1 has them on a GPU
        case["variants"] = {name: found for name, found in case["variants"].items() if name.startswith(SHARED)}
    write_page(tmp_path / "site", {"sums": cases}, texts)
    reports: list[list[Any]] = []
    with serving(tmp_path / "site", None) as (address, posted):
        page = browser.new_page()
        page.goto(f"{address}/kernels.html?only=sums&samples=1&least=0")
        while not reports or reports[-1][0] != "done":
            reports.append(posted.get(timeout=LIMIT_S))
        page.close()
    (_, adapter), *rows, (_, ending) = reports
    assert not ending
    assert "subgroups" in adapter["requiredFeatures"]
    assert len(rows) == len(cases)
    assert {"gemv_1_32", "gemv_1_32_tree", "split_k"} <= set(rows[0][1]["variants"])
    assert {"gemv_4_64", "gemv_1_128_tree"} <= set(rows[1][1]["variants"])
    for label, report in rows:
        for name, row in report["variants"].items():
            if "maximum allowed" in row.get("error", ""):
                continue  # cases are recorded for an H100's limits, which this device does not have
            assert row.get("difference", 1) < 1e-5, f"{label}, {name}: {row}"
