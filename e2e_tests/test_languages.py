"""The pages in German: what is shown there is German, stays so while a page works, and goes back."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Any

import pytest

from build_scripts.paths import STATIC
from e2e_tests.pages import LIMIT_S, DemoPage

Demo = Callable[..., DemoPage]
GERMAN: dict[str, str] = json.loads((STATIC / "languages" / "de.json").read_text())
SHOWN = """() => {
  const foreign = "code, pre, textarea, script, style, canvas, noscript, [translate=no], [lang]:not(html)";
  const found = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement && node.nodeType === 3 ? node.parentElement : node;
    if (element.closest(foreign)) continue;
    const names = ["aria-label", "title", "placeholder", "alt", "data-hint", "label"];
    const texts = node.nodeType === 3 ? [node.data] : names.map((name) => node.getAttribute(name)).filter(Boolean);
    for (const text of texts) found.add(text.replace(/\\s+/g, " ").trim());
  }
  return [...found];
}"""
SAME = {"Hand", "Name", "Text", "Chat", "in"}  # words of both languages
# Notes when the page was hidden for its language, and when and in which language it was shown.
HIDDEN = """self.changes = [];
new MutationObserver(() => {
  const hidden = document.documentElement.classList.contains("translating");
  if (hidden !== (changes.at(-1)?.hidden ?? false)) {
    changes.push({ hidden, at: performance.now(), language: document.documentElement.lang });
  }
}).observe(document, { subtree: true, attributeFilter: ["class"] });"""
HELD_MS = 2_000
# Its pages without a model of a package that would have to be fetched first.
PAGES = (
    "/", "/model", "/chat", "/benchmark", "/browser", "/interop", "/face-detection", "/segmentation", "/sentences",
    "/text-classification", "/speech", "/files",
)  # fmt: skip


def english_of(texts: list[str]) -> set[str]:
    """Those texts and sentences that are English entries of the catalogue with another text in German."""
    entries = {text for text, translation in GERMAN.items() if text != translation and "{}" not in text}
    patterns = [
        re.compile("(.+?)".join(map(re.escape, text.split("{}"))))
        for text in GERMAN
        if "{}" in text and len(re.findall(r"[a-z]{3,}", text)) > 1
    ]
    sentences = {part for text in texts for part in (text, *re.split(r"(?<=[.!?…]) ", text))}
    return {text for text in sentences if text in entries or any(pattern.fullmatch(text) for pattern in patterns)}


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_german_for_a_german_browser(demo: Demo, path: str) -> None:
    page = demo(path=path, locale="de-DE")
    page.wait_for("language", lambda: page.page.evaluate("document.documentElement.lang") == "de")
    if path not in ("/", "/interop"):
        page.wait_for("engine", lambda: page.page.locator("#loading").is_hidden())
    page.page.wait_for_timeout(500)  # for what comes late; it is translated once it is there, on a busy machine later
    deadline = time.monotonic() + LIMIT_S / 4
    while (english := english_of(page.page.evaluate(SHOWN)) - SAME) and time.monotonic() < deadline:
        page.page.wait_for_timeout(50)
    assert english == set()
    assert set(GERMAN.values()) & set(page.page.evaluate(SHOWN))
    assert page.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_the_language_is_switched_in_the_menu_and_kept(demo: Demo) -> None:
    page = demo(path="/model")
    assert page.page.evaluate("document.documentElement.lang") == "en"
    page.wait_for("engine", lambda: page.page.locator("#loading").is_hidden())
    heading = page.page.locator("h1")
    page.page.get_by_role("button", name="Deutsch").click()
    page.wait_for("German", lambda: heading.text_content() == "Ihr Modell")
    page.page.locator("#address").fill("nonsense")
    page.page.locator("#address").press("Enter")
    page.wait_for("error", lambda: (page.error or {}).get("code") == "address")
    assert "is not a web address" in page.error["message"]  # what scripts are told stays as it is
    assert page.page.locator("#message-title").text_content() == "Das ist keine Adresse eines Modells"
    assert "ist keine Webadresse" in (page.page.locator("#message-text").text_content() or "")
    page.page.reload()
    page.wait_for("German again", lambda: heading.text_content() == "Ihr Modell")
    page.page.get_by_role("button", name="English").click()
    page.wait_for("English", lambda: heading.text_content() == "Your model")
    assert page.page.evaluate("document.documentElement.lang") == "en"
    assert set(page.page.evaluate(SHOWN)) & (set(GERMAN.values()) - set(GERMAN)) == set()


def test_plural_forms_and_numbers_are_german(demo: Demo) -> None:
    page: Any = demo(path="/", locale="de-DE", init_script=HIDDEN)
    page.wait_for("language", lambda: page.page.evaluate("document.documentElement.lang") == "de")
    page.wait_for("page", lambda: page.page.evaluate("changes.length") == 2)
    hidden, shown = page.page.evaluate("changes")
    assert hidden["hidden"]
    # nothing is moved before a reader's eyes, unless the catalogue lets itself be waited for
    assert shown["language"] == "de" or shown["at"] - hidden["at"] >= HELD_MS - 1
    page.page.evaluate(
        """() => {
          for (const text of ["1 node", "1,234 nodes", "40 nodes in 1 step, 2.30 MB of memory, compiled in 80 ms.",
               "Recognizes 200 types of files by their contents. Nothing leaves this device."]) {
            const made = document.createElement("p");
            made.className = "made";
            made.textContent = text;
            document.querySelector("main").append(made);
          }
        }"""
    )
    made = page.page.locator(".made")
    page.wait_for("change", lambda: made.first.text_content() == "1 Knoten")
    assert made.all_text_contents() == [
        "1 Knoten", "1.234 Knoten", "40 Knoten in 1 Schritt, 2,30 MB Speicher, kompiliert in 80 ms.",
        "Erkennt 200 Dateitypen am Inhalt. Nichts verlässt dieses Gerät.",
    ]  # fmt: skip
