"""The documentation's example of a custom operator does what it says."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import numpy as np
from tests.ops.case_graphs import run

import webinfer

PAGE = Path(__file__).resolve().parents[4] / "web" / "docs" / "custom-operators.md"


async def example(names: dict[str, Any]) -> None:
    """Runs the page's first two blocks with these names: an operator is registered, a graph with it is run."""
    for code in re.findall(r"^```python run\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)[:2]:
        waiting = eval(compile(code, str(PAGE), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
        if waiting is not None:
            await waiting


def test_the_example_computes_what_its_formula_says() -> None:
    names: dict[str, Any] = {}
    run(example(names))
    image = np.ones((1, 64, 64, 3), np.float32)
    plain = webinfer.GraphBuilder()
    plain.output(plain.node("conv2d", plain.input("x", image.shape), names["weights"], pads=(1, 1, 1, 1)), "y")
    with names["session"] as session, run(webinfer.load(plain, backend="reference")) as judge:
        want = run(judge.run(image))["y"].numpy().clip(0) * 0.5
        np.testing.assert_allclose(names["outputs"]["y"].numpy(), want, atol=1e-4)
        assert [row.op for row in session.plan().rows] == ["conv2d", "my.scaled_relu"]
        assert run(session.verify("reference")).ok
