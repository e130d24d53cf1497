"""Labels that the caller makes up, of pictures and of texts, with small models in the place of real ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.ops.case_graphs import run
from tests.ops.targets import TARGETS, Target
from tests.tasks import zero_shot_models as models

import webinfer
from webinfer.errors import InputError, ModelFormatError, UnsupportedOpError, WebinferError
from webinfer.host import current
from webinfer.tasks import Category, ZeroShotClassifier, ZeroShotImageClassifier
from webinfer.tasks.image import read_image
from webinfer.tasks.scaled_picture import PictureScaler
from webinfer.tasks.tokenizer_json import TokenizerJson

EVERYWHERE = [t for t in TARGETS if dict(t.options).get("isa", "relaxed") == "relaxed"]
LABELS = ["red", "Blue", "green"]
PLACES = [0, 2, 1]  # of their colours
PLAIN = {"size": {"height": 8, "width": 8}, "image_mean": [0, 0, 0], "image_std": [1, 1, 1]}
PICTURE = np.random.default_rng(1).integers(0, 256, (16, 16, 3), np.uint8)
PICTURE[..., 2] //= 3


def cosines(picture: Any, mean: Any = 0.0, deviation: Any = 1.0) -> Any:
    """Of a picture with each label."""
    vector = ((picture / 255 - np.asarray(mean)) / np.asarray(deviation)).mean((0, 1))
    return (vector / np.linalg.norm(vector))[PLACES]


def softmax(logits: Any) -> Any:
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()


def by_label(found: list[Category]) -> list[float]:
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert all(LABELS[one.index] == one.label for one in found)
    return [one.score for one in sorted(found, key=lambda one: one.index)]


async def classified(model: Any, picture: Any = PICTURE, **options: Any) -> list[float]:
    given = {"candidate_labels": LABELS, "tokenizer": models.TOKENIZER, "preprocessor": PLAIN, "backend": "wasm"}
    with await ZeroShotImageClassifier.create(model, **{**given, **options}) as task:
        return by_label(await task.classify(picture))


@pytest.mark.parametrize("target", EVERYWHERE, ids=str)
def test_scores_of_a_picture_are_those_of_its_model(target: Target) -> None:
    target.demand()
    wanted = softmax(models.SCALE * cosines(PICTURE))
    assert run(classified(models.clip(), backend=target.backend)) == pytest.approx(wanted, abs=2e-3)
    each = 1 / (1 + np.exp(1 - models.SCALE * cosines(PICTURE)))
    assert run(classified(models.clip(-1.0), backend=target.backend)) == pytest.approx(each, abs=2e-3)


def test_halves_of_a_model_are_compared_with_its_scale() -> None:
    sees, reads = models.halves()
    logits = 3.0 * cosines(PICTURE) - 1
    given: dict[str, Any] = {"text_model": reads, "scale": 3.0, "bias": -1.0}
    assert run(classified(sees, **given)) == pytest.approx(softmax(logits), abs=2e-3)
    each = 1 / (1 + np.exp(-logits))
    assert run(classified(sees, **given, multi_label=True)) == pytest.approx(each, abs=2e-3)


def test_what_a_model_wants_is_read_beside_it_and_pictures_are_cut_as_clips_are(tmp_path: Path) -> None:
    wide = np.zeros((16, 48, 3), np.uint8)
    wide[:, 16:32] = PICTURE  # the middle, which alone is seen
    (tmp_path / "onnx").mkdir()
    (tmp_path / "onnx" / "model.onnx").write_bytes(models.clip())
    (tmp_path / "tokenizer.json").write_bytes(models.TOKENIZER)
    facts = {"size": {"shortest_edge": 16}, "crop_size": 16, "image_mean": [0.4, 0.5, 0.6], "image_std": [0.2] * 3}
    (tmp_path / "onnx" / "preprocessor_config.json").write_text(json.dumps(facts))
    found = run(classified(tmp_path / "onnx" / "model.onnx", wide, tokenizer=None, preprocessor=None))
    assert found == pytest.approx(softmax(models.SCALE * cosines(PICTURE, [0.4, 0.5, 0.6], 0.2)), abs=1e-4)


def test_labels_and_template_may_change_from_call_to_call() -> None:
    async def told() -> list[list[str]]:
        options = {"tokenizer": models.TOKENIZER, "preprocessor": PLAIN, "backend": "wasm"}
        with await ZeroShotImageClassifier.create(models.clip(), **options) as task:
            with pytest.raises(InputError, match=r"no labels are given; give candidate_labels"):
                await task.classify(PICTURE)
            with pytest.raises(InputError, match=r"needs a text with \{\}"):
                await task.classify(PICTURE, ["red"], "red")
            first = await task(PICTURE, candidate_labels="blue, red")
            second = await task(PICTURE, candidate_labels=["red"] * 300 + ["blue"], hypothesis_template="{} photo")
        return [[one.label for one in found] for found in (first, second)]

    first, second = run(told())
    assert first == ["red", "blue"]
    assert second[-1] == "blue"
    assert len(second) == 301  # more than are compared at once


@pytest.mark.parametrize(("size", "to"), [((40, 30), (13, 9)), ((9, 7), (20, 31)), ((33, 50), (33, 12))])
@pytest.mark.parametrize("resample", [Image.Resampling.BILINEAR, Image.Resampling.BICUBIC])
def test_pictures_are_scaled_as_pillow_scales_them(size: Any, to: Any, resample: Any) -> None:
    image = Image.fromarray(np.random.default_rng(2).integers(0, 256, (size[1], size[0], 3), np.uint8))
    cut = (to[0] - 4, to[1] + 3)  # narrower than it is, and higher

    async def scaled() -> Any:
        scaler = PictureScaler(current(), int(resample))
        found = await scaler.scaled(read_image(image, current()), to, cut)
        scaler.close()
        return np.frombuffer(found.pixels, np.uint8).reshape(cut[1], cut[0], 3)

    wanted = np.zeros((cut[1], cut[0], 3), np.uint8)
    wanted[1 : 1 + to[1]] = np.asarray(image.resize(to, resample))[:, 2:-2]
    assert np.abs(run(scaled()).astype(int) - wanted).max() <= 1


@pytest.mark.parametrize("target", EVERYWHERE, ids=str)
def test_scores_of_a_text_are_those_of_its_model(target: Target) -> None:
    target.demand()

    def logits(label: str) -> Any:
        words = f"a photo red Says {label}".lower().split()
        return models.VECTORS[[models.WORDS.index(word) for word in words]].sum(0) @ [[2, 0], [1, 1], [0.5, 2]]

    rows = np.array([logits(label) for label in LABELS])

    async def told() -> list[list[float]]:
        options = {"candidate_labels": LABELS, "tokenizer": models.TOKENIZER, "hypothesis_template": "Says {}"}
        config = {"id2label": {"0": "Entailment", "1": "other"}}
        create = ZeroShotClassifier.create(models.entails(), **options, config=config, backend=target.backend)
        with await create as task:
            text = "a photo red"
            return [by_label(await task.classify(text)), by_label(await task.classify(text, multi_label=True))]

    among, alone = run(told())
    assert among == pytest.approx(softmax(rows[:, 0]), abs=1e-5)
    assert alone == pytest.approx([softmax(row)[0] for row in rows], abs=1e-5)


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(models.entails())
    with pytest.raises(InputError, match=r"no tokenizer is given, and none is beside the model"):
        run(ZeroShotClassifier.create(model, backend="wasm"))
    with pytest.raises(InputError, match=r"is not a tokenizer\.json"):
        run(ZeroShotClassifier.create(model, tokenizer=b"{}", backend="wasm"))
    with pytest.raises(ModelFormatError, match=r"does not compare pictures with texts"):
        run(classified(models.entails()))
    with pytest.raises(WebinferError, match=r"does not compare texts"):
        run(ZeroShotClassifier.create(models.halves()[0], tokenizer=models.TOKENIZER, backend="wasm"))
    with pytest.raises(UnsupportedOpError, match=r"filter 0 of Pillow"):
        run(classified(models.clip(), preprocessor={**PLAIN, "resample": 0}))
    odd = json.dumps({"model": {"type": "Odd", "vocab": {}}}).encode()
    with pytest.raises(UnsupportedOpError, match=r"the model .*Odd.* of a tokenizer\.json"):
        TokenizerJson(odd)


def test_pipelines_of_these_names_open(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(models.TOKENIZER)
    (tmp_path / "model.onnx").write_bytes(models.entails())
    task = webinfer.pipeline("zero-shot-classification", tmp_path / "model.onnx", backend="wasm")
    with task:
        batch = task(["red", "blue"], candidate_labels="red, blue", multi_label=True)
    assert [len(found) for found in batch] == [2, 2]
