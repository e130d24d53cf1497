"""`measure pages` measures a page that fails or never ends, and says what was missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from build_scripts.bench.page_visits import visit
from e2e_tests.static_host import served

PAGES = {  # page -> what is said of it
    "done": ("<html data-model='m'><p id='downloads'>The result", ""),
    "no-model": ("<html data-model=''><p id='loading' hidden>", ""),
    "plain": ("<html><p>Text", ""),
    "failed": (
        """<html data-model='m' data-webinfer-error='{"message": "no network"}'><p id='downloads' hidden>
        <p id='message-title'>Could not download the model""",
        "Could not download the model: m",
    ),
    "silent": ("<html data-model='m'><p id='downloads' hidden>Waiting", "no result after 1 s"),
    "refused": ("<html><p>Text<img src='nothing.png'>", "the server refused /nothing.png"),
}
WINDOW = {"width": 400, "height": 300}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_measured_up_to_its_end(name: str, browser: Browser, tmp_path: Path) -> None:
    html, missing = PAGES[name]
    (tmp_path / "index.html").write_text(f"<!doctype html><link rel='icon' href='data:,'>{html}")
    with served(tmp_path) as address:
        seen = visit(browser, f"{address}/", WINDOW, "en-US", deadline_s=1)
    assert seen.missing == missing
    assert seen.requests >= 1
    assert seen.bytes > len(html)
