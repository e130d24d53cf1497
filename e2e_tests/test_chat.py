"""The page "Chat": a model that the test writes, answers token by token, stop, and a model that is none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.language.test_language import MODEL_OF_BYTES as MODEL

import webinfer
from e2e_tests.beside import in_cpython
from e2e_tests.pages import DemoPage

Demo = Callable[..., DemoPage]
# In the page: a whole answer of the tiny model can be there before a click of Playwright is.
STOP_AT_THE_FIRST_WORD = """() => {
  const stop = document.getElementById("stop");
  const tokens = new MutationObserver(() => {
    if (!document.querySelector("#chat li:last-child.assistant .said")?.textContent) return;
    tokens.disconnect();
    stop.click();
  });
  tokens.observe(document.getElementById("chat"), { childList: true, subtree: true, characterData: true });
  document.getElementById("send").click();
}"""


def _open(page: DemoPage, name: str, data: bytes) -> None:
    page.wait_for("engine", lambda: page.page.locator("#pick").is_enabled())
    page.page.set_input_files("#file", {"name": name, "mimeType": "application/octet-stream", "buffer": data})


def _said(page: DemoPage) -> dict[str, Any]:
    return page._dataset("webinferChat") or {}


def test_a_chat_is_answered_word_by_word_as_in_cpython(demo: Demo) -> None:
    page = demo("", path="/chat")
    _open(page, "tiny.gguf", MODEL)
    model = page.wait_for("model", lambda: _said(page).get("model"))
    assert (model["name"], model["architecture"], model["context"]) == ("tiny.gguf", "llama", 96)
    page.page.fill("#max-tokens", "20")
    page.page.fill("#message-to-send", "hello ab")
    page.page.keyboard.press("Enter")
    told = page.wait_for("answer", lambda: _said(page).get("messages", [])[1:] and not _said(page).get("answering"))
    assert told
    answer = _said(page)["messages"][1]["content"]
    assert page.page.locator("#chat .assistant .said").text_content()
    chat = [{"role": "user", "content": "hello ab"}]

    async def native() -> str:
        async with await webinfer.pipeline("text-generation", MODEL, overflow="slide") as generator:
            text: str = await generator.run(chat, max_tokens=20)
            return text

    assert answer == in_cpython(native())
    assert "tiny.gguf" in page.text("#python")
    page.page.set_viewport_size({"width": 360, "height": 800})
    assert page.page.evaluate("document.documentElement.scrollWidth") == 360

    page.page.fill("#max-tokens", "2000")
    page.page.fill("#temperature", "0")
    page.page.fill("#message-to-send", "ab " * 9)
    page.page.evaluate(STOP_AT_THE_FIRST_WORD)
    page.wait_for("end", lambda: not _said(page).get("answering") and page.page.locator("#send").is_enabled())
    assert "stopped" in page.text("#status")
    page.page.click("#new-chat")
    assert not page.page.locator("#chat li").count()

    page.page.fill("#message-to-send", "ab hello " * 80)
    page.page.click("#send")
    page.wait_for_error("limit", "reads at most 48")
    page.wait_for("end", lambda: page.page.locator("#send").is_enabled())
    assert page.page.input_value("#message-to-send").startswith("ab hello")
    assert not page.page.locator("#chat li").count()

    page.page.select_option("#backend", "webgpu")
    _open(page, "tiny.gguf", MODEL)
    page.wait_for("model", lambda: (_said(page).get("model") or {}).get("backend") == "webgpu")
    page.page.fill("#max-tokens", "20")
    page.page.fill("#message-to-send", "hello ab")
    page.page.click("#send")
    page.wait_for("answer", lambda: _said(page).get("messages", [])[1:] and not _said(page).get("answering"))
    assert _said(page)["messages"][1]["content"] == answer


def test_a_question_is_answered_although_the_engine_ended(demo: Demo) -> None:
    page = demo("", path="/chat")
    _open(page, "tiny.gguf", MODEL)
    page.wait_for("model", lambda: _said(page).get("model"))
    page.page.fill("#message-to-send", "hello ab")
    page.end_worker("ask", lambda: page.page.click("#send"))
    page.wait_for("the end of the engine", lambda: page.page.locator("#pick").is_disabled())
    page.page.fill("#max-tokens", "5")
    page.wait_for("answer", lambda: len(_said(page).get("messages", [])) == 2 and not _said(page).get("answering"))
    assert not page.error
    assert page.page.locator("#chat li").count() == 2
    page.page.fill("#message-to-send", "once more")
    page.end_worker("ask", lambda: page.page.click("#send"))  # for the second time: it is not started again
    page.wait_for("word of it", lambda: "No answer: see" in page.text("#status"))
    assert page.page.input_value("#message-to-send") == "once more"
    for name in ("send", "open-known", "pick"):
        assert page.page.locator(f"#{name}").is_disabled(), name
    page.complaints.clear()


# Of the page, not of what is seen of it: the page may be scrolled meanwhile.
PLACE = """() => {
  const { x, y, width, height } = document.getElementById("new-chat").getBoundingClientRect();
  return [x + scrollX, y + scrollY, width, height];
}"""


def test_a_chat_goes_on_after_its_page_was_loaded_again_in_the_middle_of_an_answer(demo: Demo) -> None:
    page = demo("", path="/chat")
    _open(page, "tiny.gguf", MODEL)
    page.wait_for("model", lambda: _said(page).get("model"))
    page.page.fill("#max-tokens", "2000")
    page.page.fill("#instructions", "Be brief.")
    page.page.fill("#message-to-send", "hello ab")
    place = page.page.evaluate(PLACE)
    page.page.click("#send")
    page.wait_for("tokens", lambda: page.page.locator("#chat .assistant .said").text_content())
    assert page.page.evaluate(PLACE) == place  # nothing moves away from who wants to press it
    page.page.fill("#message-to-send", "and then")
    page.page.reload()
    page.wait_for("engine", lambda: page.page.locator("#pick").is_enabled())
    assert page.page.locator("#chat .user .said").text_content() == "hello ab"
    assert page.page.locator("#chat .assistant .said").text_content()
    assert [page.page.input_value(name) for name in ("#message-to-send", "#instructions")] == ["and then", "Be brief."]
    assert page.text("#status") == "Open tiny.gguf again to go on with this chat."
    _open(page, "tiny.gguf", MODEL)
    page.wait_for("model", lambda: _said(page).get("model"))
    page.page.fill("#max-tokens", "3")
    page.page.click("#send")
    page.wait_for("answer", lambda: _said(page).get("messages", [])[3:] and not _said(page).get("answering"))
    assert [said["role"] for said in _said(page)["messages"]] == ["user", "assistant"] * 2


MARKDOWN = """**Two** steps:

