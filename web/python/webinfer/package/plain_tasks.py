"""Tasks in packages that take no picture: speech in recordings, kinds of files, meanings and classes of texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from webinfer.tasks.token_inputs import IDS, KINDS, LENGTHS, MASK
from webinfer.tasks.voice_detector import CHUNKS, LONGEST_MS, RATE, SAMPLES, STATES, VoiceActivityDetector
from webinfer.tasks.word_pieces import WordPieces

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
            raise ModelFormatError(f"{session.name!r} is no Silero model: its inputs are {', '.join(sorted(names))}")
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
