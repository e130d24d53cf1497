"""A network that hangs or crawls: the page says what happened, offers a way on, and ends nothing that still comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from e2e_tests.flaky import FlakyNetwork
from e2e_tests.pages import DemoPage

Demo = Callable[..., DemoPage]
PATIENCE_S = 2
SITE = "?backend=wasm&patience=2"


@pytest.fixture
def network(address: str) -> Iterator[FlakyNetwork]:
    """A network between the browser and the server."""
    with FlakyNetwork(address) as network:
        yield network


def test_a_download_that_stands_still_is_given_up_and_trying_again_helps(demo: Demo, network: FlakyNetwork) -> None:
    network.hang_after(6_000_000)  # in the middle of the largest file
    page = demo(SITE, address=network.address)
    assert "nothing has come for 2 seconds" in page.wait_for_error("download")["message"]
    network.recover()
    page.page.get_by_role("button", name="Try again").click()
    assert len(page.wait_for_result()["faces"]) == 1


def test_a_slow_network_is_waited_for(demo: Demo, network: FlakyNetwork) -> None:
    network.be_slow(1_300_000)
    page = demo(SITE, address=network.address)
    assert page.wait_for_result()["first_ms"] > 3 * 1000 * PATIENCE_S
