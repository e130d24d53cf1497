"""Browsers of others as devices of a lab: of a Selenium Grid, or of a Playwright server. They agree unasked.

The grid is talked to in WebDriver's own protocol, so that a chromedriver or geckodriver does as well, and no package is
needed. The browsers must reach the lab's address.
"""

from __future__ import annotations

import asyncio
import json
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from webinfer.lab.addresses import place_of
from webinfer.lab.errors import LabError

START_S = 180.0  # until a browser has loaded the page and the engine, and is in the lab
POLL_S = 0.1
HEADLESS = {
    "chrome": {"goog:chromeOptions": {"args": ["--headless=new"]}},
    "firefox": {"moz:firefoxOptions": {"args": ["-headless"]}},
}
READY = "() => document.querySelector('#agree')?.getAttribute('aria-disabled') === 'false'"
AGREE = "name => { document.querySelector('#name').value = name; document.querySelector('#agree').click(); }"
HERE = "() => 'webinferDevice' in document.documentElement.dataset"
Script = Callable[..., Awaitable[Any]]  # runs a function's text with arguments in a page


@asynccontextmanager
async def grid_browsers(
    grid: str, count: int, *, browser: str = "chrome", address: str | None = None
) -> AsyncIterator[list[str]]:
    """The names of so many devices, which are browsers of a Selenium Grid until the block ends.

    `grid` is its address, such as http://host:4444. `address` is the lab's, as `lab.device` takes it.

    Raises:  LabError if the grid refuses, or a browser does not come into the lab
    """
    page = _page(address)
    always = {"browserName": browser, **HEADLESS.get(browser, {})}
    async with AsyncExitStack() as stack:
        names = []
        for number in range(1, count + 1):
            found = await _asked(grid, "POST", "session", {"capabilities": {"alwaysMatch": always}})
            session = f"session/{found['sessionId']}"
            stack.push_async_callback(_asked, grid, "DELETE", session)
            await _asked(grid, "POST", f"{session}/url", {"url": page})

            async def script(text: str, *given: Any, session: str = session) -> Any:
                fields = {"script": f"return ({text})(...arguments)", "args": given}
                return await _asked(grid, "POST", f"{session}/execute/sync", fields)

            names.append(await _joined(script, f"grid {browser} {number}"))
        yield names


@asynccontextmanager
async def playwright_browsers(
    endpoint: str, count: int, *, browser: str = "chrome", address: str | None = None
) -> AsyncIterator[list[str]]:
    """The names of so many devices, which are pages of a browser that is elsewhere, until the block ends.

    `endpoint` is a Playwright server (ws://…), or a Chromium that listens to drivers (http://…).

    Raises:  LabError without Playwright, or if a page does not come into the lab
    """
    try:
        from playwright.async_api import Error, async_playwright
    except ImportError as error:
        raise LabError(f"browsers of Playwright need its package: pip install playwright ({error})") from None
    page = _page(address)
    async with AsyncExitStack() as stack:
        try:
            driver = await stack.enter_async_context(async_playwright())
            kind = getattr(driver, "chromium" if browser == "chrome" else browser)
            connect = kind.connect_over_cdp if endpoint.startswith("http") else kind.connect
            connection = await connect(endpoint)
            stack.push_async_callback(connection.close)
            names = []
            for number in range(1, count + 1):
                context = await connection.new_context()
                stack.push_async_callback(context.close)
                tab = await context.new_page()
                await tab.goto(page)

                async def script(text: str, *given: Any, tab: Any = tab) -> Any:
                    return await tab.evaluate(text, *given)

                names.append(await _joined(script, f"{browser} {number}"))
        except Error as error:
            raise LabError(f"the browser at {endpoint}: {error}") from error
        yield names


def _page(address: str | None) -> str:
    place = place_of(address)
    return f"{place.root}/lab#token={place.token}"


async def _joined(script: Script, name: str) -> str:
    """Has the lab's page agree to be a device of this name."""
    await _until(script, READY, f"{name}: the lab's page does not open there")
    await script(AGREE, name)
    await _until(script, HERE, f"{name}: its engine does not start")
    return name


async def _until(script: Script, condition: str, complaint: str) -> None:
    end = time.monotonic() + START_S
    while not await script(condition):
        if time.monotonic() > end:
            raise LabError(complaint)
        await asyncio.sleep(POLL_S)


async def _asked(grid: str, method: str, path: str, fields: dict[str, Any] | None = None) -> Any:
    """What a WebDriver answers."""
    data = None if fields is None else json.dumps(fields).encode()
    headers = {"Content-Type": "application/json; charset=utf-8"}
    request = urllib.request.Request(f"{grid.rstrip('/')}/{path}", data, headers, method=method)

    def answer() -> bytes:
        with urllib.request.urlopen(request, timeout=START_S) as found:
            return bytes(found.read())

    try:
        return json.loads(await asyncio.to_thread(answer))["value"]
    except urllib.error.HTTPError as error:
        raise LabError(f"the grid at {grid} refuses: {_message(error.read()) or error}") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LabError(f"the grid at {grid} does not answer as a WebDriver: {error}") from error


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body)["value"]["message"]).partition("\n")[0]
    except (ValueError, KeyError, TypeError):
        return ""
