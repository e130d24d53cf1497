"""What "auto" does where work goes on behind its caller: the first answer comes from who is ready first."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.session import toy
from tests.session.models import open_model

import webinfer
from webinfer.backends import registry
from webinfer.backends.base import BuildOptions
from webinfer.backends.registry import Role, Row
from webinfer.errors import ClosedError, DeviceLostError, InputError
from webinfer.graph.ir import Graph
from webinfer.host import current
from webinfer.host.interface import Host
from webinfer.session import recovery
from webinfer.tasks.base import OPEN

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(2, 6)
SLOW_S = 0.01


class Rival(toy.ToyExecutor):
    """A toy that does as the class says: all of them are told apart by their order."""

    built: list[Rival] = []  # noqa: RUF012 - renewed for each test
    slow = False
    error: Exception | None = None

    async def run(self, inputs: Any) -> Any:
        await asyncio.sleep(SLOW_S if self.slow else 0)
        if self.error is not None:
            raise self.error
        return await super().run(inputs)


class RivalBackend(toy.ToyBackend):
    """Builds rivals."""

    async def build(self, graph: Graph, host: Host, options: BuildOptions) -> Rival:
        await asyncio.sleep(0)
        Rival.built.append(Rival(graph, host, options))
        return Rival.built[-1]


@pytest.fixture(autouse=True)
def rivals(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """wasm and a toy that is ready before it, in a host where work goes on behind a caller."""
    monkeypatch.setitem(registry.ROWS, "webgpu", replace(registry.ROWS["webgpu"], auto=False))
    row = Row("toy", "Toy", Role.INFERENCE, fallback="wasm", module="tests.session.toy", auto=True)
    monkeypatch.setitem(registry.ROWS, "toy", row)
    monkeypatch.setattr(toy, "BACKEND", RivalBackend())
    monkeypatch.setattr(type(current()), "settles_later", True)
    monkeypatch.setattr(recovery, "LINGER_S", 0.0)
    monkeypatch.setattr(Rival, "built", [])
    yield
    for session in list(OPEN):
        session.close()


def model() -> webinfer.GraphBuilder:
    g = webinfer.GraphBuilder("model")
    g.output(g.node("neg", g.node("abs", g.input("x", (2, 6)))), "y")
    return g


def played(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 20))


async def until(holds: Callable[[], bool]) -> None:
    """Waits for what happens behind the caller; `played` ends a test in which it does not."""
    while not holds():
        await asyncio.sleep(0.001)


async def answer(session: webinfer.Session) -> None:
    np.testing.assert_array_equal((await session.run(X))["y"].numpy(), -abs(X))


def test_the_first_run_is_on_who_is_ready_first_and_later_ones_on_the_fastest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rival, "slow", True)

    async def story() -> None:
        session = await webinfer.load(model())
        assert session.autotune_pending
        assert session.same_backend == "auto"
        assert session.choice == "auto starts with toy, which is ready first; wasm is measured later"
        await answer(session)
        assert session.backend == "toy"
        await session.autotune_done()
        assert session.backend == "wasm"
        assert session.choice.startswith("auto chose wasm: measured wasm ")
        measured = re.search(r"toy ([\d.]+) ms", session.choice)
        assert measured is not None
        assert float(measured[1]) >= 1000 * SLOW_S
        assert not session.autotune_pending
        assert session.same_backend == "wasm"
        await answer(session)
        await until(lambda: Rival.built[0].closed)

    played(story())


def test_who_is_faster_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    row = replace(registry.ROWS["toy"], auto=True)
    others = {name: replace(found, auto=False) for name, found in registry.ROWS.items()}
    monkeypatch.setattr(registry, "ROWS", {**others, "other": replace(row, name="other"), "toy": row})
    builder = RivalBackend.build

    async def second_is_slow(self: RivalBackend, graph: Graph, host: Host, options: BuildOptions) -> Rival:
        rival = await builder(self, graph, host, options)
        rival.slow = len(Rival.built) == 2
        return rival

    monkeypatch.setattr(RivalBackend, "build", second_is_slow)

    async def story() -> None:
        session = await webinfer.load(model())
        await session.autotune_done()
        first, second = Rival.built
        assert session.executor is first
        assert second.closed
        await answer(session)
        assert not first.closed

    played(story())


def test_nothing_is_built_before_the_first_run_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "FIRST_RUN_S", 10.0)
    asked: list[str] = []
    wasm = registry.open_backend("wasm")
    build = wasm.build

    async def noted(*given: Any) -> Any:
        asked.append("wasm")
        return await build(*given)

    monkeypatch.setattr(wasm, "build", noted)

    async def story() -> None:
        session = await webinfer.load(model())
        await session.warmup()
        await asyncio.sleep(0.05)
        assert asked == []
        await answer(session)
        assert asked == []
        await session.autotune_done()
        assert asked == ["wasm"]

    played(story())


def test_runs_go_on_while_it_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rival, "slow", True)

    async def story() -> None:
        session = await webinfer.load(model())
        settling = asyncio.ensure_future(session.autotune_done())
        while not settling.done():
            await asyncio.gather(answer(session), answer(session))
        assert session.backend == "wasm"

    played(story())


def test_a_rival_that_fails_leaves_the_first_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        session = await webinfer.load(model())
        executor = session.executor
        failing = type(executor)(executor.graph, executor._host, executor.options)  # type: ignore[attr-defined]
        failing.error = DeviceLostError("unplugged")  # type: ignore[attr-defined]

        async def build(*given: Any) -> Any:
            return failing

        monkeypatch.setattr(registry.open_backend("wasm"), "build", build)
        await session.autotune_done()
        assert session.backend == "toy"
        assert session.choice == "auto chose toy: toy cannot run it: unplugged"
        assert failing.closed  # type: ignore[attr-defined]
        await answer(session)

    played(story())


def test_a_first_one_that_fails_gives_its_place_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        session = await webinfer.load(model())
        monkeypatch.setattr(Rival, "error", DeviceLostError("unplugged"))
        await session.autotune_done()
        assert session.backend == "wasm"
        await answer(session)

    played(story())


def test_a_session_that_is_closed_meanwhile_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rival, "slow", True)

    async def story() -> None:
        session = await webinfer.load(model())
        settling = asyncio.ensure_future(session.autotune_done())
        await asyncio.sleep(SLOW_S)
        session.close()
        await settling
        with pytest.raises(ClosedError):
            await session.run(X)
        assert all(rival.closed for rival in Rival.built)

    played(story())


def test_strict_sessions_and_other_hosts_measure_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rival, "slow", True)

    async def story() -> None:
        with await webinfer.load(model(), strict=True) as session:
            assert (session.backend, session.autotune_pending) == ("wasm", False)
        monkeypatch.setattr(type(current()), "settles_later", False)
        with await webinfer.load(model()) as session:
            assert (session.backend, session.autotune_pending) == ("wasm", False)

    played(story())


def test_what_needs_another_backend_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rival, "slow", True)

    async def story() -> None:
        session = await webinfer.load(model())
        with pytest.raises(InputError, match="runs on wasm; results stay on the GPU only"):
            await session.run_on_gpu(X)
        session = await webinfer.load(model())
        assert (await session.profile(rounds=1)).backend == "wasm"

    played(story())


def test_other_sizes_have_a_measurement_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        registry, "ROWS", {**registry.ROWS, "reference": replace(registry.ROWS["reference"], auto=True)}
    )
    monkeypatch.setitem(registry.ROWS, "toy", replace(registry.ROWS["toy"], auto=False))

    async def story() -> None:
        session = await webinfer.load(open_model())
        small, large = (np.ones((1, side, side, 2), np.float32) for side in (4, 6))
        one = (await session.run(small))["y"].numpy()
        assert session.autotune_pending
        two = (await session.run(large))["y"].numpy()  # the measurement for the small one ends without a result
        await session.autotune_done()
        assert session.backend == "wasm"
        np.testing.assert_allclose((await session.run(small))["y"].numpy(), one, atol=1e-5)
        assert session.autotune_pending  # and is begun again
        await session.autotune_done()
        assert session.backend == "wasm"
        np.testing.assert_allclose((await session.run(large))["y"].numpy(), two, atol=1e-5)
        assert not session.autotune_pending

    played(story())
