// A button that copies a text.

import { el } from "./dom.js";

const TOLD_MS = 1_500;

/** Copies what `text()` gives; over plain http, where there is no clipboard, what `shown` shows is selected instead. */
export function copyButton(className, text, shown) {
  const button = el("button", { type: "button", class: className, text: "Copy", on: { click: copy } });
  async function copy() {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(shown);
      button.textContent = "Selected";
    }
    setTimeout(() => (button.textContent = "Copy"), TOLD_MS);
  }
  return button;
}
