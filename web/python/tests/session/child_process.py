"""What processes of a pool do; imports no more than they need."""

from __future__ import annotations

from array import array

import webinfer


def run_in_a_process(value: float) -> float:
    """The last element of a model that doubles, loaded and run."""
    builder = webinfer.GraphBuilder("doubling")
    builder.output(builder.node("linear", builder.input("x", (2, 3)), a=2.0, b=0.0), "y")
    with webinfer.load_sync(builder, backend="wasm") as session:
        found: list[float] = session.run(array("f", [value] * 6))["y"].tolist()
    return found[-1]
