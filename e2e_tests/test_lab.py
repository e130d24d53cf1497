"""The lab's page: a browser that agrees is driven from CPython, shows what was measured, and stops when told to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import webinfer
from e2e_tests.pages import DemoPage

MODEL = "blazeface_short_range"
TOKEN = "right"
IMAGE = np.random.default_rng(0).uniform(-1, 1, (1, 128, 128, 3)).astype(np.float32)


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
        with pytest.raises(webinfer.InputError, match="does nothing called"):
            await device.ask("chat_open", {"name": "smollm2"})
        stop()
        with pytest.raises(webinfer.lab.DeviceGoneError):
            await for_ever(session)
    return {"found": found, "profile": profile, "times": timing.times_ms, "steps": steps, "about": device.about}


def test_a_browser_is_driven_after_consent_until_its_user_stops_it(
    demo: Callable[..., DemoPage], lab_address: str
) -> None:
    page = demo(f"#token={TOKEN}", path="/lab", address=lab_address)
    agree = page.page.locator("#agree")
    page.wait_for("lab", lambda: agree.get_attribute("aria-disabled") == "false")
    assert page.text("#devices") == "None is here yet."  # nothing happens before consent
    page.page.locator("#name").fill("tab 1")
    agree.click()
    page.wait_for("device", lambda: page._dataset("webinferDevice"))
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
    assert agree.is_visible()
    assert "tab 1, wasm" in page.page.locator("#chart").inner_text()
    assert page.page.locator("#table tbody tr").count() >= 3
    page.wait_for("emptiness", lambda: page.text("#devices") == "None is here yet.")


def test_an_address_without_the_right_token_says_so(demo: Callable[..., DemoPage], lab_address: str) -> None:
    page = demo("#token=wrong", path="/lab", address=lab_address)
    page.wait_for("words", lambda: "token is missing or wrong" in page.text("#devices"))
    assert page.page.locator("#agree").get_attribute("aria-disabled") == "true"
    assert any("401" in complaint for complaint in page.complaints)
    page.complaints.clear()
