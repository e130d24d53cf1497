"""The lab's page: a browser that agrees is driven from CPython, shows what was measured, and stops when told to."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import WebSocket

import webinfer
from build_scripts.paths import NODE_MODULES, WHEELS
from build_scripts.site.wheel import wheel_name
from e2e_tests.beside import in_cpython
from e2e_tests.models import classifier
from e2e_tests.pages import DemoPage

MODEL = "blazeface_short_range"
TOKEN = "right"
MANY = 900  # runs, which three browsers do in 5 to 20 s
RUNS, LOOK_S, SHOWN = 60, 3.0, 12  # the page looks at the lab so often at most, and shows so many questions
IMAGE = np.random.default_rng(0).uniform(-1, 1, (1, 128, 128, 3)).astype(np.float32)


def agreed(page: DemoPage, name: str = "tab 1") -> DemoPage:
    """The lab's page once its user has agreed to be a device."""
    agree = page.page.locator("#agree")
    page.wait_for("lab", lambda: agree.get_attribute("aria-disabled") == "false")
    assert name not in page.text("#devices")  # nothing happens before consent
    assert page.page.locator("#unstarted").count() == 0  # nor does a page that waits for it say that it has not started
    page.page.locator("#name").fill(name)
    agree.click()
    page.wait_for("device", lambda: page._dataset("webinferDevice"))
    return page


async def for_ever(session: webinfer.lab.DeviceSession) -> None:
    """Keeps a device busy."""
    while True:
        await session.bench(50)


async def driven(address: str, stop: Callable[[], None]) -> dict[str, Any]:
    """What a program does with the device, and what it finds; `stop` has the page's user end it."""
    steps = []
    async with await webinfer.lab.device("tab 1", address) as device:
        session = await device.load(MODEL, backend="wasm")
        found = {name: tensor.numpy() for name, tensor in (await session.run({"input": IMAGE})).items()}
        profile = await session.profile(rounds=1, progress=steps.append)
        timing = await session.bench(5)
        with pytest.raises(webinfer.InputError, match="has no action called"):
            await device.ask("chat_open", {"name": "smollm2"})
        stop()
        with pytest.raises(webinfer.lab.DeviceGoneError):
            await for_ever(session)
    return {"found": found, "profile": profile, "times": timing.times_ms, "steps": steps, "about": device.about}


def test_a_browser_is_driven_after_consent_until_its_user_stops_it(
    demo: Callable[..., DemoPage], lab_address: str
) -> None:
    page = agreed(demo(f"#token={TOKEN}", path="/lab", address=lab_address))
    asked: list[bool] = []
    with ThreadPoolExecutor(1) as beside:
        work = beside.submit(asyncio.run, driven(f"{lab_address}/lab#token={TOKEN}", lambda: asked.append(True)))
        page.wait_for("end of the work", lambda: asked or work.done())
        assert page._dataset("webinferDriven") == {"by": "127.0.0.1"} or work.result()
        page.wait_for("chart", lambda: page.page.locator("#chart .bar-of").count() == 1)
        page.page.locator("#stop").click()
        page.wait_for("end", work.done)
        result = work.result()
    with webinfer.load_sync(MODEL, backend="wasm") as session:
        for name, tensor in session.run({"input": IMAGE}).items():
            np.testing.assert_allclose(result["found"][name], tensor.numpy(), rtol=1e-4, atol=1e-3)
    assert len(result["profile"].times_ms) == len(result["profile"].rows) > 10
    assert len(result["times"]) == 5
    assert result["steps"]
    assert result["about"]["engine"]
    assert page.page.locator("#agree").is_visible()
    assert "tab 1, wasm" in page.page.locator("#chart").inner_text()
    assert page.page.locator("#table tbody tr").count() >= 3
    page.wait_for("emptiness", lambda: page.text("#devices") == "No devices yet.")


async def runs(address: str, count: int) -> None:
    """Runs a model one time after the other."""
    async with await webinfer.lab.device("tab 1", address) as device:
        session = await device.load(MODEL, backend="wasm")
        for _ in range(count):
            await session.run({"input": IMAGE})


