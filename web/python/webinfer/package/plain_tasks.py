"""Tasks in packages that take no picture: speech in recordings, kinds of files, meanings and classes of texts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from webinfer.errors import InputError, ModelFormatError
from webinfer.graph.ir import Graph
from webinfer.host.interface import Host
from webinfer.package.task_parts import PackagedTask
from webinfer.session.loading import load
from webinfer.session.options import real_number, whole_number
from webinfer.session.plan_cache import WithPostprocessing
from webinfer.tasks.base import files_beside
from webinfer.tasks.file_classifier import EMPTY, MODES, TEXT, UNKNOWN, FileRules, FileTypeClassifier, with_best_labels
from webinfer.tasks.file_classifier import MOST as MOST_KINDS
from webinfer.tasks.sentence_embedder import MEANING, SentenceEmbedder, with_meaning
from webinfer.tasks.text_classifier import MOST as MOST_CLASSES
from webinfer.tasks.text_classifier import SCORES, TextClassifier, with_scores
from webinfer.tasks.text_models import CLASSES, SUMS, bytes_of, letters_in, with_letters, with_map, with_turn
from webinfer.tasks.text_models import MASK as MASK_OF_TEXT
from webinfer.tasks.text_models import SCORES as SCORES_OF_LETTERS
from webinfer.tasks.text_reader import (
    LINE_HEIGHT,
    LONGEST_LINE,
    MIN_SCORE,
    MOST_SIDE,
    SHORTEST_LINE,
    STEP,
    TURNS,
    TextReader,
)
from webinfer.tasks.token_inputs import IDS, KINDS, LENGTHS, MASK
from webinfer.tasks.voice_detector import CHUNKS, LONGEST_MS, RATE, SAMPLES, STATES, VoiceActivityDetector
from webinfer.tasks.word_pieces import WordPieces

# Sizes for which there are plans, in pixels: of pages, of lines. Others are bound to the plan of their kind.
PAGES = tuple((width, height) for width in (960, 640, 320, 96, 32) for height in (960, 736, 320, 64, 32))
WIDTHS = (*range(SHORTEST_LINE, SHORTEST_LINE + 33), 480, 777, 1280, 2401, LONGEST_LINE)
HEARD_RATE = 16000  # of packaged detectors of speech, samples a second
VOCABULARY = "vocabulary"


async def voice(
    model: Any, host: Host, *, threshold: float = 0.5, min_speech_ms: float = 250, min_silence_ms: float = 100,
    padding_ms: float = 30,
) -> PackagedTask:  # fmt: skip
    """Stretches of speech, as `VoiceActivityDetector` finds them at 16 kHz; one chunk a run."""
    times = {"min_speech_ms": min_speech_ms, "min_silence_ms": min_silence_ms, "padding_ms": padding_ms}
    numbers = {"threshold": [real_number("threshold", threshold, 1)]}
    numbers |= {name: [real_number(name, value, LONGEST_MS)] for name, value in times.items()}
    chunk, context = CHUNKS[HEARD_RATE]
    with await load(model, backend="wasm", host=host) as session:
        names = {info.name for info in session.inputs}
        states = next((state for state in STATES if names - {RATE} == {SAMPLES, *state}), None)
        if states is None:
            raise ModelFormatError(f"{session.name!r} is not a Silero model: its inputs are {', '.join(sorted(names))}")
        opened = {i.name for i in session.inputs if any(not isinstance(size, int) for size in i.shape)}
    shapes = {name: shape for name, shape in {SAMPLES: (1, chunk + context), **states}.items() if name in opened}
    reading = {"shapes": shapes, "values": {RATE: HEARD_RATE} if RATE in names else None}

    def facts(graph: Graph) -> Mapping[str, Any]:
        given = {value.name for value in graph.inputs}
        constants = {name: [0] * value.type.size for name in states for value in graph.inputs if value.name == name}
        scores, *kept = (value.name for value in graph.outputs)
        return {
            "numbers": numbers,
            "constants": constants | ({RATE: [HEARD_RATE]} if RATE in given else {}),
            "decode": {
                "kind": "speech", "input": SAMPLES, "scores": scores, "states": list(zip(states, kept, strict=True)),
                "chunk": chunk, "context": context, "rate": HEARD_RATE,
            },
        }  # fmt: skip

    return PackagedTask(VoiceActivityDetector.name, model, facts, reading=reading)


async def files(
    model: Any, host: Host, *, mode: str = "high", most: int = 1, rules: FileRules | None = None
) -> PackagedTask:
    """Kinds of files, as `FileTypeClassifier` tells them."""
    if mode not in MODES:
        raise InputError(f"mode is {mode!r}; choose one of {', '.join(MODES)}")
    most = whole_number("most", most, 1, MOST_KINDS)
    rules = rules or FileRules.read(*await files_beside(model, host, "rules=FileRules(…)"))
    with await load(model, backend="wasm", host=host) as session:
        wanted = (1, rules.config["beg_size"] + rules.config["end_size"])
        opened = [i.name for i in session.inputs if any(not isinstance(size, int) for size in i.shape)]

    def facts(graph: Graph) -> Mapping[str, Any]:
        config, labels = rules.config, list(rules.config["target_labels_space"])
        written_over = config.get("overwrite_map", {})
        told = dict.fromkeys([*labels, *written_over.values(), TEXT, UNKNOWN, EMPTY])
        kinds = {label: rules.kinds.get(label, {}) for label in told}
        score, label = (value.name for value in graph.outputs)
        return {
            "numbers": {},
            "decode": {
                "kind": "files", "input": graph.inputs[0].name, "scores": score, "places": label, "labels": labels,
                "begin": config["beg_size"], "end": config["end_size"], "block": config["block_size"],
                "filling": config["padding_token"], "least": config["min_file_size_for_dl"],
                "mode": mode, "medium": config.get("medium_confidence_threshold", 0.5),
                "high": config.get("thresholds", {}), "overwrite": written_over,
                "kinds": {
                    label: [bool(k.get("is_text")), *(k.get(n) or "" for n in ("mime_type", "group", "description"))]
                    for label, k in kinds.items()
                },
            },
        }  # fmt: skip

    reading = {"shapes": dict.fromkeys(opened, wanted)} if opened else {}
    return PackagedTask(FileTypeClassifier.name, with_best_labels(model, most), facts, reading=reading)


async def sentences(model: Any, host: Host, *, vocabulary: bytes | Sequence[str] | None = None) -> PackagedTask:
    """Vectors of sentences, as `SentenceEmbedder` makes them; the player has its own tokenizer."""
    if vocabulary is None:
        (vocabulary,) = await files_beside(model, host, "vocabulary=…")
    return _of_texts(SentenceEmbedder.name, with_meaning(model), vocabulary, {"kind": "sentences", "output": MEANING})


async def texts(
    model: Any, host: Host, *, vocabulary: bytes | Sequence[str] | None = None, labels: Sequence[str] = (),
    most: int = 5, several: bool = False,
) -> PackagedTask:  # fmt: skip
    """Classes of texts, as `TextClassifier` tells them; the player has its own tokenizer."""
    if vocabulary is None:
        raise InputError("no vocabulary is given; give vocabulary=…, that of the model's tokenizer")
    told = {
        "kind": "texts", "output": SCORES, "labels": list(labels), "most": whole_number("most", most, 1, MOST_CLASSES)
    }  # fmt: skip
    return _of_texts(TextClassifier.name, with_scores(model, several), vocabulary, told)


async def reading(
    model: Any, host: Host, *, detector: Any = "ppocr_v6_det_tiny", classifier: Any = "ppocr_v2_cls",
    min_score: float = MIN_SCORE, min_box_score: float = 0.4, most_side: int = MOST_SIDE,
    letters: Sequence[str] | None = None,
) -> PackagedTask:  # fmt: skip
    """Lines of text, as `TextReader` reads them; detector and classifier are packages within the reader's."""
    numbers = {
        "min_score": [real_number("min_score", min_score, 1)],
        "min_box_score": [real_number("min_box_score", min_box_score, 1)],
        "most_side": [whole_number("most_side", most_side, STEP, 4096)],
    }
    data, places = await bytes_of(model, host, None), await bytes_of(detector, host, None)
    known = letters_in(data) if letters is None else tuple(letters)

    async def part(source: WithPostprocessing, sizes: Sequence[tuple[int, int]], facts: Any = None) -> PackagedTask:
        with await load(source, backend="wasm", host=host) as session:
            (info,) = session.inputs
        rows = [{info.name: (1, 3, height, width)} for width, height in sizes]
        return PackagedTask(TextReader.name, source, facts, sizes=rows)

    def facts(graph: Graph) -> Mapping[str, Any]:
        told = {"kind": "ocr", "scores": SCORES_OF_LETTERS, "classes": CLASSES, "mask": MASK_OF_TEXT, "sums": SUMS}
        return {"numbers": numbers, "decode": told}

    parts = {"detector": await part(with_map(places), PAGES)}
    if classifier is not None:
        parts["classifier"] = await part(with_turn(await bytes_of(classifier, host, None)), TURNS)
    found = await part(with_letters(data, len(known)), [(width, LINE_HEIGHT) for width in WIDTHS], facts)
    return replace(found, parts=parts, files={"letters": json.dumps(known).encode()})


def _of_texts(
    name: str, source: WithPostprocessing, vocabulary: bytes | Sequence[str], decode: Mapping[str, Any]
) -> PackagedTask:
    """A task of an encoder: its vocabulary lies in the package, its open sizes are those of one text."""
    WordPieces(vocabulary)  # complains of what is none
    if not isinstance(vocabulary, (bytes, bytearray, memoryview)):
        vocabulary = "\n".join(vocabulary).encode()

    def facts(graph: Graph) -> Mapping[str, Any]:
        return {"numbers": {}, "decode": {**decode, "lengths": LENGTHS, "ids": IDS, "mask": MASK, "types": KINDS}}

    sizes = [dict.fromkeys((IDS, MASK, KINDS), (1, length)) for length in LENGTHS]
    return PackagedTask(name, source, facts, files={VOCABULARY: bytes(vocabulary)}, sizes=sizes)
