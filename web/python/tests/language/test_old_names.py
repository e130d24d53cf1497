"""Names that the text generator had before release 0.2 still work, with a warning that gives the new name."""

import asyncio
import warnings

import pytest
from tests.language.test_language import CHAT, MODEL, run

import webinfer


def test_old_arguments_and_methods_warn_and_do_the_same() -> None:
    async def both() -> tuple[str, str, str]:
        async with await webinfer.pipeline("text-generation", MODEL, backend="wasm") as generator:
            with pytest.warns(DeprecationWarning, match="max_words= is deprecated .* use max_tokens="):
                old = await generator.run(CHAT, max_words=5)
            with pytest.warns(DeprecationWarning, match=r"TextGenerator.words is deprecated .* use tokenize"):
                assert generator.words("hello") == generator.tokenize("hello")
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                new = await generator.run(CHAT, max_tokens=5)
                alias = await generator.run(CHAT, max_new_tokens=5)
        return old, new, alias

    old, new, alias = run(both())
    assert old == new == alias


def test_the_old_batch_argument_opens_a_batch() -> None:
    async def opened() -> int:
        with pytest.warns(DeprecationWarning, match="together= is deprecated .* use batch_size="):
            generator = await webinfer.pipeline("text-generation", MODEL, backend="wasm", together=2)
        size: int = generator.model.batch_size
        generator.close()
        return size

    assert asyncio.run(opened()) == 2
