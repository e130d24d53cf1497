"""Tasks on sound, text and bytes in the browser, with small models in the place of the real ones."""

from __future__ import annotations

from typing import Any

from e2e_tests.pages import DemoPage

PROGRAM = """
import json
import webinfer
from array import array
from webinfer.tasks import FileRules, FileTypeClassifier, SentenceEmbedder, VoiceActivityDetector

def loudness():
    g = webinfer.GraphBuilder("loudness")
    x, state = g.input("input", (1, 576)), g.input("state", (2, 1, 128))
    g.output(g.node("reduce_max", x, axes=(1,), keep_dims=True), "output")
    g.output(g.node("linear", state, a=1.0, b=1.0), "stateN")
    return g

def letters():
    g = webinfer.GraphBuilder("letters")
    data = g.node("cast", g.input("bytes", (1, 8), "int32"), dtype="float32")
    first = g.node("matmul", data, g.constant([1.0] + [0.0] * 7, (8, 1)))
    away = g.node("abs", g.node("sub", first, g.constant([97.0, 98.0], (1, 2))))
    g.output(g.node("softmax", g.node("linear", away, a=-8.0, b=0.0), axis=1), "scores")
    return g

def meanings():
    g = webinfer.GraphBuilder("meanings")
    ids = g.input("input_ids", (1, 4), "int32")
    g.input("attention_mask", (1, 4), "int32")
    table = g.constant([float(i % 3 == j) for i in range(6) for j in range(3)], (6, 3))
    g.output(g.node("gather", table, ids, axis=0), "hidden")
    return g

async def test():
    found = {}
    with await VoiceActivityDetector.create(loudness(), padding_ms=0, backend="wasm") as task:
        loud = array("f", [0.0] * 24000 + [0.9] * 48000 + [0.0] * 24000)  # half a second, a second, half a second
        found["speech"] = [[round(s.start, 1), round(s.end, 1)] for s in await task.run((loud, 48000))]
    config = dict(beg_size=4, end_size=4, block_size=9, padding_token=256, min_file_size_for_dl=4)
    rules = FileRules.read(json.dumps(config | {"target_labels_space": ["a", "b"]}).encode(), b"{}")
    with await FileTypeClassifier.create(letters(), rules=rules, backend="wasm") as task:
        found["files"] = [(await task.classify(data)).label for data in (b"abcdef", b"bcdefg", b"")]
    with await SentenceEmbedder.create(
        meanings(), vocabulary=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "caf", "##es"], backend="wasm"
    ) as task:
        (one,) = await task.embed("Cafés")
        found["sentence"] = [one.pieces, [round(v, 3) for v in one.values]]
    return json.dumps(found)

await test()
"""


def test_sound_bytes_and_text_go_through_tasks(face_page: DemoPage) -> None:
    found: dict[str, Any] = face_page.python(PROGRAM)
    assert found["speech"] == [[0.5, 1.5]]
    assert found["files"] == ["a", "b", "empty"]
    # [CLS] caf ##es [SEP] are rows 2, 4, 5, 3 of the table: 0 0 1, 0 1 0, 0 0 1, 1 0 0
    assert found["sentence"] == [4, [0.408, 0.408, 0.816]]
