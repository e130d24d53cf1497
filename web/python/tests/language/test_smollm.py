"""SmolLM2-135M itself, where `python3 -m build_scripts build models smollm2` has fetched it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.language.decoder_reference import ReferenceDecoder
from tests.ops.case_graphs import run

from webinfer.errors import ModelFormatError
from webinfer.host import current
from webinfer.language.generator import TextGenerator
from webinfer.models.registry import locate_model

CHAT = [{"role": "user", "content": "What is the capital of France? Answer in one sentence."}]
TEXTS = [  # and their tokens, as PyPI's tokenizers 0.23.3 finds them
    ("Hello world, it's 2026!", [19556, 905, 28, 357, 506, 216, 34, 32, 34, 38, 17]),
    ("  def f(x):\n\treturn x ** 2\n", [216, 753, 275, 24, 104, 727, 198, 197, 5406, 1792, 1903, 216, 34, 198]),
    (
        "Zażółć gęślą jaźń 中文 😀",
        [
            74,
            81,
            144,
            137,
            7342,
            25954,
            27804,
            310,
            48137,
            27588,
            92,
            143,
            223,
            48868,
            144,
            135,
            41146,
            216,
            28589,
            29184,
            40303,
            218,
        ],
    ),
]


@pytest.fixture(scope="module")
def place() -> str:
    try:
        return locate_model("smollm2-135m", current().asset)
    except ModelFormatError:
        pytest.skip("smollm2 is not in build/models; `python3 -m build_scripts build models smollm2` fetches it")


@pytest.fixture(scope="module")
def generator(place: str) -> Iterator[TextGenerator]:
    found: TextGenerator = run(TextGenerator.create("smollm2-135m", context=256))
    yield found
    found.close()


@pytest.mark.parametrize(("text", "tokens"), TEXTS)
def test_words_are_those_of_the_published_tokenizer(generator: TextGenerator, text: str, tokens: list[int]) -> None:
    assert generator.model.tokenizer.encode(text) == tokens
    assert generator.model.tokenizer.decode(tokens) == text


def test_logits_and_words_are_those_of_float32(generator: TextGenerator, place: str) -> None:
    with open(place, "rb") as file:
        reference = ReferenceDecoder(file.read())
    tokens, chat = generator.tokenize(CHAT), generator.conversation()
    got, given = [], list(tokens)
    for _ in range(6):
        got.append(np.array(run(chat.logits(given)).numpy())[0])
        given = [int(got[-1].argmax())]
        tokens = [*tokens, *given]
    want = reference.logits(tokens[:-1])[-6:]
    assert np.abs(np.array(got) - want).max() < 0.002 * np.ptp(want)
    assert np.array(got).argmax(1).tolist() == want.argmax(1).tolist()
    assert "Paris" in run(generator.run(CHAT, max_tokens=20))
