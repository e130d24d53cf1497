"""Kinds of files: what the model sees of bytes, when it is believed, and a small model in the place of the real one."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import TARGETS, Target

import webinfer
from webinfer.errors import InputError, IntegrityError, ModelFormatError
from webinfer.host.interface import Progress
from webinfer.host.native import NativeHost
from webinfer.tasks import FileRules, FileTypeClassifier

EVERYWHERE = [t for t in TARGETS if dict(t.options).get("isa", "relaxed") == "relaxed"]
CONFIG = {
    "beg_size": 4, "end_size": 3, "block_size": 10, "padding_token": 256, "min_file_size_for_dl": 3,
    "medium_confidence_threshold": 0.5, "thresholds": {"b": 0.9}, "overwrite_map": {"c": "unknown"},
    "target_labels_space": ["a", "b", "c"],
}  # fmt: skip
KINDS: dict[str, dict[str, object]] = {
    "a": {"is_text": False, "mime_type": "x/a", "group": "g", "description": "An a"},
    "b": {"is_text": True, "mime_type": "x/b", "group": None, "description": "A b"},
}
RULES = FileRules.read(json.dumps(CONFIG).encode(), json.dumps(KINDS).encode())


def first_letter() -> webinfer.GraphBuilder:
    """A model whose scores are the likenesses of the first byte to a, b and c."""
    builder = webinfer.GraphBuilder("letters")
    given = builder.node("cast", builder.input("bytes", (1, 7), "int32"), dtype="float32")
    first = np.zeros((7, 3), np.float32)
    first[0] = 1
    away = builder.node("sub", builder.node("matmul", given, first), np.array([[97, 98, 99]], np.float32))
    builder.output(
        builder.node("softmax", builder.node("linear", builder.node("abs", away), a=-2.0, b=0.0), axis=1), "y"
    )
    return builder


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"abcdefghij", [*b"abcd", *b"hij"]),
        (b" \n abcdefg\t\t", [*b"abcd", *b"efg"]),
        (b"abcd", [*b"abcd", *b"bcd"]),
        (b"abc", [*b"abc", 256, *b"abc"]),
        (b"abc" + b" " * 30, [*b"abc ", 256, 256, 256]),  # the end of the block has nothing but white space
        (b"ab", None),
        (b"  \n ab", None),
    ],
)
def test_the_model_sees_both_ends_without_white_space(data: bytes, wanted: list[int] | None) -> None:
    window = RULES.window(memoryview(data))
    assert (None if window is None else window.tolist()) == wanted


@pytest.mark.parametrize(
    ("index", "score", "mode", "label"),
    [
        (0, 0.6, "high", "a"),
        (0, 0.4, "high", "unknown"),
        (0, 0.4, "medium", "unknown"),
        (0, 0.4, "guess", "a"),
        (1, 0.6, "high", "txt"),  # a label with a threshold of its own
        (1, 0.6, "medium", "b"),
        (1, 0.95, "high", "b"),
        (2, 0.95, "high", "unknown"),  # written over
    ],
)
def test_scores_decide_what_is_believed(index: int, score: float, mode: str, label: str) -> None:
    found = RULES.believed(index, score, mode)
    assert (found.label, found.score, found.guess) == (label, score, "abc"[index])


@pytest.mark.parametrize("target", EVERYWHERE, ids=str)
def test_bytes_get_their_kind(target: Target) -> None:
    target.demand()
    with run(FileTypeClassifier.create(first_letter(), rules=RULES, backend=target.backend)) as task:
        found = run(task.classify(bytearray(b"abcdef")))
        assert (found.label, found.mime_type, found.group, found.description) == ("a", "x/a", "g", "An a")
        assert found.score == pytest.approx(1 / (1 + np.exp(-2) + np.exp(-4)), abs=1e-5)
        assert run(task.classify(b"b1234")).label == "txt"  # 0.79 is less than 0.9
        task.mode = "guess"
        assert [one.label for one in run(task.run(memoryview(b"b1234")))] == ["b"]
        few = [run(task.classify(data)) for data in (b"", b"hi", b"\xff\xfe")]
        assert [(one.label, one.score, one.guess) for one in few] == [
            ("empty", 1, ""), ("txt", 1, ""), ("unknown", 1, ""),
        ]  # fmt: skip


def test_the_next_likely_kinds_come_behind_the_one_that_is_believed() -> None:
    with run(FileTypeClassifier.create(first_letter(), rules=RULES, most=2, backend="wasm")) as task:
        first, second = run(task.run(b"b1234"))
        assert (first.label, first.guess) == ("txt", "b")
        assert (second.label, second.guess) in (("a", "a"), ("c", "c"))
        assert second.score == pytest.approx(np.exp(-2) / (1 + 2 * np.exp(-2)), abs=1e-5)
        assert run(task.classify(b"b1234")) == first
        assert len(run(task.run(b""))) == 1
    with run(FileTypeClassifier.create(first_letter(), rules=RULES, most=9, backend="wasm")) as task:
        assert [one.guess for one in run(task.run(b"abcd"))] == ["a", "b", "c"]


class Shelf(NativeHost):
    """A host with files of its own."""

    async def fetch(self, url: str, progress: Progress | None = None, fresh: bool = False) -> memoryview:
        return memoryview(b"{}")

    def asset(self, *names: str) -> str:
        return names[0]


def test_what_cannot_be_a_classifier_is_refused() -> None:
    def create(model: Any, **options: Any) -> None:
        run(FileTypeClassifier.create(model, backend="wasm", **options))

    with pytest.raises(InputError, match=r"rules=FileRules"):
        create(first_letter())
    with pytest.raises(InputError, match="mode is 'low'"):
        create(first_letter(), rules=RULES, mode="low")
    with pytest.raises(IntegrityError, match=r"magika_standard_v3_3\.json: sha256"):
        create("magika_standard_v3_3", host=Shelf())
    with pytest.raises(InputError, match="has no beg_size"):
        FileRules.read(b"{}", b"{}")
    other = webinfer.GraphBuilder()
    other.output(other.node("relu", other.input("x", (1, 8))), "y")
    with pytest.raises(ModelFormatError, match="not a file classifier"):
        create(other, rules=RULES)
    with run(FileTypeClassifier.create(first_letter(), rules=RULES, backend="wasm")) as task:
        with pytest.raises(InputError, match="int has no bytes"):
            run(task.classify(7))
