"""Small tokenizers of every kind beside the ids that Hugging Face's library gives, recorded in tokenizer_cases.json."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path
from typing import Any

import pytest

from webinfer.errors import UnsupportedOpError
from webinfer.tasks.tokenizer_json import TokenizerJson

RECORDED = json.loads(Path(__file__).with_name("tokenizer_cases.json").read_text())
CASES = {case["name"]: case for case in RECORDED["cases"]}
MANY = 1000


def tokenizer(facts: Any) -> TokenizerJson:
    return TokenizerJson(json.dumps(facts).encode())


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_ids_are_those_of_the_library(case: Any) -> None:
    read = tokenizer(case["tokenizer"])
    assert [read.encode(text, MANY)[0] for text in RECORDED["texts"]] == case["ids"]
    assert [*read.encode("cat", MANY, "a cat")] == case["pair"]


def test_of_two_texts_the_first_is_cut() -> None:
    read = tokenizer(CASES["bert"]["tokenizer"])
    assert read.encode("cat cat cat", 7, "cats") == ([2, 5, 5, 3, 5, 6, 3], [0, 0, 0, 0, 1, 1, 1])
    assert read.encode("cat cat cat", 4) == ([2, 5, 5, 3], [0] * 4)


def test_padding_is_as_the_file_says() -> None:
    assert tokenizer(CASES["unigram"]["tokenizer"]).padding == 3
    assert tokenizer(CASES["bert"]["tokenizer"]).padding == 0


def charsmap(letter: str, becomes: str) -> str:
    """A table of SentencePiece with one row: a chain of units, each where the one before and a byte say."""
    units = [0] * 1024
    key, at = letter.encode(), 0
    units[0] = 256 << 10
    for i, byte in enumerate(key):
        base = units[at] >> 10
        at ^= base ^ byte
        units[at] = byte | (at ^ (512 + 256 * (i % 2))) << 10 | (i == len(key) - 1) << 8
    leaf = at ^ (units[at] >> 10)
    units[leaf] = 1 << 31
    packed = struct.pack(f"<{len(units)}I", *units)
    return base64.b64encode(struct.pack("<I", len(packed)) + packed + becomes.encode() + b"\0").decode()


def test_a_table_of_sentencepiece_is_walked_as_the_library_walks_it() -> None:
    facts = {**CASES["bert"]["tokenizer"], "pre_tokenizer": None}
    facts["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": charsmap("ﬁ", "ca")}
    assert tokenizer(facts).encode("ﬁt", MANY)[0] == [2, 5, 3]  # as of "cat"


def test_unknown_kinds_and_expressions_are_refused_by_name() -> None:
    facts = CASES["bert"]["tokenizer"]
    with pytest.raises(UnsupportedOpError, match=r"the normalizer .*Nmt.* of a tokenizer\.json"):
        tokenizer({**facts, "normalizer": {"type": "Nmt"}})
    split = {"type": "Split", "pattern": {"Regex": r"\p{Han}"}, "behavior": "Isolated", "invert": False}
    with pytest.raises(UnsupportedOpError, match=r"the regular expression .*Han"):
        tokenizer({**facts, "pre_tokenizer": split})
