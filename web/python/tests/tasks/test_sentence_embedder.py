"""Word pieces by BERT's rules, and meanings of sentences by a small model in the place of the real one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import TARGETS, Target

import webinfer
from webinfer.errors import InputError, ModelFormatError
from webinfer.session import loading
from webinfer.tasks import SentenceEmbedder
from webinfer.tasks.word_pieces import WordPieces, words_of

EVERYWHERE = [t for t in TARGETS if dict(t.options).get("isa", "relaxed") == "relaxed"]
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat", "##s", "un", "##believ", "##able", "a", "b", "!", "中", "##ab"]
TABLE = np.random.default_rng(5).normal(size=(len(PIECES), 3)).astype(np.float32)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hello, World!", ["hello", ",", "world", "!"]),
        ("naïve CAFÉ e\u0301", ["naive", "cafe", "e"]),
        ("don't $5+3", ["don", "'", "t", "$", "5", "+", "3"]),
        ("日本x 한국", ["日", "本", "x", "\u1112\u1161\u11ab\u1100\u116e\u11a8"]),
        ("ΣΑΣ İ", ["σασ", "i"]),
        ("a\u00a0b\u3000c\u2028d\te\nf", ["a", "b", "c", "d", "e", "f"]),
        ("x\u0000y\ufffdz\u200bw\u00adv\x07u", ["xyzwvu"]),
        ("«q» — ・", ["«", "q", "»", "—", "・"]),
        ("½ ²", ["½", "²"]),
        ("", []),
    ],
)
def test_texts_become_words(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("cats", ["cat", "##s"]),
        ("Unbelievable!", ["un", "##believ", "##able", "!"]),
        ("dog cat", ["[UNK]", "cat"]),
        ("catx", ["[UNK]"]),  # a word is known as a whole or not at all
        ("a" + "ab" * 49 + " a" + "ab" * 50, ["a", *["##ab"] * 49, "[UNK]"]),  # 99 and 101 letters
        ("a中b", ["a", "中", "b"]),
        ("", []),
    ],
)
def test_words_become_the_longest_pieces(text: str, pieces: list[str]) -> None:
    vocabulary = WordPieces("\n".join(PIECES).encode() + b"\n")
    numbers = [PIECES.index(piece) for piece in ("[CLS]", *pieces, "[SEP]")]
    assert vocabulary.encode(text, 256) == numbers
    assert vocabulary.encode(text, 256) == numbers  # and from memory
    assert vocabulary.encode(text, 3) == [*numbers[:2], 3] if pieces else numbers


def open_model() -> bytes:
    """The rows of TABLE for the numbers, of any number of sentences of any length."""
    onnx = pytest.importorskip("onnx")
    names = ("input_ids", "attention_mask", "token_type_ids")
    infos = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.INT64, ["batch", "length"]) for n in names]
    end = onnx.helper.make_tensor_value_info("hidden", onnx.TensorProto.FLOAT, ["batch", "length", 3])
    node = onnx.helper.make_node("Gather", ["table", "input_ids"], ["hidden"])
    table = onnx.numpy_helper.from_array(TABLE, "table")
    graph = onnx.helper.make_graph([node], "g", infos, [end], [table])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    return bytes(model.SerializeToString())


def fixed_model(length: int = 5) -> webinfer.GraphBuilder:
    """The same for one sentence of one length, with 32-bit numbers."""
    builder = webinfer.GraphBuilder()
    ids, mask = (builder.input(name, (1, length), "int32") for name in ("input_ids", "attention_mask"))
    builder.output(builder.node("gather", TABLE, ids, axis=0), "hidden")
    builder.node("identity", mask)
    return builder


def meaning(numbers: list[int]) -> Any:
    total = TABLE[numbers].sum(axis=0)
    return pytest.approx((total / np.linalg.norm(total)).tolist(), abs=1e-5)


@pytest.mark.parametrize("target", EVERYWHERE, ids=str)
def test_a_meaning_is_the_mean_of_the_pieces_alone(target: Target) -> None:
    target.demand()
    with run(SentenceEmbedder.create(open_model(), vocabulary=PIECES, backend=target.backend)) as task:
        found = run(task.embed(["cats", "a b " * 9, "Unbelievable!"]))
        assert [one.text for one in found] == ["cats", "a b " * 9, "Unbelievable!"]
        assert [one.pieces for one in found] == [4, 20, 6]
        assert found[0].values == meaning([2, 4, 5, 3])
        assert found[1].values == meaning([2, *[9, 10] * 9, 3])
        assert found[2].values == meaning([2, 6, 7, 8, 11, 3])
        assert run(task.similarity("cats", "Cats")) == pytest.approx(1, abs=1e-5)
        assert found[0].similarity(found[1]) == pytest.approx(np.dot(found[0].values, found[1].values), abs=1e-6)
        assert run(task.run("cats"))[0].values == found[0].values
        assert task.beside == {"similarities": []}
        run(task.embed(["cats", "a b " * 9, "Cats"]))
        assert task.beside == {"similarities": pytest.approx([found[0].similarity(found[1]), 1], abs=1e-5)}
        assert run(task.embed([])) == []


def test_many_sentences_share_few_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    reads, read_model = list[Any](), loading.read_model

    def counting(*arguments: Any) -> Any:
        reads.append(arguments)
        return read_model(*arguments)

    with run(SentenceEmbedder.create(open_model(), vocabulary=PIECES, backend="wasm")) as task:
        monkeypatch.setattr(loading, "read_model", counting)
        texts = ["cat " * n for n in range(30)]
        found = run(task.embed(texts))
        assert len(reads) == 2  # the second set of sizes is read with symbols, the others are bound
        assert [one.pieces for one in found] == [n + 2 for n in range(30)]
        assert all(one.values == meaning([2, *[4] * n, 3]) for n, one in enumerate(found))


def test_a_model_of_one_length_gets_that_length() -> None:
    with run(SentenceEmbedder.create(fixed_model(), vocabulary=PIECES, backend="wasm")) as task:
        (found,) = run(task.embed("a b cats a b"))
        assert found.values == meaning([2, 9, 10, 4, 3])
        assert found.pieces == 5


def test_what_cannot_embed_is_refused() -> None:
    with pytest.raises(InputError, match=r"give vocabulary=…"):
        run(SentenceEmbedder.create(fixed_model(), backend="wasm"))
    with pytest.raises(InputError, match=r"no \[CLS\], \[SEP\]"):
        run(SentenceEmbedder.create(fixed_model(), vocabulary=["[PAD]", "[UNK]"], backend="wasm"))
    other = webinfer.GraphBuilder()
    other.output(other.node("relu", other.input("x", (1, 8))), "y")
    with pytest.raises(ModelFormatError, match="not a sentence model"):
        run(SentenceEmbedder.create(other, vocabulary=PIECES, backend="wasm"))
    with run(SentenceEmbedder.create(fixed_model(), vocabulary=PIECES, backend="wasm")) as task:
        with pytest.raises(InputError, match="7 is not text"):
            run(task.embed(["a", 7]))
