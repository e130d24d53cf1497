"""What callers ask for is checked first: each refusal names the option, what was found and what is allowed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.session.models import IMAGE, open_model, opened
from tests.tasks.photos import model_path

import webinfer
from webinfer.errors import InputError, ModelFormatError, WebinferError
from webinfer.session.options import checked_shapes
from webinfer.tasks import FaceDetector


@pytest.mark.parametrize("value", [-1, 0, "x", 1e9, 2.0, True, 65, 10**30, math.nan, [2]], ids=repr)
def test_threads(value: Any) -> None:
    with pytest.raises(InputError, match=r"threads is .*, needs a whole number from 1 to 64, or None"):
        opened(threads=value)


@pytest.mark.parametrize("value", [math.nan, -5, -0.1, math.inf, "x", True, 1j, [1]], ids=repr)
def test_budgets(value: Any) -> None:
    with pytest.raises(InputError, match=r"tuning_ms is .*, needs a number of milliseconds from 0 up, or None"):
        opened(tuning_ms=value)
    with opened() as session, pytest.raises(InputError, match=r"budget_ms is .*, needs a number of milliseconds"):
        run(session.tune(budget_ms=value))


def test_numbers_of_numpy_are_numbers() -> None:
    with opened(threads=np.int64(1), tuning_ms=np.float32(0)) as session:
        assert run(session.verify(tolerance=np.float32(0.01))).ok
        assert len(run(session.profile(rounds=np.int32(1))).times_ms) == 2  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [0, -1, 1.5, "x", True, None], ids=repr)
def test_rounds(value: Any) -> None:
    with opened() as session:
        with pytest.raises(InputError, match=r"rounds is .*, needs a whole number from 1"):
            run(session.profile(rounds=value))
        assert run(session.run(IMAGE))["y"].shape == (1, 36)


@pytest.mark.parametrize("value", [math.nan, -1e-3, math.inf, "x", True, None], ids=repr)
def test_tolerances(value: Any) -> None:
    with opened() as session, pytest.raises(InputError, match=r"tolerance is .*, needs a number from 0"):
        run(session.verify(tolerance=value))


@pytest.mark.parametrize("value", [math.nan, -0.1, 1.5, math.inf, "0.5", True], ids=repr)
def test_least_scores(value: Any) -> None:
    with pytest.raises(InputError, match=r"min_score is .*, needs a number from 0 to 1"):
        run(FaceDetector.create(model_path("blazeface_short_range"), backend="wasm", min_score=value))


@pytest.mark.parametrize(("name", "least"), [("blazeface_short_range", 0.5), ("blazeface_full_range", 0.6)])
def test_without_a_least_score_it_is_that_of_mediapipe_s_graph(name: str, least: float) -> None:
    with run(FaceDetector.create(model_path(name), backend="wasm")) as detector:
        assert detector.min_score == least


def test_a_least_score_that_is_set_later_is_checked_too() -> None:
    with run(FaceDetector.create(model_path("blazeface_short_range"), backend="wasm")) as detector:
        with pytest.raises(InputError, match="min_score is nan"):
            detector.min_score = math.nan
        assert detector.min_score == 0.5


@pytest.mark.parametrize("value", [None, 5, 1.5, True, object], ids=repr)
def test_backends(value: Any) -> None:
    with pytest.raises(InputError, match=r"backend=.* give a name or a list of names; there are auto, webgpu, wasm"):
        opened(value)


@pytest.mark.parametrize("value", [[None], [["wasm"]], [b"wasm"], {"wasm": 1, "cuda": 2}, b"wasm"], ids=repr)
def test_names_of_backends(value: Any) -> None:
    with pytest.raises(InputError, match="no backend is called"):
        opened(value)


@pytest.mark.parametrize(
    "sizes",
    ["abc", b"abcd", None, 6, (1, -6, 6, 2), (1, 6.0, 6, 2), (1, math.nan, 6, 2), (1, None, 6, 2),
     (1, "6", 6, 2), (1, True, 6, 2), (1, 2**31, 6, 2), (1, 10**40, 6, 2), ((1,), 6, 6, 2)],
    ids=repr,
)  # fmt: skip
def test_sizes(sizes: Any) -> None:
    with pytest.raises(InputError, match=r"shapes.*'image'.*needs"):
        run(webinfer.load(open_model(), backend="wasm", shapes={"image": sizes}))


@pytest.mark.parametrize("shapes", ["abc", 5, [("image", (1, 6, 6, 2))], {3: (1, 6, 6, 2)}], ids=repr)
def test_what_is_no_mapping_of_sizes(shapes: Any) -> None:
    with pytest.raises(InputError, match="shapes"):
        run(webinfer.load(open_model(), backend="wasm", shapes=shapes))


@pytest.mark.parametrize("sizes", [(1, 6, 6), (), (1, 2**31 - 1, 2**31 - 1, 2), (1, 6, 6, 3)], ids=repr)
def test_sizes_that_a_model_refuses_are_typed(sizes: Any) -> None:
    with pytest.raises(WebinferError, match="image"):
        run(webinfer.load(open_model(), backend="wasm", shapes={"image": sizes}))


@pytest.mark.parametrize(
    "source",
    [
        "a\0b.tflite", Path("a\0b.tflite"), "a\udc80b\0", "x" * 10_000, "", "/", "http://[::1/x", "http://",
        "https://:x/y", "http://127.0.0.1:99999/x", "http://127.0.0.1:1/x", "http://a b/x", "http://127.0.0.1:1/\n", "http://\u2100/x",
    ],
    ids=ascii,
)  # fmt: skip
def test_addresses_that_lead_nowhere(source: Any) -> None:
    with pytest.raises(ModelFormatError, match=r"cannot (read|download)"):
        run(webinfer.load(source, backend="wasm"))


def test_the_largest_size_that_a_dimension_may_have() -> None:
    assert checked_shapes({"x": [0, 2**31 - 1]}) == {"x": (0, 2**31 - 1)}
    for size in (2**31, -1):
        with pytest.raises(InputError, match=r"a size of 'x', is .*, needs a whole number from 0 to 2147483647"):
            checked_shapes({"x": [size]})
