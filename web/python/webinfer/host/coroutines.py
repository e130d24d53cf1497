"""Coroutines that are run to their end where nothing can wait."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from webinfer.errors import InputError


def driven(work: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that waits for nothing but turns of the event loop, which it is given at once.

    Raises:  what the coroutine raises; InputError if it waits for anything else
    """
    try:
        while work.send(None) is None:
            pass
    except StopIteration as end:
        return end.value
    work.close()
    raise InputError(
        "blocking is not possible here: use await, or call Python with runPythonAsync in a browser with JSPI"
    )
