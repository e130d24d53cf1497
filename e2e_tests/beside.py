"""What tests run in CPython beside a page: Playwright has the event loop of their thread."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def in_cpython(work: Coroutine[Any, Any, T]) -> T:
    """What a coroutine gives, in a thread and an event loop of its own."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
