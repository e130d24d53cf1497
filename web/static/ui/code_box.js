// Where the Python behind a page stands: its lines, until they are opened; then code_panel.js with the editor comes.

import { holdsCode } from "./code_link.js";
import { byId } from "./dom.js";

export class CodeBox {
  #url;
  #parts;
  #refuse;
  #panel = null; // CodePanel, once it has come
  #attempts = 0;

  /** `parts` are what a CodePanel works with; `refuse(error)` is called if the editor could not be loaded. */
  constructor(manifest, parts, refuse) {
    this.#url = manifest["static/code_panel.js"].url;
    this.#parts = parts;
    this.#refuse = refuse;
    if (!byId("code-box")) return; // of a task whose code is not shown
    byId("code-box").addEventListener("toggle", () => byId("code-box").open && !this.#panel && this.#open());
    addEventListener("hashchange", () => this.#look());
    this.#look();
  }

  /** Opens itself for code in the address, which is shown and never run. */
  #look() {
    if (!holdsCode(location.hash)) return;
    byId("code-box").open = true;
    this.#panel?.readAddress();
  }

  async #open() {
    const attempt = this.#attempts++; // browsers remember a module that failed: another fragment is another module
    try {
      const { CodePanel } = await import(`${this.#url}${attempt ? `#${attempt}` : ""}`);
      this.#panel ??= new CodePanel(byId("code-body"), this.#parts);
    } catch ({ message }) {
      byId("code-box").open = false; // opening it tries again
      return this.#refuse({ code: "download", message: `The editor could not be loaded: ${message}.` });
    }
    if (!holdsCode(location.hash)) return;
    byId("code-box").scrollIntoView();
    this.#panel.readAddress();
  }

  /** Passes a message of the engine about the running code on: `printed` or `ran`. */
  hear(message) {
    this.#panel?.[message.type](message);
  }

  /** The engine is gone, and what it ran with it. */
  lost() {
    this.#panel?.lost();
  }
}