1. `pip install x`
2. <img src=x onerror="document.title='hacked'">

```python
print("<b>")
```

| a | b |
|---|---|
| 1 | [here](https://example.com) and [there](javascript:alert(1)) |
"""


def test_answers_show_their_markdown_and_never_become_part_of_the_page(demo: Demo) -> None:
    said = [{"role": "user", "content": "**how?**"}, {"role": "assistant", "content": MARKDOWN}]
    kept = json.dumps({"messages": said, "fields": {}, "model": None})
    page = demo("", path="/chat", init_script=f"sessionStorage.setItem('webinfer chat', {json.dumps(kept)})")
    answer = page.page.locator("#chat .assistant .said")
    page.wait_for("chat", lambda: answer.count())
    assert answer.locator("strong").text_content() == "Two"
    assert answer.locator("ol > li").count() == 2
    assert answer.locator("pre code").text_content() == 'print("<b>")'
    assert [link.get_attribute("href") for link in answer.locator("a").all()] == ["https://example.com"]
    assert answer.locator("img").count() == 0
    assert "<img src=x" in str(answer.text_content())
    assert page.page.locator("#chat .user .said").text_content() == "**how?**"
    assert page.page.title() != "hacked"


def test_chats_are_kept_apart_answers_written_again_and_questions_changed(demo: Demo) -> None:
    page = demo("", path="/chat")
    _open(page, "tiny.gguf", MODEL)
    page.wait_for("model", lambda: _said(page).get("model"))
    page.page.fill("#max-tokens", "4")
    page.page.fill("#message-to-send", "hello")
    page.page.keyboard.press("Enter")
    page.wait_for("answer", lambda: _said(page).get("messages", [])[1:] and not _said(page).get("answering"))
    first = _said(page)["messages"]
    page.page.get_by_role("button", name="Regenerate").click()
    page.wait_for("a second answer", lambda: _said(page).get("messages") == first and not _said(page).get("answering"))
    with page.page.expect_download() as download:
        page.page.get_by_role("button", name="Save chat").click()
    assert download.value.suggested_filename == "chat.md"
    assert "hello" in Path(download.value.path()).read_text()
    page.page.get_by_role("button", name="New chat").click()
    page.page.fill("#stop-texts", first[1]["content"][:2])  # what the answer begins with
    page.page.fill("#message-to-send", "hello")
    page.page.keyboard.press("Enter")
    page.wait_for("an end", lambda: len(_said(page).get("messages", [])) == 2 and not _said(page).get("answering"))
    assert _said(page)["messages"][1]["content"] == ""
    assert "stop=[" in page.text("#python")
    page.page.reload()
    page.wait_for("engine", lambda: page.page.locator("#pick").is_enabled())
    chats = page.page.locator("#chats button")
    assert chats.all_text_contents() == ["hello", "hello"]  # both are kept as long as the tab
    chats.first.click()
    assert _said(page)["messages"] == first
    page.page.get_by_role("button", name="Delete chat").click()
    assert _said(page)["messages"][1]["content"] == ""
    _open(page, "tiny.gguf", MODEL)
    page.wait_for("model", lambda: _said(page).get("model"))
    page.page.get_by_role("button", name="Edit").click()
    assert page.page.input_value("#message-to-send") == "hello"
    assert page.page.locator("#chat li").count() == 0


def test_what_is_no_language_model_is_said(demo: Demo) -> None:
    page = demo("", path="/chat")
    _open(page, "broken.gguf", MODEL[:300])
    page.wait_for_error("model-format", "cut off")
    assert page.page.locator("#send").is_disabled()
    _open(page, "tiny.gguf", MODEL)
    assert page.wait_for("model", lambda: _said(page).get("model"))
