"""Tests of pages that run webinfer, with pytest and Playwright: serve a folder, open a page, wait until it is ready.

    # conftest.py
    pytest_plugins = ["webinfer.testing"]

    # test_page.py, run by: pytest --webinfer-site site/
    def test_faces(webinfer_page):
        webinfer_page.open("face-detection/")
        webinfer_page.page.set_input_files("input[type=file]", "photo.jpg")
        assert webinfer_page.wait_for_result()["faces"]

Pages report their state in attributes of their root element: `data-state` is "starting", "ready" or "failed";
`data-webinfer-result` and `data-webinfer-error` hold JSON. Playwright's `wait_for_function` needs 'unsafe-eval', which
the Content-Security-Policy of webinfer's pages does not allow; attributes can be read without it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urljoin

import pytest

from webinfer.errors import InputError
from webinfer.package.serving import open_server

LIMIT_S = 60.0
POLL_S = 0.05
T = TypeVar("T")


@contextmanager
def served(folder: str | Path, port: int = 0) -> Iterator[str]:
    """Serves a folder on this machine, with the headers that threads need; the address of the server.

    Raises:  InputError if the folder has no index.html, or the port is taken
    """
    with open_server(Path(folder), port) as address:
        yield address


class WebinferPage:
    """A page of webinfer's in a browser; `page` is Playwright's. Times are in seconds."""

    def __init__(self, page: Any, address: str, limit_s: float = LIMIT_S) -> None:
        self.page, self.address, self.limit_s = page, address, limit_s

    def open(self, path: str = "", limit_s: float | None = None) -> WebinferPage:
        """Opens a page of the site and waits until it is ready.

        Raises:  AssertionError with the page's error if it fails, or is not ready in time
        """
        self.page.goto(urljoin(self.address, path))
        self.wait_until_ready(limit_s)
        return self

    @property
    def state(self) -> str:
        """The page's state: "starting", "ready", "failed", or "" if it reports none."""
        return self._attribute("data-state")

    @property
    def error(self) -> dict[str, Any] | None:
        """The error that the page shows: its `code` and `message`."""
        return self._json("data-webinfer-error")

    @property
    def result(self) -> dict[str, Any] | None:
        """The last result, of which `count` is the number."""
        return self._json("data-webinfer-result")

    def wait_until_ready(self, limit_s: float | None = None) -> None:
        """Returns when the page can be used.

        Raises:  AssertionError
        """

        def ready() -> bool:
            if self.state == "failed":
                raise AssertionError(f"the page {self.page.url} failed: {self.error}")
            return self.state == "ready"

        self._wait_for("state ready", ready, limit_s)

    def wait_for_result(self, after: int = 0, limit_s: float | None = None) -> dict[str, Any]:
        """The first result with a number above `after`.

        Raises:  AssertionError if the page shows an error first, or there is no result in time
        """

        def found() -> dict[str, Any] | None:
            result = self.result
            if result and result.get("count", 1) > after:
                return result
            if error := self.error:
                raise AssertionError(f"the page {self.page.url} shows {error}")
            return None

        result = self._wait_for("result", found, limit_s)
        assert result is not None
        return result

    def _wait_for(self, what: str, ask: Callable[[], T], limit_s: float | None) -> T:
        limit_s = self.limit_s if limit_s is None else limit_s
        end = time.monotonic() + limit_s
        while True:
            if answer := ask():
                return answer
            if time.monotonic() > end:
                raise AssertionError(
                    f"the page {self.page.url} has no {what} within {limit_s} s; its state is {self.state!r}, "
                    f"the error that it shows {self.error}"
                )
            self.page.wait_for_timeout(POLL_S * 1e3)  # Playwright's own events go on meanwhile

    def _attribute(self, name: str) -> str:
        return str(self.page.locator("html").get_attribute(name) or "")

    def _json(self, name: str) -> dict[str, Any] | None:
        text = self._attribute(name)
        found: dict[str, Any] | None = json.loads(text) if text else None
        return found


def pytest_addoption(parser: Any) -> None:
    """Adds the option that names the site."""
    parser.addoption("--webinfer-site", metavar="FOLDER", help="what `export` wrote: served to `webinfer_page`")


def _site(request: Any) -> Iterator[str]:
    """The address of the folder that --webinfer-site names."""
    folder = request.config.getoption("--webinfer-site")
    if not folder:
        raise InputError("pytest has no --webinfer-site FOLDER; `webinfer export FOLDER --package FILE` writes one")
    with served(folder) as address:
        yield address


def _page(page: Any, webinfer_site: str) -> WebinferPage:
    """A page of the site in a browser: pytest-playwright's `page`, opened by `open`."""
    return WebinferPage(page, webinfer_site)


webinfer_site = pytest.fixture(scope="session", name="webinfer_site")(_site)
webinfer_page = pytest.fixture(name="webinfer_page")(_page)
