"""Open sizes in a page: sizes are bound to one plan on each backend, and give what plans made for them give.

The next load binds what was stored.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest

from build_scripts.judge.open_models import HEADS, WIDTH, decoder, encoder
from e2e_tests.pages import DemoPage

PROGRAM = """
import asyncio, base64, json
from array import array
import webinfer
from webinfer.dtypes import DType
from webinfer.importers.core.caches import CacheRow, Caches
from webinfer.session.kv_cache import KvCache

model = base64.b64decode("{model}")
# On a busy machine a page may find in its pauses that two threads are faster after all: what one stored fits no more.
options = dict(backend="{backend}", **({{"threads": 2}} if "{backend}" == "wasm" else {{}}))

def tensor(letter, dtype, shape, numbers):
    return webinfer.Tensor(memoryview(array(letter, numbers)).cast("B"), tuple(shape), dtype)

def sentence(tokens):
    ids = tensor("q", DType.INT64, (1, tokens), [i % 50 for i in range(tokens)])
    return {{"ids": ids, "mask": tensor("q", DType.INT64, (1, tokens), [1] * tokens)}}

def cached(past):
    count = {heads} * past * {width} // {heads}
    caches = {{f"{{tag}}_past_{{part}}": tensor("f", DType.FLOAT32, (1, {heads}, past, {width} // {heads}),
              [(i % 7 - 3) / 4 for i in range(count)]) for tag in "ab" for part in "kv"}}
    return {{"ids": tensor("q", DType.INT64, (1, 1), [past % 50]), **caches}}

async def test(given, sizes):
    plans, apart = [], []
    with await webinfer.load(model, **options) as session:
        for size in sizes:
            inputs = given(size)
            got = await session.run(inputs)
            plans.append(type(session.executor).__name__)
            shapes = {{name: value.shape for name, value in inputs.items()}}
            with await webinfer.load(model, **options, shapes=shapes) as other:
                want = await other.run(inputs)
            pairs = [pair for name in want for pair in zip(got[name].tolist(), want[name].tolist(), strict=True)]
            apart.append(max(abs(a - b) for a, b in pairs))
        notes = list(session.plan().notes)
        for _ in range(40):  # plans are stored while the session is open, when none was made for a while
            await asyncio.sleep(1)
            with await webinfer.load(model, **options) as next_one:
                again = await next_one.run(inputs)
                later = type(next_one.executor).__name__
            if later == "RestoredRegime":
                break
    same = all(again[name].tolist() == got[name].tolist() for name in got)
    kept = [] if given is sentence else await decoded()
    return json.dumps([plans, apart, notes, later, same, kept])

async def decoded():
    rows = [CacheRow(f"{{tag}}_past_{{part}}", f"{{tag}}_next_{{part}}", 2) for tag in "ab" for part in "kv"]
    start = cached(6)
    with await webinfer.load(model, **options) as session, await webinfer.load(model, **options) as other:
        cache = KvCache("decoder", Caches(rows), session.inputs, session.outputs)
        await session.run(start, kv_cache=cache)
        want, apart = await other.run(start), []
        for turn in range(24):
            ids = tensor("q", DType.INT64, (1, 1), [turn])
            want = await other.run({{"ids": ids, **{{row.input: want[row.output] for row in rows}}}})
            got = await session.run({{"ids": ids}}, kv_cache=cache)
            apart.append(max(abs(a - b) for a, b in zip(got["logits"].tolist(), want["logits"].tolist())))
        states = await cache.read()
        same = all(states[row.input].tolist() == want[row.output].tolist() for row in rows)
        executor = session.executor
        in_place = len(getattr(executor, "appended", None) or executor._rows)
        return [max(apart), same, in_place]

await test({given}, {sizes})
"""


@pytest.mark.parametrize("backend", ["wasm", "webgpu"])
@pytest.mark.parametrize("name", ["sentence", "cached"])
def test_sizes_are_bound_in_a_page(demo: Callable[..., DemoPage], backend: str, name: str) -> None:
    page = demo("?backend=wasm", idle_work=True)
    page.wait_for_result()
    model = base64.b64encode(encoder() if name == "sentence" else decoder()).decode()
    sizes = [40, 44, 48, 64, 100, 52, 128, 60] if name == "sentence" else [12, 16, 20, 24, 40, 28, 64]
    text = PROGRAM.format(model=model, backend=backend, given=name, sizes=sizes, heads=HEADS, width=WIDTH)
    found: Any = page.python(text)
    plans, apart, notes, later, same, kept = found
    # On a GPU a class of sizes shares a tile of attention, which sums in another order than the size's own.
    assert max(apart) <= (1e-5 if backend == "webgpu" else 0), found
    assert len({*plans[1:]}) == 1, plans
    assert plans[1] != plans[0]
    assert any("sizes are bound" in note for note in notes)
    assert (later, same) == ("RestoredRegime", True)
    if name == "cached":  # a decode loop that feeds tokens only, whose keys and values are appended to where they lie
        assert kept[0] <= 1e-5, kept
        assert kept[1:] == [True, 4]
