"""Text to tokens and back, chats as text, and conversations with a tiny model that the tests write."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.importers.gguf_writer import gguf, tiny_decoder
from tests.language.decoder_reference import ReferenceDecoder
from tests.ops.case_graphs import run
from tests.ops.targets import Target
from tests.webgpu.devices import HARDWARE

import webinfer
from webinfer.backends import registry
from webinfer.backends.base import BuildOptions
from webinfer.backends.webgpu.schedule import make_schedule
from webinfer.dtypes import DType
from webinfer.errors import ClosedError, DeviceLostError, InputError, LimitError, ModelFormatError, UnsupportedOpError
from webinfer.host.native import NativeHost
from webinfer.importers.gguf.architecture import architecture_of
from webinfer.importers.gguf.container import read_file
from webinfer.importers.gguf.decoder import decoder_graph
from webinfer.kernel_constants import BLOCKS_MAX_ROWS
from webinfer.language.generator import TextGenerator
from webinfer.language.pretokenizer import split
from webinfer.language.sampling import Sampling, Stop
from webinfer.language.template import ChatTemplate
from webinfer.language.tokenizer import BYTE_LETTERS, Tokenizer
from webinfer.ops.language import MAX_ROWS, BlockType

NAMED = ["<|im_start|>", "<|im_end|>"]
MERGES = ["h e", "l l", "he ll", "hell o", "\u0120 w", "\u0120w o", "a b", "b a"]
WORDS = [*NAMED, *BYTE_LETTERS, *(merge.replace(" ", "") for merge in MERGES)]
FACTS: dict[str, Any] = {
    "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "smollm", "tokenizer.ggml.tokens": WORDS,
    "tokenizer.ggml.token_type": [3, 3, *[1] * (len(WORDS) - 2)], "tokenizer.ggml.merges": MERGES,
    "tokenizer.ggml.eos_token_id": 1,
}  # fmt: skip
MODEL = tiny_decoder(tokens=WORDS, more=FACTS, context=96)
MODEL_OF_BYTES = tiny_decoder(type=BlockType.Q8_0, tokens=WORDS, more=FACTS, context=96)  # products differ by machine
BACKENDS = ("wasm", "webgpu")
CHAT = [{"role": "user", "content": "hello ab"}]


def tokenizer(**facts: Any) -> Tokenizer:
    more = {f"tokenizer.ggml.{key}": value for key, value in facts.items()}
    return Tokenizer(read_file(memoryview(gguf({**FACTS, **more}, {})), "tiny"))


def opened(backend: str = "wasm", **options: Any) -> TextGenerator:
    Target(backend, (("isa", "simd128"),) if backend == "wasm" else ()).demand()
    generator: TextGenerator = run(TextGenerator.create(MODEL, backend=backend, **options))
    return generator


class _Host(NativeHost):
    """A host whose GPU has this name."""

    def __init__(self, name: str, software: bool = False) -> None:
        super().__init__()
        self._device = SimpleNamespace(name=name, software=software)

    async def gpu(self, kind: str = "") -> Any:
        return self._device


@pytest.mark.parametrize(
    ("host", "tokens"),
    [
        (_Host("nvidia NVIDIA H100 80GB HBM3"), 512),
        (_Host("nvidia lovelace"), 512),
        (_Host("apple metal-3"), 256),
        (_Host("what nobody knows"), 256),
        (_Host("NVIDIA that a CPU plays", software=True), 256),
    ],
)
def test_large_gpus_read_more_of_a_prompt_at_a_time(host: Any, tokens: int) -> None:
    assert run(registry.ROWS["webgpu"].prefill_chunk(host)) == tokens <= MAX_ROWS
    assert run(registry.ROWS["wasm"].prefill_chunk(host)) <= BLOCKS_MAX_ROWS


def test_wasm_refuses_more_rows_than_its_kernel_has_room_for() -> None:
    Target("wasm", (("isa", "simd128"),)).demand()
    file = read_file(memoryview(MODEL), "tiny")
    graph = decoder_graph(file, architecture_of(file), (BLOCKS_MAX_ROWS + 1,), 96, cache=DType.INT16)
    with pytest.raises(UnsupportedOpError, match=f"needs 1 to {BLOCKS_MAX_ROWS}"):
        run(registry.open_backend("wasm").build(graph, NativeHost(), BuildOptions()))


def test_pairs_are_joined_by_rank_and_digits_stand_alone() -> None:
    t = tokenizer()
    assert [t.tokens[i] for i in t.encode("hello world 12")] == [
        "hello", "\u0120wo", "r", "l", "d", "\u0120", "1", "2"
    ]  # fmt: skip
    assert [t.tokens[i] for i in t.encode("aba")] == ["ab", "a"]
    assert [t.tokens[i] for i in t.encode("a<|im_end|>b")] == ["a", "<|im_end|>", "b"]
    assert len(t.encode("<|im_end|>", named=False)) > 1


def test_bytes_are_the_letters_of_gpt_2() -> None:
    """What Latin-1 can print stands for itself, all else for the characters from 256 on, in order."""
    others = iter(range(256, 512))
    want = [chr(byte if chr(byte).isprintable() and byte not in (32, 160) else next(others)) for byte in range(256)]
    assert want == BYTE_LETTERS


def test_the_first_token_has_bytes_and_numbers_beyond_the_last_have_none() -> None:
    t = tokenizer(token_type=[1] * len(WORDS))
    assert t.bytes_of(0) == WORDS[0].encode()
    assert t.bytes_of(len(WORDS)) == t.bytes_of(-1) == b""


@pytest.mark.parametrize("pre", ["smollm", "gpt-2", "llama-bpe", "qwen2"])
def test_every_text_comes_back(pre: str) -> None:
    t = tokenizer(pre=pre)
    for text in (
        "",
        "h\u00e9llo  w\u00f6rld\r\n\n x",
        "\u4e2d\u6587 1234\u00bd'S don't \U0001f600\u2028",
        "\x00\x1c\x85 \ue000",
        "a" * 5000,
    ):
        assert t.decode(t.encode(text, named=False)) == text
    with pytest.raises(InputError, match="surrogate"):
        t.encode("\ud800")


def test_newer_models_cut_numbers_in_threes_and_ignore_case() -> None:
    t = tokenizer(pre="llama-bpe")
    assert split("I'LL 12345 ok!\n", t._patterns) == ["I", "'LL", " ", "123", "45", " ok", "!\n"]
    assert split("it's  x", tokenizer(pre="gpt-2")._patterns) == ["it", "'s", " ", " x"]


def test_sentence_pieces_join_by_score_and_fall_back_to_bytes() -> None:
    tokens = [
        "<unk>",
        "<s>",
        "</s>",
        *(f"<0x{i:02X}>" for i in range(256)),
        "\u2581",
        "a",
        "b",
        "ab",
        "\u2581a",
        "\u2581ab",
    ]
    kinds = [2, 3, 3, *[6] * 256, *[1] * 6]
    scores = [0.0] * 259 + [-9.0, -8.0, -7.0, -1.0, -2.0, -3.0]
    t = tokenizer(model="llama", tokens=tokens, token_type=kinds, scores=scores, bos_token_id=1, eos_token_id=2)
    assert [tokens[i] for i in t.encode("ab aa")] == ["\u2581ab", "\u2581a", "a"]
    assert [tokens[i] for i in t.encode("\u00e9")] == ["\u2581", "<0xC3>", "<0xA9>"]
    assert t.decode(t.encode("ab \u00e9a")) == "ab \u00e9a"
    assert t.adds_begin
    assert t.ends == {2}


@pytest.mark.parametrize(
    ("facts", "error"),
    [
        ({"model": "t5"}, UnsupportedOpError), ({"pre": "tekken"}, UnsupportedOpError),
        ({"tokens": [3]}, ModelFormatError),
        ({"token_type": [1]}, ModelFormatError), ({"model": "llama", "scores": [1.0]}, ModelFormatError),
    ],
)  # fmt: skip
def test_vocabularies_that_are_not_read_are_said(facts: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        tokenizer(**facts)


def test_templates_run_in_a_sandbox() -> None:
    t = tokenizer()
    assert ChatTemplate(None, t).text(CHAT) == "<|im_start|>user\nhello ab<|im_end|>\n<|im_start|>assistant\n"
    assert ChatTemplate("{{ messages[0].content }}{{ eos_token }}", t).text(CHAT) == "hello ab<|im_end|>"
    for hostile in (
        "{{ ''.__class__.__mro__ }}", "{{ raise_exception('no') }}", "{{ messages.append(1) }}", "{{ 1 // 0 }}",
        "{% for i in range(10**9) %}{% endfor %}",
    ):  # fmt: skip
        with suppress(InputError):
            assert not ChatTemplate(hostile, t).text(CHAT)
    with pytest.raises(ModelFormatError):
        ChatTemplate("{% for %}", t)
    for wrong in ([], ["x"], [{"role": "user"}], 5):
        with pytest.raises(InputError):
            ChatTemplate(None, t).text(wrong)  # type: ignore[arg-type]


def test_a_stop_that_may_have_begun_waits() -> None:
    stop = Stop(["END", "\n\n"])
    assert [stop.take(piece) for piece in ("ab", "cE", "N", "x", "\n", "EN")] == ["ab", "c", "", "ENx", "", "\n"]
    assert (stop.take("D and more"), stop.reached) == ("", True)
    assert Stop("ab").take("xa", last=True) == "xa"
    with pytest.raises(InputError):
        Stop([""])


@pytest.mark.parametrize("backend", BACKENDS)
def test_greedy_words_are_those_of_the_equations(backend: str) -> None:
    with_chunks = "hello ab " * 20
    generator, reference = opened(backend), ReferenceDecoder(MODEL)
    tokens = generator.tokenize(with_chunks)[:80]
    got = np.array(run(generator.conversation().logits(tokens)).numpy())[0]
    want = reference.logits(tokens)[-1]
    assert np.abs(got - want).max() < 1e-3 * np.ptp(want)
    chosen = run(_written(generator, tokens, 4))
    for token in chosen:
        logits = reference.logits(tokens)[-1]
        assert logits[token] >= logits.max() - 2e-3 * np.ptp(logits)
        tokens.append(token)
    generator.close()


async def _written(generator: TextGenerator, tokens: list[int], count: int, conversation: Any = None) -> list[int]:
    chat = conversation or generator.conversation()
    return [token async for token in chat.write(tokens, Sampling(), count)]


@pytest.mark.parametrize("backend", BACKENDS)
def test_conversations_share_weights_and_keep_apart(backend: str) -> None:
    generator = opened(backend)
    prompts = [generator.tokenize(text) for text in ("hello ab ab", "wo wo hell")]
    alone = [run(_written(generator, prompt, 12)) for prompt in prompts]
    chats = [generator.conversation() for _ in prompts]

    async def in_turns() -> list[list[int]]:
        return list(await asyncio.gather(*(_written(generator, p, 12, c) for p, c in zip(prompts, chats, strict=True))))

    assert run(in_turns()) == alone
    saved, forked, restored = run(chats[0].save()), run(chats[0].fork()), generator.conversation()
    run(restored.restore(saved))
    more = [*restored.tokens, *generator.tokenize("ab")]
    want = run(_written(generator, more, 6, chats[0]))
    assert run(_written(generator, more, 6, forked)) == run(_written(generator, more, 6, restored)) == want
    for damaged in (b"", saved[:-1], b"x" + saved[1:], saved[:8] + b"\xff" * 8 + saved[16:]):
        with pytest.raises(ModelFormatError):
            run(restored.restore(damaged))
    forked.reset()
    assert run(_written(generator, prompts[1], 12, forked)) == alone[1]
    generator.close()
    with pytest.raises(ClosedError):
        run(_written(generator, prompts[0], 1))


def test_steps_that_begin_early_change_nothing() -> None:
    """Tokens of two conversations that take turns at every token, sampled on the GPU and on the processor."""
    found = []
    for backend in BACKENDS:
        generator = opened(backend)
        chats = [generator.conversation() for _ in range(2)]

        async def in_turns(generator: TextGenerator = generator, chats: list[Any] = chats) -> list[list[int]]:
            tokens = [generator.tokenize(text) for text in ("hello ab", "wo ab ab wo")]
            sampled: list[list[int]] = [[], []]
            writers = [c.write(w, Sampling(4.0, seed=7), 9) for c, w in zip(chats, tokens, strict=True)]
            for turn in (0, 0, 1, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1):
                sampled[turn] += [token async for token in _some(writers[turn], 1)]
            return sampled

        found.append((run(in_turns()), [chat.tokens for chat in chats]))
        generator.close()
    assert found[0] == found[1]
    assert [len(tokens) for tokens in found[0][0]] == [6, 7]


async def _some(tokens: Any, count: int) -> Any:
    for _ in range(count):
        try:
            yield await anext(tokens)
        except StopAsyncIteration:
            return


@pytest.mark.parametrize("architecture", ["qwen2", "qwen3"])
def test_a_model_with_shifts_or_normed_heads_says_the_same_on_a_gpu(architecture: str) -> None:
    model = tiny_decoder(architecture, BlockType.Q4_1, WORDS, tied=False, blocks=1, more=FACTS, context=96)
    logits = []
    for backend in BACKENDS:
        Target(backend, (("isa", "simd128"),) if backend == "wasm" else ()).demand()
        generator = run(TextGenerator.create(model, backend=backend))
        chat = generator.conversation()
        run(chat.read(generator.tokenize("hello ab wo")))  # many rows, then one
        logits.append(np.array(run(chat.logits([5])).numpy()))
        generator.close()
    want = ReferenceDecoder(model).logits([*generator.tokenize("hello ab wo"), 5])[-1]
    assert all(np.abs(found - want).max() < 1e-3 * np.ptp(want) for found in logits)


def test_a_word_is_one_submit(monkeypatch: pytest.MonkeyPatch) -> None:
    generator, submits = opened("webgpu"), 0
    queue = type(generator.model.executor.device._device.queue)  # type: ignore[union-attr]
    submit = queue.submit

    def counted(self: Any, buffers: Any) -> None:
        nonlocal submits
        submits += len(buffers)
        submit(self, buffers)

    monkeypatch.setattr(queue, "submit", counted)
    assert len(run(_written(generator, generator.tokenize("hello ab"), 7))) == 7
    assert submits == 7 * 2  # the prompt is the first; mapping what is read back, wgpu submits too
    generator.close()


def test_a_word_is_five_dispatches_a_block() -> None:
    """Norms, SwiGLU and the cache have no dispatch of their own for one token; queries, keys and values have one."""
    file = read_file(memoryview(MODEL), "tiny")
    schedule = make_schedule(decoder_graph(file, architecture_of(file), (1,), 96), HARDWARE)
    shaders = [step.dispatch.shader for step in schedule.run]
    block = ["block_product_row", "cached_attention", *["block_product_row"] * 3]
    assert shaders == ["block_rows", *block, *block, "layer_norm", "described", "block_product_row", "sample"]
    assert not schedule.prepare


def test_seeds_repeat_draws_and_progress_counts_words() -> None:
    events: list[Any] = []
    generator = opened(context=96)
    options = {"temperature": 5.0, "max_tokens": 12, "seed": 4}
    first = run(generator.run("hello " * 33, progress=events.append, **options))
    assert events[-1].done == events[-1].total == 64 + 2
    assert run(generator.run("hello " * 33, **options)) == first
    assert run(generator.run("hello " * 33, **{**options, "seed": 5})) != first
    generator.close()


def test_a_conversation_that_is_too_long_is_refused_or_slides() -> None:
    generator = opened(context=40)
    with pytest.raises(LimitError, match="the limit is 40"):
        run(generator.run("ab " * 60))
    with pytest.raises(LimitError):
        run(_written(generator, generator.tokenize("ab ab"), 60))
    assert run(_written(generator, generator.tokenize("ab ab"), 10))
    generator.close()
    sliding = opened(context=40, overflow="slide")
    chat = sliding.conversation()
    assert len(run(_written(sliding, sliding.tokenize("ab ab"), 100, chat))) == 100 or chat.tokens
    assert len(chat.tokens) <= 40
    sliding.close()


def test_pipelines_stream_without_being_awaited_and_meanings_have_length_one() -> None:
    async def streamed() -> str:
        pieces = webinfer.pipeline("text-generation", MODEL).stream(CHAT, max_tokens=8)
        return "".join([piece async for piece in pieces])

    async def whole() -> tuple[str, tuple[float, ...]]:
        async with await webinfer.pipeline("text-generation", MODEL) as generator:
            given = "hello ab" * 20
            hidden = (await generator.hidden(given)).numpy()
            assert len(hidden) == len(generator.tokenize(given))
            vector, mean = await generator.embed(given), hidden.mean(0)
            assert vector == pytest.approx(mean / np.linalg.norm(mean), abs=1e-6)
            return await generator.run(CHAT, max_tokens=8), vector

    text, vector = run(whole())
    assert run(streamed()) == text
    with webinfer.pipeline("text-generation", MODEL) as generator:  # in a script
        assert generator(CHAT, max_tokens=8) == text
        assert generator("ab", max_tokens=2) is not None
    assert sum(x * x for x in vector) == pytest.approx(1)
    for wrong in ({"backend": "reference"}, {"overflow": "?"}, {"context": 0}):
        with pytest.raises(InputError):
            run(TextGenerator.create(MODEL, **wrong))  # type: ignore[arg-type]


def test_a_lost_gpu_takes_the_cache_along_and_the_model_opens_anew() -> None:
    generator = opened("webgpu")
    tokens = generator.tokenize("hello ab")
    assert len(run(_written(generator, tokens, 3))) == 3
    generator.model.executor.device.close()  # type: ignore[union-attr]
    for _ in range(2):
        with pytest.raises(DeviceLostError, match="open the model again"):
            run(_written(generator, tokens, 3))
    generator.close()
    again = opened("webgpu")
    assert again.backend == "webgpu"
    again.close()


def test_a_file_that_is_loaded_as_a_model_runs_a_word_at_a_time() -> None:
    logits = []
    for backend in BACKENDS:
        session = run(webinfer.load(MODEL, backend=backend, strict=True))
        for position, token in enumerate((5, 9)):
            inputs = {
                "place": np.array([position, 1], np.int32), "options": np.array([0, 0, 1, 0], np.float32),
                "ids_1": np.array([token], np.int32), "last_1": np.zeros(1, np.int32),
            }  # fmt: skip
            found = run(session.run(inputs))
        logits.append(np.array(found["logits_1"].numpy()))
        session.close()
    assert np.abs(logits[0] - logits[1]).max() < 1e-3 * np.ptp(logits[0])
