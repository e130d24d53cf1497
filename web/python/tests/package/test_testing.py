"""The pytest plugin for pages: what it serves, what it waits for and what it says of pages that fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import webinfer
from webinfer.errors import InputError
from webinfer.testing import WebinferPage, served


class Browser:
    """A page whose root element has other attributes a while after it was opened."""

    url = "about:blank"

    def __init__(self, *stages: dict[str, str]) -> None:
        self.stages, self.asked = list(stages), 0

    def goto(self, url: str) -> None:
        self.url = url

    def wait_for_timeout(self, _: float) -> None:
        self.stages = self.stages[1:] or self.stages
        time.sleep(0.001)

    def locator(self, selector: str) -> Any:
        assert selector == "html"
        return self

    def get_attribute(self, name: str) -> str | None:
        return self.stages[0].get(name)


def test_a_page_is_waited_for_and_its_result_read() -> None:
    ready = {"data-state": "ready"}
    results = [{**ready, "data-webinfer-result": json.dumps({"count": n, "faces": [n]})} for n in (1, 2)]
    page = WebinferPage(Browser({}, {"data-state": "starting"}, ready, *results), "http://127.0.0.1:1/")
    assert page.open("face-detection/").page.url == "http://127.0.0.1:1/face-detection/"
    assert page.wait_for_result()["faces"] == [1]
    assert page.wait_for_result(after=1)["faces"] == [2]
    with pytest.raises(AssertionError, match=r"has no result within 0\.01 s; its state is 'ready'"):
        page.wait_for_result(after=2, limit_s=0.01)


def test_a_page_that_fails_is_told_in_its_own_words() -> None:
    error = json.dumps({"code": "policy", "message": "a policy refuses the engine"})
    failed = {"data-state": "failed", "data-webinfer-error": error}
    with pytest.raises(AssertionError, match=r"failed: .*a policy refuses the engine"):
        WebinferPage(Browser({}, failed), "http://127.0.0.1:1/").open()
    shown = {"data-state": "ready", "data-webinfer-error": error}
    with pytest.raises(AssertionError, match=r"shows .*a policy refuses"):
        WebinferPage(Browser(shown), "http://127.0.0.1:1/").open().wait_for_result()


def test_a_folder_is_served_isolated_and_gone_afterwards(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no index\.html"), served(tmp_path):
        pass
    (tmp_path / "index.html").write_text("<title>a</title>")
    with served(tmp_path) as address, urllib.request.urlopen(address, timeout=10) as answer:
        assert answer.headers["Cross-Origin-Embedder-Policy"] == "require-corp"
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(address, timeout=10)


def test_the_fixtures_open_the_site_that_an_option_names(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<title>a</title>")
    (tmp_path / "conftest.py").write_text(
        """
import pytest
pytest_plugins = ["webinfer.testing"]

@pytest.fixture
def page():  # pytest-playwright's
    class Page:
        def goto(self, url): self.url = url
        def locator(self, _): return self
        def get_attribute(self, name): return {"data-state": "ready"}.get(name)
    return Page()
"""
    )
    (tmp_path / "test_it.py").write_text(
        """
import urllib.request

def test_it(webinfer_page):
    webinfer_page.open()
    assert b"<title>" in urllib.request.urlopen(webinfer_page.page.url, timeout=10).read()
"""
    )

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path), *options]
        environment = {**os.environ, "PYTHONPATH": str(Path(webinfer.__file__).parents[1])}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)

    found = run("--webinfer-site", str(tmp_path))
    assert found.returncode == 0, found.stdout
    assert "pytest has no --webinfer-site FOLDER" in run().stdout
