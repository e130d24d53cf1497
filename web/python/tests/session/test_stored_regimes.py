"""Plans with symbols outlast the visit: the next one binds them without reading the model, bit for bit as before."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
from tests.ops.case_graphs import run
from tests.ops.targets import Target
from tests.session.test_open_plans import cached, picture, sentence
from tests.session.visits import Visitor

import webinfer
from build_scripts.judge.open_models import decoder, encoder, pictures
from webinfer.backends.base import BindableExecutor, RegimeExecutor
from webinfer.errors import InputError
from webinfer.host.checksums import sealed
from webinfer.session import loading, open_store
from webinfer.session.session import Session

MODELS = {
    "encoder": (encoder, [sentence(t, b) for t, b in ((20, 1), (9, 1), (33, 1), (64, 1), (5, 1), (12, 3))]),
    "decoder": (decoder, [cached(p, n) for p, n in ((5, 1), (6, 1), (31, 1), (32, 1), (9, 12), (60, 1))]),
    "pictures": (pictures, [picture(h, w) for h, w in ((64, 64), (96, 80), (61, 97), (128, 32), (99, 40), (64, 66))]),
}  # fmt: skip


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Visitor:
    return Visitor()


async def visited(host: Visitor, model: bytes, rows: list[Any], **options: Any) -> tuple[Session, list[Any]]:
    """A session that ran on these inputs and has stored what it stores, and what it gave."""
    session = await webinfer.load(model, host=host, **{"backend": "wasm", "threads": 1, **options})
    found = [{name: tensor.numpy() for name, tensor in (await session.run(row)).items()} for row in rows]
    await asyncio.sleep(0.02)
    while open_store._tasks:
        await asyncio.sleep(0.01)
    return session, found


@pytest.mark.parametrize("name", MODELS)
def test_a_script_stores_plans_with_symbols_before_its_run_returns(name: str) -> None:
    make, rows = MODELS[name]
    host = Visitor(script=True)
    first, wanted = visit(host, make(), rows)
    second, found = visit(host, make(), rows)
    equal(found, wanted)
    assert type(second.executor).__name__ == "RestoredRegime"
    first.close()
    second.close()


def visit(host: Visitor, model: bytes, rows: list[Any], **options: Any) -> tuple[Session, list[Any]]:
    return run(visited(host, model, rows, **options))


def equal(found: list[Any], wanted: list[Any]) -> None:
    for one, other in zip(found, wanted, strict=True):
        assert list(one) == list(other)
        for name, array in other.items():
            np.testing.assert_array_equal(one[name], array)


@pytest.mark.parametrize(("backend", "threads"), [("wasm", 1), ("wasm", 2), ("webgpu", 1)])
@pytest.mark.parametrize("name", MODELS)
def test_the_second_visit_binds_what_the_first_one_stored(
    name: str, backend: str, threads: int, host: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    if backend == "webgpu":
        Target(backend).demand()
    options = {"backend": backend, "threads": threads}
    make, rows = MODELS[name]
    first, wanted = visit(host, make(), [*rows, *rows], **options)
    shown, inputs = first.plan(), first.inputs
    first.close()
    with monkeypatch.context() as patch:
        patch.setattr(loading, "read_model", None)  # a call would fail
        second, found = visit(host, make(), rows[::-1], **options)
        equal(found[::-1], wanted[6:])
        assert isinstance(second.executor, RegimeExecutor)
        assert second.choice == f"{backend} was asked for"
        equal([{n: t.numpy() for n, t in run(second.run(rows[-1])).items()}], wanted[-1:])
        assert second.inputs == inputs
    assert [row.kernel for row in second.plan().rows] == [row.kernel for row in shown.rows]
    assert [(row.shapes, row.flops) for row in second.plan().rows] == [(row.shapes, row.flops) for row in shown.rows]
    assert len(run(second.profile(rounds=1)).rows) == len(shown.rows)
    assert run(second.verify(inputs=rows[-1])).ok
    run(second.restore())
    equal([{n: t.numpy() for n, t in run(second.run(rows[-1])).items()}], wanted[-1:])
    second.close()


def test_sizes_of_another_kind_get_a_plan_that_shares_weights_and_is_stored_too(
    host: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    visit(host, encoder(), [sentence(20), sentence(30)])[0].close()
    before = len(host.store[host.place])
    short = sentence(4)
    second, found = visit(host, encoder(), [short])
    memory = second.memory()
    assert memory.shared > 0.8 * memory.constants
    second.close()
    assert before < len(host.store[host.place]) < 1.5 * before
    monkeypatch.setattr(loading, "read_model", None)
    third, again = visit(host, encoder(), [short, sentence(31)])
    equal(again[:1], found)
    third.close()


def test_on_a_gpu_weights_are_stored_once_and_damage_is_replaced(host: Visitor) -> None:
    Target("webgpu").demand()
    rows = [sentence(20), sentence(32), sentence(5)]
    visit(host, encoder(), rows[:2], backend="webgpu")[0].close()
    before = len(host.store[host.place])
    second, wanted = visit(host, encoder(), rows, backend="webgpu")
    assert len(second._live._open_plans.executors()) == 2
    second.close()
    whole = host.store[host.place]
    assert before < len(whole) < before + 300_000  # shaders and steps of another regime, no weights
    third, found = visit(host, encoder(), rows[::-1], backend="webgpu")
    assert isinstance(third.executor, RegimeExecutor)
    equal(found[::-1], wanted)
    third.close()
    host.store[host.place] = whole[:300] + b"?" + whole[301:]
    fourth, _ = visit(host, encoder(), rows[:2], backend="webgpu")
    assert not isinstance(fourth.executor, RegimeExecutor)
    fourth.close()
    assert len(host.store[host.place]) == before
    host.engine = "engine 2"
    fifth, _ = visit(host, encoder(), rows[:1], backend="webgpu")
    assert not isinstance(fifth.executor, RegimeExecutor)
    fifth.close()


def test_one_set_of_sizes_is_enough(host: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    first, wanted = visit(host, encoder(), [sentence(20)])
    assert not isinstance(first.executor, BindableExecutor)
    first.close()
    monkeypatch.setattr(loading, "read_model", None)
    second, found = visit(host, encoder(), [sentence(25)])
    assert found[0]["b_y"].shape == (1, 25, wanted[0]["b_y"].shape[2])
    second.close()


def test_positions_are_checked_as_on_the_first_visit(host: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    visit(host, encoder(), [sentence(20), sentence(30)])[0].close()
    monkeypatch.setattr(loading, "read_model", None)
    second, _ = visit(host, encoder(), [sentence(22)])
    wrong = sentence(23)
    wrong["ids"][0, 3] = 10_000
    with pytest.raises(InputError, match="holds 10000"):
        run(second.run(wrong))
    second.close()


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data[:200] + b"?" + data[201:],
        lambda data: sealed(b"WIR1"[:3] + b"0" + bytes(60)),
    ],
    ids=["short", "header", "other version"],
)
def test_damaged_plans_are_made_anew_and_replaced(host: Visitor, damage: Any) -> None:
    rows = [sentence(20), sentence(30)]
    first, wanted = visit(host, encoder(), rows)
    first.close()
    whole = host.store[host.place]
    host.store[host.place] = damage(whole)
    second, found = visit(host, encoder(), rows)
    equal(found, wanted)
    assert not isinstance(second.executor, RegimeExecutor)
    second.close()
    assert host.store[host.place] == whole


def test_facts_that_lead_nowhere_are_no_plan(host: Visitor) -> None:
    rows = [sentence(20), sentence(30)]
    first, wanted = visit(host, encoder(), rows)
    first.close()
    whole = host.store[host.place]
    for old, new in ((b'"areas": [[', b'"areas": [[9'), (b'"plain": [[', b'"plain": [[-'), (b'"axes"', b'"axis"')):
        payload = bytes(run(host.recall_bytes(host.place)) or b"")
        assert old in payload
        length = int.from_bytes(payload[4:8], "little")
        text = payload[8 : 8 + length].replace(old, new, 1)
        host.store[host.place] = sealed(payload[:4] + len(text).to_bytes(4, "little") + text + payload[8 + length :])
        second, found = visit(host, encoder(), rows)
        equal(found, wanted)
        assert not isinstance(second.executor, RegimeExecutor)
        second.close()
        assert host.store[host.place] == whole


def test_plans_of_another_engine_or_build_are_not_taken(host: Visitor) -> None:
    rows = [sentence(20), sentence(30)]
    visit(host, encoder(), rows)[0].close()
    host.engine = "engine 2"
    other, _ = visit(host, encoder(), rows[:1])
    assert not isinstance(other.executor, RegimeExecutor)
    other.close()
    threaded, _ = visit(host, encoder(), rows[:1], threads=2)
    assert not isinstance(threaded.executor, RegimeExecutor)
    threaded.close()
    assert isinstance(visit(host, encoder(), rows[:1], threads=2)[0].executor, RegimeExecutor)


def test_plans_that_are_too_large_are_not_stored(host: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    from webinfer.backends.wasm import stored_regimes

    monkeypatch.setattr(stored_regimes, "MAX_BYTES", 100)
    visit(host, encoder(), [sentence(20), sentence(30)])[0].close()
    assert not any(name.startswith("plan-") for name in host.store)
