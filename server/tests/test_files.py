"""Files as answers: thousands at once leave time for others, and who does not read keeps nobody waiting."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from server.files import PIECE_BYTES, WholeFile

PIECES = 5
Send = Callable[[dict[str, Any]], Awaitable[None]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "file.bin"
    made.write_bytes(bytes(range(256)) * (PIECES * PIECE_BYTES // 256))
    return made


async def nothing() -> dict[str, Any]:
    return {}


async def answered(path: Path, turns: asyncio.Semaphore, send: Send, method: str = "GET") -> None:
    await WholeFile(path, {}, turns)({"type": "http", "method": method}, nothing, send)


def test_many_files_leave_time_for_others(path: Path) -> None:
    sent, most = 0, 0

    async def send(message: dict[str, Any]) -> None:
        nonlocal sent
        sent += bool(message.get("body"))

    async def other(done: asyncio.Event) -> None:
        nonlocal most
        while not done.is_set():
            before = sent
            await asyncio.sleep(0)
            most = max(most, sent - before)

    async def both() -> None:
        turns, done = asyncio.Semaphore(4), asyncio.Event()
        watching = asyncio.create_task(other(done))
        await asyncio.gather(*(answered(path, turns, send) for _ in range(100)))
        done.set()
        await watching

    asyncio.run(both())
    assert sent == 100 * PIECES
    assert 0 < most <= 8  # pieces between two turns of another client


def test_who_does_not_read_keeps_nobody_waiting(path: Path) -> None:
    received = bytearray()

    async def take(message: dict[str, Any]) -> None:
        received.extend(message.get("body", b""))

    async def both() -> None:
        turns, full = asyncio.Semaphore(1), asyncio.Event()

        async def never_read(message: dict[str, Any]) -> None:
            if full.is_set():
                await asyncio.Event().wait()
            if message.get("body"):
                full.set()

        unread = asyncio.create_task(answered(path, turns, never_read))
        await full.wait()
        async with asyncio.timeout(5):
            await answered(path, turns, take)
        unread.cancel()

    asyncio.run(both())
    assert bytes(received) == path.read_bytes()


def test_a_file_that_became_shorter_breaks_the_answer_off(path: Path) -> None:
    async def take(message: dict[str, Any]) -> None:
        pass

    async def shortened() -> None:
        answer = WholeFile(path, {}, asyncio.Semaphore(1))
        path.write_bytes(b"short")
        await answer({"type": "http", "method": "GET"}, nothing, take)

    with pytest.raises(OSError, match="has become shorter"):
        asyncio.run(shortened())


def test_the_head_has_the_length_and_no_body(path: Path) -> None:
    messages: list[dict[str, Any]] = []

    async def take(message: dict[str, Any]) -> None:
        messages.append(message)

    asyncio.run(answered(path, asyncio.Semaphore(1), take, "HEAD"))
    assert (b"content-length", str(PIECES * PIECE_BYTES).encode()) in messages[0]["headers"]
    assert messages[1:] == [{"type": "http.response.body", "body": b""}]
