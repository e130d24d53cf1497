"""Tasks in packages whose result is a map: the player's masks are the engine's, to the bit on the same kernels."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webinfer
from build_scripts.site.player import SOURCE
from build_scripts.tests.test_player_hostile import node
from webinfer import tasks
from webinfer.errors import InputError, ModelFormatError
from webinfer.package import compile_model
from webinfer.tasks.depth_estimator import DEPTH

__all__ = ["node"]  # a fixture
MASKS = """
import { readFileSync } from "node:fs";
const [player, file, pixels, width, height] = process.argv.slice(2);
const { load } = await import(player);
class ImageData {
  constructor(data, width, height) { Object.assign(this, { data, width, height }); }
}
const model = await load(new Uint8Array(readFileSync(file)), { backend: "wasm" });
const picture = new ImageData(new Uint8ClampedArray(readFileSync(pixels)), Number(width), Number(height));
const found = await model.run(picture);
const told = found.map(({ width, height, values }) => ({ width, height, values: Array.from(values) }));
process.stdout.write(JSON.stringify({ task: model.task, found: told }));
"""
WIDTH, HEIGHT = 50, 30  # of the picture; it is stretched to the model's input
SCENE = np.random.default_rng(5).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)


def mapping(side: int) -> webinfer.GraphBuilder:
    """A model that makes a map of one channel, 0..1, of a picture."""
    builder = webinfer.GraphBuilder("map")
    picture = builder.input("picture", (1, side, side, 3))
    weights = np.array([0.5, -1.0, 0.75], np.float32).reshape(3, 1)
    flat = builder.node("reshape", picture, shape=(side * side, 3))
    seen = builder.node("sigmoid", builder.node("matmul", flat, weights))
    builder.output(builder.node("reshape", seen, shape=(1, side, side, 1)), "map")
    return builder


async def compared(task: str, side: int) -> Any:
    """The engine's map of the model's own size."""
    if task == "selfie-segmenter":
        with await tasks.SelfieSegmenter.create(mapping(side), full_size=False, backend="wasm") as segmenter:
            return (await segmenter.segment(SCENE)).array()
    made = tasks.BackgroundRemover if task == "background-remover" else tasks.DepthEstimator
    with await made.create(mapping(side), backend="wasm") as one:
        outputs, *_ = await one._feeder.run(SCENE, None, one.spec, lambda crop: {})
        return outputs[DEPTH if made is tasks.DepthEstimator else "matte"].numpy()[0, :, :, 0]


@pytest.mark.parametrize(
    ("task", "name", "side"),
    [("selfie-segmenter", "segmentation", 256), ("background-remover", "background-removal", 24),
     ("depth-estimator", "depth-estimation", 24)],
)  # fmt: skip
def test_a_mask_is_the_engines(task: str, name: str, side: int, node: str, tmp_path: Path) -> None:
    made = compile_model(mapping(side), backend="wasm", builds=("simd128",), threads=False, task=task)
    (tmp_path / "m.webinfer").write_bytes(asyncio.run(made))
    opaque = np.concatenate([SCENE, np.full((HEIGHT, WIDTH, 1), 255, np.uint8)], axis=2)
    (tmp_path / "pixels").write_bytes(opaque.tobytes())
    (tmp_path / "masks.mjs").write_text(MASKS)
    files = [str(tmp_path / name) for name in ("m.webinfer", "pixels")]
    command = [node, str(tmp_path / "masks.mjs"), (SOURCE / "src/player.js").as_uri(), *files, str(WIDTH), str(HEIGHT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout)
    (mask,) = told["found"]
    assert (told["task"], mask["width"], mask["height"]) == (name, side, side)
    wanted = asyncio.run(compared(task, side))
    # The engine runs on relaxed kernels, whose multiply-add rounds once: a few units in the last place.
    np.testing.assert_allclose(np.array(mask["values"]).reshape(side, side), wanted, atol=2e-6)
    assert np.ptp(wanted) > 0.2, "the map shows the picture"


def test_what_is_no_model_of_the_task_is_refused() -> None:
    with pytest.raises(ModelFormatError, match="no selfie segmentation model"):
        asyncio.run(compile_model(mapping(24), backend="wasm", task="selfie-segmenter"))
    with pytest.raises(InputError, match=r"cannot be compiled into a package yet; .*depth-estimator"):
        asyncio.run(compile_model(mapping(24), backend="wasm", task="hand-landmarks"))
