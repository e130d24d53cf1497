"""Classes of texts, with a small encoder of random weights in the place of a real one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import TARGETS, Target

import webinfer
from webinfer.errors import InputError, ModelFormatError
from webinfer.tasks import Category, TextClassifier

EVERYWHERE = [t for t in TARGETS if dict(t.options).get("isa", "relaxed") == "relaxed"]
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "bad", "film", "##s"]
LENGTH, CLASSES = 16, 3
TABLE = np.random.default_rng(6).normal(size=(len(PIECES), CLASSES)).astype(np.float32)
LABELS = ("positive", "negative", "neutral")


def encoder(classes: int = CLASSES) -> webinfer.GraphBuilder:
    """The sum of what stands in a random table for each piece of a text, filling left out."""
    builder = webinfer.GraphBuilder("encoder")
    ids, mask = (builder.input(name, (1, LENGTH), "int32") for name in ("input_ids", "attention_mask"))
    table = builder.constant(TABLE[:, :classes].ravel().tolist(), (len(PIECES), classes))
    hidden = builder.node("gather", table, builder.node("reshape", ids, shape=(LENGTH,)), axis=0)
    weights = builder.node("cast", mask, dtype="float32")
    builder.output(builder.node("matmul", weights, hidden), "logits")
    return builder


def expected(numbers: list[int], several: bool = False) -> list[float]:
    logits = TABLE[numbers].sum(0).astype(np.float64)
    scores = 1 / (1 + np.exp(-logits)) if several else np.exp(logits) / np.exp(logits).sum()
    return [float(score) for score in scores]


def classified(text: str, target: Target, **options: Any) -> list[Category]:
    async def found() -> list[Category]:
        given = {"vocabulary": PIECES, "labels": LABELS, "backend": target.backend, **options}
        with await TextClassifier.create(encoder(), **given) as task:
            return await task.classify(text)

    return run(found())  # type: ignore[no-any-return]


@pytest.mark.parametrize("target", EVERYWHERE, ids=str)
def test_scores_are_those_of_the_texts_pieces(target: Target) -> None:
    target.demand()
    numbers = [2, 4, 6, 7, 1, 3]  # [CLS] good film ##s [UNK] [SEP]
    for several in (False, True):
        wanted = expected(numbers, several)
        found = classified("Good films, xyzzy"[:10] + " xyzzy", target, several=several)
        order = sorted(range(CLASSES), key=lambda i: -wanted[i])
        assert [one.index for one in found] == order
        assert [one.label for one in found] == [LABELS[i] for i in order]
        assert [one.score for one in found] == pytest.approx([wanted[i] for i in order], abs=1e-5)


def test_what_does_not_fit_is_refused() -> None:
    target = next(t for t in EVERYWHERE if t.backend == "wasm")
    assert len(classified("bad", target, most=2)) == 2
    with pytest.raises(InputError, match="has 3 classes; 2 labels are given"):
        classified("bad", target, labels=LABELS[:2])
    with pytest.raises(InputError, match="is not text"):
        classified(b"bad", target)  # type: ignore[arg-type]
    builder = webinfer.GraphBuilder("other")
    builder.output(builder.node("relu", builder.input("x", (1, 3))), "y")
    with pytest.raises(ModelFormatError, match="does not classify text"):
        run(TextClassifier.create(builder, vocabulary=PIECES, backend="wasm"))
