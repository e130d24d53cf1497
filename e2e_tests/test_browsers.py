"""Firefox and WebKit find the face, isolated and not, and say what they cannot do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build_scripts.paths import MODELS
from build_scripts.places.browsers import Firefox, Tab, WebKit
from e2e_tests.litert_judge import litert_face
from e2e_tests.pages import overlap

PAGE = "/face-detection?backend="
SAYS = "[...document.querySelectorAll('#capabilities li')].map((row) => row.textContent)"
CARDS = "[...document.querySelectorAll('.demo h3')].filter((title) => title.getBoundingClientRect().height).length"


@pytest.fixture(scope="module")
def face(photo: Path) -> dict[str, float]:
    """The box of the sample's face."""
    return litert_face(MODELS / "face_detection_short_range.tflite", photo)[0]


def check(result: dict[str, Any], backend: str, face: dict[str, float]) -> None:
    assert result["backend"] == backend, result["reason"]
    assert len(result["faces"]) == 1, result
    assert overlap(result["faces"][0]["box"], face) >= 0.98


def said(tab: Tab, name: str) -> str:
    """What the page says of a capability."""
    lines: list[str] = tab.wait_for("capabilities", lambda: tab.evaluate(SAYS))
    return next(line for line in lines if line.startswith(name))


def opens_home(tab: Tab, address: str) -> None:
    tab.open(f"{address}/")
    tab.wait_for("cards", lambda: tab.evaluate(CARDS) > 5)


@pytest.mark.parametrize("backend", ["wasm", "webgpu"])
def test_firefox_finds_the_face(firefox: Firefox, address: str, face: dict[str, float], backend: str) -> None:
    with firefox.tab() as tab:
        tab.open(address + PAGE + backend)
        check(tab.result(), backend, face)
        if backend == "wasm":
            opens_home(tab, address)


def test_firefox_without_isolation_finds_the_face(firefox: Firefox, bare_address: str, face: dict[str, float]) -> None:
    with firefox.tab() as tab:
        tab.open(f"{bare_address}{PAGE}wasm")
        check(tab.result(), "wasm", face)
        assert "not cross-origin isolated" in said(tab, "Threads")


def test_firefox_that_scrambles_pictures_says_so_and_what_helps(private_firefox: Firefox, address: str) -> None:
    with private_firefox.tab() as tab:
        tab.open(f"{address}{PAGE}wasm")
        error = tab.error()
        assert error["code"] == "input"
        assert "scrambles the pixels" in error["message"]
        assert "Allow this site" in error["message"]


def test_webkit_that_shares_no_memory_finds_the_face(webkit: WebKit, address: str, face: dict[str, float]) -> None:
    with webkit.tab() as tab:
        tab.open(f"{address}{PAGE}wasm")
        check(tab.result(), "wasm", face)
        if tab.evaluate("crossOriginIsolated && !self.SharedArrayBuffer"):
            assert "this browser shares no memory between threads" in said(tab, "Threads")
        opens_home(tab, address)


def test_webkit_without_isolation_finds_the_face(webkit: WebKit, bare_address: str, face: dict[str, float]) -> None:
    with webkit.tab() as tab:
        tab.open(f"{bare_address}{PAGE}wasm")
        check(tab.result(), "wasm", face)
