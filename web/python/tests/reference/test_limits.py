"""What the reference cannot hold is a typed error, and the next run works."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ops.case_graphs import run

import webinfer
from webinfer.backends.reference import lowerings
from webinfer.errors import LimitError, OutOfMemoryError
from webinfer.ops.elementwise import ABS

X = np.linspace(-1, 1, 6, dtype=np.float32)


def loaded(*shape: int) -> webinfer.Session:
    g = webinfer.GraphBuilder("small")
    g.output(g.node("abs", g.input("x", shape)), "y")
    return run(webinfer.load(g, backend="reference"))


def test_an_array_that_does_not_fit_names_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    with loaded(6) as session:
        with monkeypatch.context() as patch:
            patch.setitem(lowerings.LOWERINGS, ABS, lambda *_: [np.empty(1 << 45, np.float32)])
            for call in (
                lambda: session.run(X),
                lambda: session.profile(rounds=1),
                lambda: session.verify("reference"),
            ):
                with pytest.raises(OutOfMemoryError, match=r"abs.* on reference: Unable to allocate .*; use a smaller"):
                    run(call())
        assert run(session.run(X))["y"].numpy().ravel().tolist() == abs(X).tolist()


def test_more_dimensions_than_an_array_may_have_are_refused() -> None:
    loaded(*[1] * 32).close()
    with pytest.raises(LimitError, match="dimensions of 'x': needs 33, the limit is 32"):
        loaded(*[1] * 33)
