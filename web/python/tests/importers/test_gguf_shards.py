"""A language model in several GGUF files is read from all of them, or says which are missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.importers.gguf_writer import gguf, tiny_decoder

import webinfer
from webinfer.errors import ModelFormatError
from webinfer.importers import formats
from webinfer.importers.gguf.container import read_file
from webinfer.importers.gguf.shards import read_files
from webinfer.language.generator import TextGenerator

TOKENS = ["<s>", "</s>", *"abcdefgh", "ab"]
FACTS = {
    "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "smollm", "tokenizer.ggml.tokens": TOKENS,
    "tokenizer.ggml.merges": ["a b"], "tokenizer.ggml.token_type": [3, 3, *[1] * 9], "tokenizer.ggml.eos_token_id": 1,
}  # fmt: skip
WHOLE = tiny_decoder(tokens=TOKENS, more=FACTS, context=32)
NAMES = [f"tiny-{number:05d}-of-00003.gguf" for number in (1, 2, 3)]


def shards(**wrong: int) -> dict[str, bytes]:
    """The model in three files, as gguf-split writes them: the metadata in the first."""
    file, found = read_file(memoryview(WHOLE), "tiny"), {}
    tensors = [(n, (t.type, t.sizes, bytes(t.data))) for n, t in file.tensors.items() if t.type is not None]
    for number, name in enumerate(NAMES):
        split = {"split.no": number, "split.count": 3, "split.tensors.count": len(tensors), **wrong}
        facts = {**(file.facts if number == 0 else {}), **split}
        found[name] = gguf(facts, dict(tensors[number::3]))
    return found


def test_a_model_in_several_files_is_the_model_in_one() -> None:
    files = {name: memoryview(data) for name, data in shards().items()}
    whole = read_file(memoryview(WHOLE), "tiny")
    for first in NAMES:
        others = {name: data for name, data in files.items() if name != first}
        file = read_files(files[first], first, others)
        assert {n: bytes(t.data) for n, t in file.tensors.items()} == {
            n: bytes(t.data) for n, t in whole.tensors.items()
        }
        assert {**file.facts, **whole.facts} == dict(file.facts)


def test_files_beside_the_first_are_found_by_path_and_by_mapping(tmp_path: Path) -> None:
    files = shards()
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "whole.gguf").write_bytes(WHOLE)
    sources = (
        tmp_path / NAMES[0],
        tmp_path / NAMES[2],
        {**files, "README.md": b"of the model"},
        tmp_path / "whole.gguf",
    )

    async def said(source: object) -> str:
        async with await TextGenerator.create(source, backend="wasm") as generator:
            return await generator.run("abc", max_tokens=6)

    assert len({webinfer.run_sync(said(source)) for source in sources}) == 1
    assert formats.files_beside(memoryview(files[NAMES[1]]), NAMES[1][:-5]) == (NAMES[0], NAMES[2])


def test_missing_foreign_and_damaged_files_are_named(tmp_path: Path) -> None:
    files = shards()
    (tmp_path / NAMES[0]).write_bytes(files[NAMES[0]])
    with pytest.raises(ModelFormatError, match=r"tiny-00002-of-00003.gguf"):
        webinfer.load_sync(tmp_path / NAMES[0], backend="wasm")
    with pytest.raises(
        ModelFormatError, match=r"file 1 of the 3 files of a model; …-00002-of-00003.gguf, .* are missing"
    ):
        webinfer.load_sync(files[NAMES[0]], backend="wasm")
    with pytest.raises(ModelFormatError, match=r"is a web page"):
        webinfer.load_sync({**files, NAMES[1]: b"<!doctype html>" + bytes(90)}, backend="wasm")
    with pytest.raises(ModelFormatError, match="files are of different models"):
        webinfer.load_sync(shards(**{"split.tensors.count": 99}), backend="wasm")
    with pytest.raises(ModelFormatError, match="file 8 of 3"):
        webinfer.load_sync({"a.gguf": shards(**{"split.no": 7})[NAMES[0]]}, backend="wasm")
