"""A network that hangs or crawls: the page says what happened, offers a way on, and ends nothing that still comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Route

from e2e_tests.flaky import FlakyNetwork
from e2e_tests.pages import DemoPage

Demo = Callable[..., DemoPage]
STALL_TIMEOUT_S = 2
QUERY = f"?backend=wasm&stallTimeout={STALL_TIMEOUT_S}"
IN_THE_ENGINE = 6_000_000  # in the middle of its largest file


def never(route: Route) -> None:
    """No answer, ever: the request waits until the page gives it up."""


@pytest.fixture
def network(address: str) -> Iterator[FlakyNetwork]:
    """A network between the browser and the server."""
    with FlakyNetwork(address) as network:
        yield network


def try_again(page: DemoPage) -> None:
    """Presses the button, or follows the link of a page that has not started."""
    unstarted = page.page.locator("#unstarted a")
    (unstarted if unstarted.count() else page.page.get_by_role("button", name="Try again")).click()


def test_a_page_that_does_not_come_is_given_up_and_trying_again_helps(demo: Demo, network: FlakyNetwork) -> None:
    network.carry_only(r"/face-detection\S*|\S*\.css")  # and none of its scripts
    page = demo(QUERY, address=network.address, wait_until="commit")
    page.wait_for("message", lambda: "no data has arrived for 2 seconds" in page.text("#unstarted"))
    assert page.page.locator("#unstarted").is_visible()
    assert page.error
    network.recover()
    try_again(page)
    assert len(page.wait_for_result()["faces"]) == 1
    assert page.page.locator("#unstarted").count() == 0


def test_a_download_that_stands_still_is_given_up_and_trying_again_helps(demo: Demo, network: FlakyNetwork) -> None:
    network.hang_after(IN_THE_ENGINE)
    page = demo(QUERY, address=network.address)
    assert "nothing has come for 2 seconds" in page.wait_for_error("download")["message"]
    network.recover()
    try_again(page)
    assert len(page.wait_for_result()["faces"]) == 1


def test_a_slow_network_is_waited_for(demo: Demo, network: FlakyNetwork) -> None:
    network.be_slow(1_300_000)
    page = demo(QUERY, address=network.address)
    assert page.wait_for_result()["first_ms"] > 3 * 1000 * STALL_TIMEOUT_S


def test_an_engine_that_never_answers_can_be_started_again(demo: Demo) -> None:
    page = demo(QUERY, broken=("**/engine_worker.js", never))
    page.wait_for("offer", page.page.get_by_role("button", name="Try again").is_visible)
    assert "No data has arrived from the engine for" in page.text("#message")
    page.mended = True
    try_again(page)
    assert len(page.wait_for_result()["faces"]) == 1
    assert page.page.locator("#message").is_hidden()


def test_a_photo_that_does_not_come_is_said_and_asked_for_again(demo: Demo) -> None:
    page = demo(QUERY, broken=("**/astronaut*", never), wait_until="commit")
    assert "has not arrived yet" in page.wait_for_error("download", "sample photo")["message"]
    page.mended = True
    try_again(page)
    assert len(page.wait_for("result", lambda: page.result)["faces"]) == 1
    assert page.error is None
