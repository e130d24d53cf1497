"""The GPU process dies: the run in flight ends in a typed error, one rebuild gives the right results, then wasm."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Browser, Worker

from e2e_tests.pages import DemoPage

Demo = Callable[..., DemoPage]
SETUP = """
import js, json, webinfer
from webinfer.errors import DeviceLostError, LimitError, OutOfMemoryError

session = await webinfer.load("blazeface_short_range", backend=["webgpu", "wasm"])
inputs = session.noise()
wanted = {name: tensor.tolist() for name, tensor in (await session.run(inputs)).items()}


async def until_lost():
    end = js.performance.now() + 60_000
    while js.performance.now() < end:
        try:
            await session.run(inputs)
            js.runs += 1
        except DeviceLostError as error:
            return str(error)
    return ""


async def state():
    got = await session.run(inputs)
    apart = max(abs(a - b) for name in wanted for a, b in zip(got[name].tolist(), wanted[name]))
    return json.dumps({"apart": apart, "backend": session.backend, "choice": session.plan().choice})
"""

# A thousand of the largest buffers that this GPU takes, and a WebAssembly memory beyond 32 bits.
HUGE = """
from webinfer.host import current


async def failure(action):
    try:
        await action()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


async def on_gpu():
    device = await current().gpu()
    await device.program("huge", [device.limits["maxBufferSize"]] * 1024, b"", [])


async def on_wasm():
    kernels = await current().kernels()
    kernels.grow(2**33)


json.dumps({"gpu": await failure(on_gpu), "wasm": await failure(on_wasm)})
"""


def crash_gpu(browser: Browser) -> None:
    """Ends the GPU process, as a driver's fault does."""
    session = browser.new_browser_cdp_session()
    session.send("Browser.crashGpuProcess")
    session.detach()


def python(worker: Worker, code: str) -> Any:
    """What a piece of Python says inside the engine's worker."""
    return worker.evaluate("(code) => pyodide.runPythonAsync(code)", code)


def lose(page: DemoPage, browser: Browser) -> str:
    """Crashes the GPU process while the session runs; the text of the error that ends the run."""
    worker = page.worker
    worker.evaluate("Object.assign(self, { lost: null, runs: 0 })")
    worker.evaluate("() => void pyodide.runPythonAsync('await until_lost()').then((text) => { self.lost = text; })")
    page.wait_for("runs", lambda: worker.evaluate("self.runs") > 3)
    crash_gpu(browser)
    text: str = page.wait_for("loss", lambda: worker.evaluate("self.lost"), 70)
    return text


def test_a_run_in_flight_ends_in_a_typed_error_and_the_session_recovers(
    demo: Demo, browser_that_loses_its_gpu: Browser
) -> None:
    page = demo("?backend=wasm", browser=browser_that_loses_its_gpu)
    page.wait_for_result()
    worker = page.worker
    python(worker, SETUP)
    assert "was lost" in lose(page, browser_that_loses_its_gpu)
    first = json.loads(python(worker, "await state()"))
    assert first["backend"] == "webgpu", first
    assert "lost 1 time" in first["choice"], first
    assert first["apart"] == 0, first
    assert "was lost" in lose(page, browser_that_loses_its_gpu)
    second = json.loads(python(worker, "await state()"))
    assert second["backend"] == "wasm", second
    assert "because the GPU was lost 2 times" in second["choice"], second
    assert second["apart"] < 0.01, second


def test_the_page_goes_on_after_each_loss_and_says_what_it_runs_on(
    demo: Demo, browser_that_loses_its_gpu: Browser
) -> None:
    page = demo("?backend=webgpu", browser=browser_that_loses_its_gpu, permissions=["camera"])
    page.wait_for_result()
    page.page.get_by_role("button", name="Start the camera").click()
    page.wait_for("camera", lambda: page.result["source"] == "camera")  # type: ignore[index]
    backends = []
    for losses in (1, 2):
        page.wait_for_result(after=page.count + 2)
        crash_gpu(browser_that_loses_its_gpu)
        said = f"the GPU was lost {losses} time"
        page.wait_for("another device", lambda said=said: said in page.text("#backend"))
        backends.append(page.result["backend"])  # type: ignore[index]
        error = page.error  # none if no run was in flight
        assert not error or error["code"] == "device-lost", error
    assert backends == ["webgpu", "wasm"]
    assert "Runs on wasm" in page.text("#backend")


def test_more_memory_than_there_is_is_a_typed_error_and_the_next_session_works(
    demo: Demo, browser_that_loses_its_gpu: Browser
) -> None:
    page = demo("?backend=wasm", browser=browser_that_loses_its_gpu)
    page.wait_for_result()
    worker = page.worker
    python(worker, SETUP)
    said = json.loads(python(worker, HUGE))
    assert said["gpu"].startswith("OutOfMemoryError"), said
    assert said["wasm"].startswith("OutOfMemoryError"), said
    assert json.loads(python(worker, "await state()"))["apart"] == 0  # the session that was there
    assert python(
        worker, "again = await webinfer.load(session.name, backend='webgpu', strict=True); again.backend"
    ) == ("webgpu")
    assert python(worker, "found = await again.run(inputs); all(found[n].tolist() == wanted[n] for n in wanted)")
