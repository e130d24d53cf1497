"""Sessions are tested in a process that has no custom operators: where there are some, no plan is stored."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from webinfer.ops.custom import BY_CODE, CUSTOM


@pytest.fixture(autouse=True)
def without_custom_operators() -> Iterator[None]:
    """Puts those aside that tests of other rooms have left in this process."""
    left = [(names, dict(names)) for names in (CUSTOM, BY_CODE)]
    for names, _ in left:
        names.clear()  # type: ignore[attr-defined]
    yield
    for names, before in left:
        names.clear()  # type: ignore[attr-defined]
        names.update(before)  # type: ignore[attr-defined]
