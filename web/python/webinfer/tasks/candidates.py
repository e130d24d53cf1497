"""Labels that the caller makes up, for zero-shot classification: the texts made of them, their scores, the result."""

from __future__ import annotations

import math
from collections.abc import Sequence

from webinfer.errors import InputError
from webinfer.tasks.base import ResultField, ResultSchema
from webinfer.tasks.classifier import Category

PLACE = "{}"
RESULT = ResultSchema(
    "categories", "categories", "Categories", "Category",
    (ResultField("label", "text", ""), ResultField("score", "number", "0..1")),
)  # fmt: skip


def checked_labels(labels: Sequence[str] | str) -> tuple[str, ...]:
    """Labels in a list, or in a text with commas between them.

    Raises:  InputError if one is not text
    """
    given = [label.strip() for label in labels.split(",")] if isinstance(labels, str) else list(labels)
    if wrong := [label for label in given if not isinstance(label, str)]:
        raise InputError(f"candidate_labels has {wrong[0]!r}, which is not text")
    return tuple(label for label in given if label)


def hypotheses(labels: Sequence[str], template: str) -> list[str]:
    """What the model reads of each label.

    Raises:  InputError if there are no labels, or the template has no place for them
    """
    if not isinstance(template, str) or PLACE not in template:
        raise InputError(f"hypothesis_template is {template!r}, needs a text with {PLACE} in the label's place")
    if not labels:
        raise InputError("no labels are given; give candidate_labels=[…]")
    return [template.replace(PLACE, label) for label in labels]


def softmax(logits: Sequence[float]) -> list[float]:
    """Scores that sum to 1."""
    highest = max(logits)
    powers = [math.exp(logit - highest) for logit in logits]
    total = sum(powers)
    return [power / total for power in powers]


def sigmoid(logits: Sequence[float]) -> list[float]:
    """Scores of 0..1, each on its own."""
    return [1 / (1 + math.exp(-logit)) if logit > 0 else 1 - 1 / (1 + math.exp(logit)) for logit in logits]


def ranked(labels: Sequence[str], scores: Sequence[float]) -> list[Category]:
    """A category for each label, best first; its index is the label's place."""
    found = [Category(i, label, score) for i, (label, score) in enumerate(zip(labels, scores, strict=True))]
    return sorted(found, key=lambda one: -one.score)
