"""Packages of tasks that take no picture: speech, kinds of files, meanings and classes of texts."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tasks import test_file_classifier as file_models
from tests.tasks import test_sentence_embedder as sentence_models
from tests.tasks import test_text_classifier as text_models
from tests.tasks import test_voice_detector as voice_models

from build_scripts.tests.in_node import PLAYER, answer_of, node
from webinfer import tasks
from webinfer.cli import main
from webinfer.host import current
from webinfer.package import compile_model
from webinfer.tasks.audio import Listener, read_audio

__all__ = ["node"]  # a fixture
FOUND = """
import { readFileSync } from "node:fs";
const [player, file, cases] = process.argv.slice(2);
const { load } = await import(player);
const model = await load(new Uint8Array(readFileSync(file)), { backend: "wasm" });
const forms = {
  text: (text) => text,
  blob: (text) => new Blob([Buffer.from(text, "base64")]),
  sound: ({ samples, rate }) => ({ samples: Float32Array.from(samples), rate }),
};
const found = [];
for (const [form, given, numbers] of JSON.parse(readFileSync(cases))) {
  found.push(await model.run(forms[form](given), numbers ?? {}).catch(({ code, message }) => [code, message]));
}
const told = (_, value) => (ArrayBuffer.isView(value) ? Array.from(value) : value);
process.stdout.write(JSON.stringify({ task: model.task, found }, told));
"""


def played(model: Any, task: str, cases: list[Any], node: str, folder: Path, **options: Any) -> list[Any]:
    """What the player's model finds in each case: [form, what is given, numbers]."""
    made = compile_model(model, backend="wasm", builds=("simd128",), threads=False, task=task, task_options=options)
    (folder / "m.webinfer").write_bytes(asyncio.run(made))
    return told_of(task, cases, node, folder)


def told_of(task: str, cases: list[Any], node: str, folder: Path) -> list[Any]:
    """As `played`, of the package m.webinfer in the folder."""
    (folder / "cases").write_text(json.dumps(cases))
    (folder / "found.mjs").write_text(FOUND)
    answer = answer_of([node, folder / "found.mjs", PLAYER, folder / "m.webinfer", folder / "cases"])
    assert answer["task"] == task
    found: list[Any] = answer["found"]
    return found


@pytest.mark.parametrize("states", [("state",), ("h", "c")], ids=["one-state", "two-states"])
def test_speech_is_the_engines(states: tuple[str, ...], node: str, tmp_path: Path) -> None:
    model = voice_models.saved(*states, rated=len(states) == 1)
    levels = [(0.1, 5), (0.9, 12), (0.2, 2), (0.7, 10), (0.0, 9), (0.8, 3), (0.1, 6), (0.6, 20)]
    heard = voice_models.recording(*levels)[:-100]
    rule = {"threshold": 0.65, "min_silence_ms": 200}
    cases = [["sound", {"samples": heard.tolist(), "rate": 16000}, given] for given in ({}, rule)]
    cases.append(["sound", {"samples": heard.tolist(), "rate": 22050}, {}])
    cases.append(["sound", {"samples": [0.0], "rate": 999.5}, {}])
    *told, refused = played(model, "voice-activity", cases, node, tmp_path)
    assert refused[0] == "input"
    assert "the recording has 999.5 samples a second, the model hears 16000" in refused[1]
    for found, options, rate in zip(told, ({}, rule, {}), (16000, 16000, 22050), strict=True):
        with voice_models.detector(model=model, **options) as detector:
            wanted = asyncio.run(detector.detect(heard, rate))
        assert len(found) == len(wanted) > 1
        times = [(one["start"], one["end"], one["score"]) for one in found]
        np.testing.assert_allclose(times, [(one.start, one.end, one.score) for one in wanted], atol=1e-6)


HEARD = """
import { readFileSync } from "node:fs";
const [script, given] = process.argv.slice(2);
const { heard } = await import(script);
const [samples, rates, wanted] = JSON.parse(readFileSync(given));
const recordings = rates.map((rate) => ({ samples: Float32Array.from(samples), rate }));
process.stdout.write(JSON.stringify(recordings.map((recording) => [...heard(null, recording, wanted)])));
"""


