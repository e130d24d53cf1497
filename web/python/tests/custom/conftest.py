"""Operators that a test registers are gone after it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from webinfer.ops.custom import BY_CODE, CUSTOM


@pytest.fixture(autouse=True)
def only_my_operators() -> Iterator[None]:
    yield
    CUSTOM.clear()
    BY_CODE.clear()