def test_a_run_is_one_message_each_way_and_the_page_asks_the_server_for_little_else(
    demo: Callable[..., DemoPage], lab_address: str
) -> None:
    page = demo(f"#token={TOKEN}", path="/lab", address=lab_address)
    kinds, requests = Counter[str](), list[str]()

    def heard(data: str | bytes) -> None:
        text = data if isinstance(data, str) else data[4 : 4 + int.from_bytes(data[:4], "little")]
        kinds.update([json.loads(text)["type"]])

    def opened(socket: WebSocket) -> None:
        socket.on("framereceived", heard)
        socket.on("framesent", heard)

    page.page.on("websocket", opened)
    agreed(page)
    page.page.on("request", lambda request: requests.append(request.url) if "/api/lab/" in request.url else None)
    begun = time.monotonic()
    with ThreadPoolExecutor(1) as beside:
        work = beside.submit(asyncio.run, runs(f"{lab_address}/lab#token={TOKEN}", RUNS))
        page.wait_for("end of the work", work.done)
        work.result()
    page.wait_for("the last answer", lambda: page.page.locator("#asked em").first.inner_text() == "done")
    looks = 2 * (2 + (time.monotonic() - begun) / LOOK_S)  # by the clock, and behind answers
    commands = RUNS + 2  # open, plan
    assert (kinds["ask"], kinds["answer"]) == (commands, commands)
    assert len(requests) <= 2 * looks, "a look asks for devices and for results"
    assert page.page.locator("#asked li").count() == SHOWN


def test_browsers_are_one_executor_and_one_that_is_closed_loses_nothing(
    demo: Callable[..., DemoPage], lab_address: str
) -> None:
    names = [f"worker {number}" for number in range(3)]
    pages = [agreed(demo(f"#token={TOKEN}", path="/lab", address=lab_address), name) for name in names]
    images = np.random.default_rng(1).uniform(-1, 1, (60, 1, 128, 128, 3)).astype(np.float32)
    with webinfer.lab.Executor(f"{lab_address}/lab#token={TOKEN}", devices=names) as executor:
        executor.wait_for_devices(3)
        results = [executor.submit(MODEL, images[i % len(images)]) for i in range(MANY)]
        pages[0].wait_for("a part of the work", lambda: sum(result.done() for result in results) >= len(images))
        assert not all(result.done() for result in results), "it was over too soon"
        pages[1].page.close()
        pages[0].wait_for("all of the work", lambda: all(result.done() for result in results))
        found = [result.result() for result in results]
        assert executor.put_aside == {}
        assert set(executor.devices) == {"worker 0", "worker 2"}
    with webinfer.load_sync(MODEL, backend="wasm") as session:
        known = [session.run({"input": image}) for image in images]
    for i, outputs in enumerate(found):
        for name, tensor in known[i % len(images)].items():
            np.testing.assert_allclose(outputs[name].numpy(), tensor.numpy(), rtol=1e-4, atol=1e-3)


def test_an_address_without_the_right_token_says_so(demo: Callable[..., DemoPage], lab_address: str) -> None:
    page = demo("#token=wrong", path="/lab", address=lab_address)
    page.wait_for("words", lambda: "token is missing or wrong" in page.text("#devices"))
    assert page.page.locator("#unstarted").count() == 0
    assert page.page.locator("#agree").get_attribute("aria-disabled") == "true"
    assert any("401" in complaint for complaint in page.complaints)
    page.complaints.clear()


@pytest.fixture
def installed_lab(tmp_path: Path) -> Iterator[str]:
    """The address of a lab that the wheel's own command serves, with its token; results go to a file."""
    with zipfile.ZipFile(WHEELS / wheel_name()) as wheel:
        wheel.extractall(tmp_path / "installed")
    runs = "from webinfer.cli import main; raise SystemExit(main())"
    options = ["serve", "--lab", "--port", "0", "--pyodide", str(NODE_MODULES / "pyodide")]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed")}
    command = [sys.executable, "-P", "-c", runs, *options]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().split()[3]
        finally:
            server.terminate()


async def tuned(lab: str) -> dict[str, Any]:
    """What a program finds that runs, verifies and tunes a model."""
    async with await webinfer.lab.device("tab 1", lab) as device:
        session = await device.load(classifier(), backend="webgpu")
        outputs = await session.run()
        verified, report = await session.verify("wasm"), await session.tune(budget_ms=4000)
    log = await webinfer.lab.tunings(lab)
    facts = {"sum": sum(outputs["y"].tolist()), "verified": verified.ok, "timed": report.timed}
    lines = [json.loads(line) for line in log.splitlines()]
    return {**facts, "lines": lines, "asked": [row["action"] for row in await webinfer.lab.results(lab)]}


def test_an_installed_wheel_serves_a_lab_that_keeps_what_was_tuned(
    demo: Callable[..., DemoPage], installed_lab: str, tmp_path: Path
) -> None:
    address, _, token = installed_lab.partition("/lab")
    agreed(demo(token, path="/lab", address=address))
    found = in_cpython(tuned(installed_lab))
    assert found["sum"] == pytest.approx(1, abs=1e-4)
    assert found["verified"]
    assert found["timed"] > 0
    assert {line["browser"].split()[0] for line in found["lines"]} == {"Chrome"}
    assert sum("key" in line for line in found["lines"]) == found["timed"]
    assert {"run", "verify", "tune"} <= set(found["asked"])
    assert (tmp_path / "webinfer-lab.sqlite").stat().st_size > 0