@pytest.mark.parametrize("wanted", [16000, 44100])
def test_recordings_of_other_rates_are_heard_as_the_engine_hears_them(wanted: int, node: str, tmp_path: Path) -> None:
    samples = np.random.default_rng(2).uniform(-1, 1, 2500).astype(np.float32)
    rates = [1000, 8000, 11025, 16000, 22050, 44100, 48000, 384000]
    (tmp_path / "given").write_text(json.dumps([samples.tolist(), rates, wanted]))
    (tmp_path / "heard.mjs").write_text(HEARD)
    script = PLAYER.rpartition("/")[0] + "/tasks/resampling.js"
    told = answer_of([node, tmp_path / "heard.mjs", script, tmp_path / "given"])

    async def theirs() -> list[Any]:
        listener = Listener(current())
        try:
            return [np.array(await listener.hear(read_audio(samples, rate), wanted)) for rate in rates]
        finally:
            listener.close()

    for mine, one in zip(told, asyncio.run(theirs()), strict=True):
        np.testing.assert_allclose(mine, one, atol=2e-6)


FILES = [
    b"abcdefghij", b" \n bbcdefg\t\t", b"c" * 50 + b" " * 8, b"abc", b"ab", b"", b"\xff\xfe", b"  \n ab",
    b"b" + b"\0" * 40,
]  # fmt: skip


@pytest.mark.parametrize(("mode", "most"), [("high", 1), ("guess", 3)])
def test_kinds_of_files_are_the_engines(mode: str, most: int, node: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"rules": file_models.RULES, "mode": mode, "most": most}
    cases = [["blob", base64.b64encode(data).decode()] for data in FILES]
    told = played(file_models.first_letter(), "file-type", cases, node, tmp_path, **options)

    async def kinds() -> list[Any]:
        with await tasks.FileTypeClassifier.create(file_models.first_letter(), backend="wasm", **options) as task:
            return [await task.run(data) for data in FILES]

    for found, those in zip(told, asyncio.run(kinds()), strict=True):
        assert [one.pop("score") for one in found] == pytest.approx([one.score for one in those], abs=1e-6)
        names = {"mimeType": "mime_type"}
        for one, kind in zip(found, those, strict=True):
            assert {key: getattr(kind, names.get(key, key)) for key in one} == one


TEXTS = [
    "Unbelievable cats!", "naïve CAFÉ e\u0301", "日本x 한국", "ΣΑΣ İ", "x\u0000y\ufffdz\u200bw\u00adv\x07u", "½ ² $5+3",
    "a\u00a0b\u3000c\u2028d\te\nf", "", "cat " * 300, "a" + "ab" * 50, "中\U00020001a", "\x85\x1c\u2003b",
]  # fmt: skip


def test_meanings_are_the_engines(node: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"vocabulary": sentence_models.PIECES}
    (tmp_path / "m.onnx").write_bytes(sentence_models.open_model())
    (tmp_path / "vocabulary.txt").write_text("\n".join(sentence_models.PIECES) + "\n")
    arguments = ["--task", "sentence-embedder", "--set", f"vocabulary=@{tmp_path / 'vocabulary.txt'}"]
    arguments += ["--backend", "wasm", "--build", "simd128", "-o", str(tmp_path / "m.webinfer")]
    assert main(["compile", str(tmp_path / "m.onnx"), *arguments]) == 0
    cases = [["text", TEXTS], ["text", TEXTS[0]]]
    told, one = told_of("sentence-embedding", cases, node, tmp_path)

    async def meanings() -> list[Any]:
        with await tasks.SentenceEmbedder.create(sentence_models.open_model(), backend="wasm", **options) as task:
            return await task.embed(TEXTS)

    wanted = asyncio.run(meanings())
    assert [found["pieces"] for found in told] == [each.pieces for each in wanted]
    np.testing.assert_allclose([found["values"] for found in told], [each.values for each in wanted], atol=1e-6)
    assert one == told[:1]


def test_classes_of_texts_are_the_engines(node: str, tmp_path: Path) -> None:
    given = ["Good films", "a bad film", "bad bad BAD films!", ""]
    options: dict[str, Any] = {"vocabulary": text_models.PIECES, "labels": text_models.LABELS, "most": 2}
    cases = [["text", text] for text in given]
    told = played(text_models.encoder(), "text-classification", cases, node, tmp_path, **options)

    async def classes() -> list[Any]:
        with await tasks.TextClassifier.create(text_models.encoder(), backend="wasm", **options) as task:
            return [await task.classify(text) for text in given]

    for found, wanted in zip(told, asyncio.run(classes()), strict=True):
        assert [(one["index"], one["label"]) for one in found] == [(one.index, one.label) for one in wanted]
        assert [one["score"] for one in found] == pytest.approx([one.score for one in wanted], abs=1e-6)
