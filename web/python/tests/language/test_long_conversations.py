"""A language model that is used for long or by many: work a token, memory, and prompts that are answered together."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from tests.importers.gguf_writer import tiny_decoder
from tests.language.test_language import BACKENDS, FACTS, MODEL, WORDS, opened
from tests.ops.case_graphs import run
from tests.ops.targets import Target

from webinfer.errors import GpuError, InputError, LimitError, ModelFormatError
from webinfer.importers.gguf.architecture import architecture_of
from webinfer.importers.gguf.container import read_file
from webinfer.importers.gguf.decoder import decoder_graph
from webinfer.language.generator import TextGenerator
from webinfer.language.sampling import Sampling

CONTEXT, LONG = 2048, 2000


def test_two_thousand_words_take_the_same_steps_each_and_fifty_conversations_leave_nothing() -> None:
    model = tiny_decoder(tokens=WORDS, more=FACTS, context=CONTEXT, blocks=1, groups=1)
    generator = run(TextGenerator.create(model, backend="wasm", threads=1))
    generator.model.tokenizer.ends = frozenset()  # so that answers are as long as they are asked to be
    executor: Any = generator.model.executor
    kernels, execute, calls = executor.kernels, executor._call, Counter[tuple[int, int]]()

    def counted(kernels: Any, first: int, count: int) -> None:
        calls[first, count] += 1
        execute(kernels, first, count)

    executor._call = counted
    held = generator.model.memory()
    assert held.constants - generator.model.cache_bytes() <= 1.5 * len(model)
    nbytes = kernels.size()

    async def talk(tokens: int) -> int:
        chat = generator.conversation()
        async for _ in chat.write([5, 6], Sampling(9.0, seed=1), tokens):
            pass
        return len(chat.tokens)

    assert run(talk(LONG)) == LONG + 1
    assert sorted(calls.values()) == [1, LONG - 1]  # the prompt, and the same steps of the same plan for each token
    executor._call = execute
    tracemalloc.start()
    for conversation in range(50):
        run(talk(20))
        if conversation == 5:
            gc.collect()
            before, _ = tracemalloc.get_traced_memory()
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 20_000
    assert kernels.size() == nbytes
    generator.close()


@pytest.mark.parametrize("backend", BACKENDS)
def test_prompts_that_are_answered_together_are_answered_as_alone(backend: str) -> None:
    prompts = ["hello ab", "wo wo hell", "ab ab ab wo", "l", "hello hello"]
    options: dict[str, Any] = {"max_tokens": 14, "temperature": 3.0, "seed": 21, "stop": "q"}
    generator = opened(backend, batch_size=3, cache="float32")  # draws that are not ties with these numbers
    alone = [run(_alone(generator, prompt, options)) for prompt in prompts]
    assert len(set(alone)) == len(prompts)
    assert len({len(answer) for answer in alone}) > 1  # so that one goes on where others have ended
    assert run(generator.answers(prompts, **options)) == alone

    async def beside() -> tuple[list[str], str]:
        found = await asyncio.gather(generator.answers(prompts, **options), generator.run("wo ab", max_tokens=9))
        return found[0], found[1]

    talk = run(generator.run("wo ab", max_tokens=9))
    assert run(beside()) == (alone, talk)
    assert run(generator.answers([])) == []
    with pytest.raises(LimitError, match="the limit is 96"):
        run(generator.answers(["hello"], max_tokens=500, temperature=0.0001, seed=1))
    assert run(generator.answers(prompts[:1], **options)) == alone[:1]
    with pytest.raises(InputError, match="batch_size"):
        opened(backend, batch_size=65)
    generator.close()


@pytest.mark.parametrize("backend", BACKENDS)
def test_prompts_are_answered_one_after_the_other_where_none_are_together(backend: str) -> None:
    generator = opened(backend)
    prompts = ["hello ab", "wo wo hell"]
    alone = [run(_alone(generator, prompt, {"max_tokens": 5})) for prompt in prompts]
    assert run(generator.answers(prompts, max_tokens=5)) == alone
    generator.close()


@pytest.mark.parametrize("saved", [False, True])
def test_a_conversation_that_others_interrupted_goes_back_to_its_beginning(saved: bool) -> None:
    generator = opened()
    chat, other = generator.conversation(), generator.conversation()
    begin, more = generator.tokenize("wo ab"), generator.tokenize("hello hello ab wo l")
    undisturbed = generator.conversation()
    run(undisturbed.read(begin[:-1]))
    alone = run(undisturbed.logits(begin[-1:])).tolist()  # in the same steps: others round a little otherwise
    run(chat.read([*begin[:-1], *more]))
    run(other.read(more))
    chat.truncate(len(begin) - 1)
    if saved:
        restored = generator.conversation()
        run(restored.restore(run(chat.save())))
        chat = restored
    assert run(chat.logits(begin[-1:])).tolist() == pytest.approx(alone, rel=1e-5, abs=1e-5)
    generator.close()


async def _alone(generator: TextGenerator, prompt: str, options: dict[str, Any]) -> str:
    conversation = generator.conversation()
    return "".join([piece async for piece in generator.stream(prompt, conversation=conversation, **options)])


def test_together_each_weight_is_read_once_a_word() -> None:
    file = read_file(memoryview(MODEL), "tiny")
    graph = decoder_graph(file, architecture_of(file), (1,), 96, batch_size=3)
    first, second = graph.parts
    counts = [Counter(node.op.name for node in part) for part in (graph.nodes[:first], graph.nodes[first:second])]
    assert counts[0]["block_matmul"] == counts[1]["block_matmul"] == 2 * 7 + 1
    assert counts[1]["cached_attention"] == 3 * counts[0]["cached_attention"]


def test_a_conversation_that_nobody_has_is_not_put_aside() -> None:
    generator = opened()
    taken = []

    async def save_kv(count: int) -> list[bytes]:
        taken.append(count)
        return []

    generator.model.save_kv = save_kv  # type: ignore[method-assign]
    run(generator.conversation().read(generator.tokenize("wo ab")))
    held = generator.conversation()
    run(held.read(generator.tokenize("wo ab l")))
    assert taken == []
    run(generator.conversation().read(generator.tokenize("l")))
    assert taken == [len(held.tokens)]
    generator.close()


def test_words_of_a_prompt_that_are_not_its_last_ones_make_no_logits() -> None:
    generator = opened()
    model, counts = generator.model, list[int]()
    executor: Any = model.executor
    execute = executor._call

    def counted(kernels: Any, first: int, count: int) -> None:
        counts.append(count)
        execute(kernels, first, count)

    executor._call = counted
    tokens = (generator.tokenize("hello ab ") * 40)[: model.chunk + 3]
    found = run(generator.conversation().logits(tokens)).tolist()
    assert len(counts) == 2
    assert counts[0] < counts[1]
    executor._call = execute
    assert run(generator.conversation().logits(tokens)).tolist() == found
    generator.close()


def test_keys_and_values_of_whole_numbers_take_half_the_memory_and_answer_as_floats_do() -> None:
    model = tiny_decoder(tokens=WORDS, more=FACTS, context=CONTEXT, blocks=2)
    kept = {name: run(TextGenerator.create(model, backend="wasm", cache=name)) for name in ("int16", "float32")}
    tokens = [(i * 7 + i // 5) % 20 + 3 for i in range(300)]
    rows, saved = {}, {}
    for name, generator in kept.items():
        chat = generator.conversation()
        run(chat.read(tokens[:-8]))
        rows[name] = [run(chat.logits([token])).tolist() for token in tokens[-8:]]
        saved[name] = run(chat.save())
        again = generator.conversation()
        run(again.restore(saved[name]))
        again.truncate(len(tokens) - 3)
        assert run(again.logits(tokens[-3:-2])).tolist() == rows[name][-3]
    spread = max(map(max, rows["float32"])) - min(map(min, rows["float32"]))
    for got, want in zip(rows["int16"], rows["float32"], strict=True):
        assert got == pytest.approx(want, abs=0.002 * spread)
    width = kept["int16"].model.architecture.head_width
    assert kept["int16"].model.cache_bytes() * 4 * width == kept["float32"].model.cache_bytes() * 2 * (width + 2)
    with pytest.raises(ModelFormatError, match="not a conversation"):
        run(kept["float32"].conversation().restore(saved["int16"]))
    with pytest.raises(InputError, match="int16 or float32"):
        run(TextGenerator.create(model, backend="wasm", cache="int8"))
    for generator in kept.values():
        generator.close()


@pytest.mark.parametrize("fails", [False, True])
def test_a_gpu_computes_a_chunk_of_a_prompt_while_the_next_one_is_encoded(fails: bool) -> None:
    Target("webgpu").demand()
    file = tiny_decoder(tokens=WORDS, more=FACTS, context=1024, blocks=1, groups=1)
    generator = run(TextGenerator.create(file, backend="webgpu", context=800))
    model, told = generator.model, list[str]()
    begin = model.begin_step

    async def noted(tokens: Sequence[int], position: int, *rest: Any) -> Any:
        told.append(f"begins at {position}")
        results = await begin(tokens, position, *rest)

        async def found() -> Any:
            if fails and position:
                raise GpuError("planted")
            told.append(f"ends at {position}")
            return await results()

        return found

    model.begin_step = noted  # type: ignore[method-assign]
    chat, events = generator.conversation(), list[Any]()
    prompt = [5 + i % 7 for i in range(3 * model.chunk - 40)]
    reading = chat.read(prompt, progress=events.append)
    if fails:
        with pytest.raises(GpuError, match="planted"):
            run(reading)
        assert chat.tokens == prompt[: model.chunk]
    else:
        run(reading)
        assert told == [f"{what} at {model.chunk * i}" for what, i in zip(
            ("begins", "begins", "ends", "begins", "ends", "ends"), (0, 1, 0, 2, 1, 2), strict=True)]  # fmt: skip
        assert [event.done for event in events] == [model.chunk, 2 * model.chunk, len(prompt)]
        assert chat.tokens == prompt
    generator.close()
