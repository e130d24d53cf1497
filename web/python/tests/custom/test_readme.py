"""The README's example of a custom operator does what it says."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import numpy as np
from tests.custom.one_node import noise
from tests.ops.case_graphs import run

import webinfer

README = Path(__file__).resolve().parents[4] / "README.md"


async def example(names: dict[str, Any]) -> None:
    """Runs the code below the heading with these names."""
    code = re.search(r"^## Custom operators\n\n```python run\n(.*?)^```", README.read_text(), re.DOTALL | re.MULTILINE)
    assert code
    await eval(compile(code[1], str(README), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)


def test_the_example_runs_as_it_stands() -> None:
    weights, image = np.ones((8, 3, 3, 3), np.float32), noise(1, 64, 64, 3, seed=2)
    names: dict[str, Any] = {"webinfer": webinfer, "np": np}
    run(example(names))
    plain = webinfer.GraphBuilder()
    y = plain.node("conv2d", plain.input("x", image.shape), weights, pads=(1, 1, 1, 1))
    plain.output(y, "y")
    with names["session"] as session, run(webinfer.load(plain, backend="reference")) as judge:
        assert not names["outputs"]["y"].numpy().any()
        want = run(judge.run(image))["y"].numpy().clip(0) * 0.5
        np.testing.assert_allclose(run(session.run(image))["y"].numpy(), want, atol=1e-4)
        assert [row.op for row in session.plan().rows] == ["conv2d", "my.scaled_relu"]
        assert run(session.verify("reference")).ok
