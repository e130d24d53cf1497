"""A lab with a server of its own, and devices that join it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.lab.devices import Devices


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a lab's server."""
    from server.tests.lab_devices import running_lab  # needs what test modules look for first

    with running_lab(tmp_path_factory.mktemp("lab"), lab_message_bytes=1 << 20) as address:
        yield address


@pytest.fixture
def devices(root: str) -> Iterator[Devices]:
    """Devices that go when the test ends."""
    from tests.lab.devices import Devices

    with closing(Devices(root)) as found:
        yield found
