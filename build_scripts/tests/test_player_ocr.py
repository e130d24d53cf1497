"""Text in pictures: a package of three models reads what the engine reads, to the pixel."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tasks import test_text_reader as models

from build_scripts.tests.in_node import node
from build_scripts.tests.test_player_tasks import played
from webinfer import tasks

__all__ = ["node"]  # a fixture
A, B, C = models.A, models.B, models.C


def noisy(picture: Any) -> Any:
    """A picture that looks different at each pixel, so that samples between them count."""
    found = picture.astype(np.int32) + np.random.default_rng(2).integers(-9, 10, picture.shape)
    return np.ascontiguousarray(found.clip(0, 255).astype(np.uint8))


PICTURES = {
    "page": models.page((100, 200, [C, B, C, B]), (60, 40, [B, B, C]), (300, 50, [C, C, B, B, A])),
    "turned": np.rot90(models.page((100, 200, [C, B, C, B]), (60, 40, [B, B, C])), -1),
    "upside-down": models.page((100, 60, [B, A, C, C]), (300, 200, [B, B, C, C]))[::-1, ::-1],
    "low": models.page((100, 0, [C, B, C, B]))[:28],
    "odd": models.page((20, 100, [C, B] * 7))[60:173, :589],
}


@pytest.mark.parametrize("name", PICTURES)
def test_lines_are_the_engines(name: str, node: str, tmp_path: Path) -> None:
    picture = noisy(PICTURES[name])
    options: dict[str, Any] = {
        "detector": models.finder(), "classifier": models.classifier() if name == "upside-down" else None,
        "min_score": 0.2, "most_side": 640,
    }  # fmt: skip
    told = played(models.reader(**models.WRITTEN), "text-reader", node, tmp_path, picture, **options)

    async def read() -> list[Any]:
        with await tasks.TextReader.create(models.reader(**models.WRITTEN), backend="wasm", **options) as task:
            return await task.read(picture)

    wanted = asyncio.run(read())
    assert told["task"] == "text"
    assert [line["text"] for line in told["found"]] == [line.text for line in wanted]
    assert len(wanted) > 0
    for found, line in zip(told["found"], wanted, strict=True):
        np.testing.assert_allclose(found["quad"], line.quad, atol=1e-6)
        assert found["score"] == pytest.approx(line.score, abs=1e-5)
        assert found["box"]["width"] == pytest.approx(line.box.width)
