"""Weights in the origin's private file system: kept as they come, checked, found again, and deleted."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Route

from e2e_tests.pages import DemoPage

Demo = Callable[..., DemoPage]
WEIGHTS = bytes(i * 131 % 251 for i in range(9_000_000))  # more than two pieces
SHA256 = hashlib.sha256(WEIGHTS).hexdigest()
RUN = "(code) => self.pyodide.runPythonAsync(code).then(JSON.parse)"
BEGIN = f"""
import json

SHA256 = {SHA256!r}
from webinfer.host import weights_browser as w
from webinfer.spans import FileSpan
steps = []
async def fetched():
    return await w.fetched_file("/weights.bin", [SHA256], lambda event: steps.append((event.done, event.total)))
"""
HELD = """
access = await w._opened(SHA256, True)  # as another tab has it that fetches it
freed, left = await w.forget(), len(await w.stored())
stages = []
def told(event):
    stages.append([event.stage, event.done])
    access.close()
file = await w.fetched_file("/weights.bin", [SHA256], told)
file.close()
json.dumps([freed, left, stages])
"""
DAMAGED = """
(await w.kept([SHA256])).close()  # found right, and not looked at again until it changes
access = await w._opened(SHA256, True)
access.write(w.to_js(b"?"), w.options(at=6_000_000))
access.close()
json.dumps([await w.kept([SHA256]) is None, await w.stored()])
"""


FULL = """
import hashlib

file = await fetched()
json.dumps([type(file).__name__, file.size, hashlib.sha256(file.read(0, file.size)).hexdigest(), len(await w.stored())])
"""


class Server:
    """Answers requests for one file, each in the next of these ways."""

    def __init__(self, *ways: Callable[[bytes], bytes]) -> None:
        self.ways, self.asked = list(ways), list[str]()

    def answer(self, route: Route) -> None:
        """The bytes of the range that is asked for, as the way at hand leaves them."""
        asked = route.request.headers["range"]
        self.asked.append(asked)
        wanted = WEIGHTS[int(asked.removeprefix("bytes=").removesuffix("-")) :]
        headers = {"Content-Length": str(len(wanted)), "Content-Type": "application/octet-stream"}
        route.fulfill(status=206, headers=headers, body=self.ways.pop(0)(wanted))


def _whole(data: bytes) -> bytes:
    return data


def _cut_off(data: bytes) -> bytes:
    return data[:5_000_000]


def _damaged(data: bytes) -> bytes:
    return data[:-9] + b"?" + data[-8:]


def _opened(demo: Demo, server: Server) -> tuple[DemoPage, Callable[[str], Any]]:
    page = demo("", path="/chat")
    page.context.route("**/weights.bin", server.answer)
    page.wait_for("engine", lambda: page.page.locator("#pick").is_enabled())
    worker = page.worker
    return page, lambda code: worker.evaluate(RUN, BEGIN + code)


def test_weights_are_resumed_found_again_and_fetched_once_more_if_damaged(demo: Demo) -> None:
    server = Server(_cut_off, _whole, _damaged, _whole, _damaged, _damaged)
    _, run = _opened(demo, server)
    first = run("""
file = await fetched()
end = file.read(file.size - 4, 4).hex()
file.close()
json.dumps([file.size, end, steps[-1], max(total for _, total in steps)])
""")
    assert first == [len(WEIGHTS), WEIGHTS[-4:].hex(), [len(WEIGHTS)] * 2, len(WEIGHTS)]
    assert server.asked == ["bytes=0-", "bytes=5000000-"]
    span = run(
        """
file = await w.kept([SHA256])
span = FileSpan(file, 4_000_000, 1_000_000).part(100, 300_000)
shared = w.js.Uint8Array.new(w.js.SharedArrayBuffer.new(len(span)))
span.copy_into(shared)
found = [len(span), bytes(memoryview(span)).hex()[:40], bytes(span) == span.view() == shared.slice().to_bytes()]
file.close()
json.dumps(found)
"""
    )
    assert span == [300_000, WEIGHTS[4_000_100:4_000_120].hex(), True]
    held = run(HELD)
    assert held == [0, 2, [["elsewhere", len(WEIGHTS)]]]
    found = run("json.dumps([await w.forget(), await w.stored(), await w.kept([SHA256]) is None])")
    assert found[0] > len(WEIGHTS)
    assert found[1:] == [{}, True]

    assert run("file = await fetched()\nfile.close()\njson.dumps(file.size)") == len(WEIGHTS)
    assert server.asked[2:] == ["bytes=0-"] * 2  # the first came damaged
    left = run(DAMAGED)
    assert left == [True, {}]
    refused = run("""
from webinfer.errors import IntegrityError
try:
    await fetched()
    found = ""
except IntegrityError as error:
    found = str(error)
json.dumps([found, await w.stored()])
""")
    assert "was published" in refused[0]
    assert refused[1] == {}
    assert server.asked[4:] == ["bytes=0-"] * 2


def test_weights_that_find_no_room_are_used_without_being_kept(demo: Demo) -> None:
    server = Server(_whole, _whole)
    page, run = _opened(demo, server)
    session = page.context.new_cdp_session(page.page)
    origin = "/".join(page.page.url.split("/")[:3])
    session.send("Storage.overrideQuotaForOrigin", {"origin": origin, "quotaSize": 6_000_000})
    assert run(FULL) == ["BlobFile", len(WEIGHTS), SHA256, 0]
