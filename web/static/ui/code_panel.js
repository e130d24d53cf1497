// The Python behind a page, to be changed and run: editor, buttons, output. It comes when it is opened, as one file with
// the editor's packages.

import { CodeEditor } from "./code_editor.js";
import { linked, unlinked } from "./code_link.js";
import { copyButton } from "./copy_button.js";
import { byId, el, milliseconds, say } from "./dom.js";

const LONG_MS = 5_000; // after which it is said how to end a run
const OUTPUT_MS = 60; // between two times that output is shown: to lay it out takes long, and lines come by the thousand
const FROM_LINK = "This code came from a link. Read it before you press Run: it can use the network and everything this page shows, including your camera’s picture. It cannot access what this site stores in your browser.";

export class CodePanel {
  #lines; // as the page came with them
  #engine;
  #still;
  #editor;
  #running = false;
  #foreign = false; // whether the code came from a link and has not been run
  #linked = false; // whether it came from a link, and was perhaps changed since
  #timer = 0;
  #printed = ""; // and not shown yet
  #showing = 0;
  #note = el("p", { class: "note", role: "status", hidden: true });
  #run = el("button", { type: "button", class: "primary", text: "Run", on: { click: () => this.#start() } });
  #stop = el("button", { type: "button", text: "Stop", hidden: true, on: { click: () => this.#end() } });
  #status = el("p", { class: "quiet", role: "status" });
  #output = el("pre", { class: "code-output", tabindex: "0", role: "region", "aria-label": "Output", hidden: true });

  /** Takes the place of the lines in an element. `engine` is the page's EngineClient; `still()` promises what is at hand. */
  constructor(body, { engine, still }) {
    this.#lines = body.textContent.trimEnd();
    this.#engine = engine;
    this.#still = still;
    const host = el("div", { class: "code-editor" });
    const button = (text, click) => el("button", { type: "button", text, on: { click } });
    body.replaceChildren(
      this.#note, host,
      el("div", { class: "row" }, this.#run, this.#stop, button("Reset", () => this.#reset()), button("Copy link", () => this.#link())),
      this.#status, this.#output,
    );
    const script = byId("script");
    script?.after(el("div", { class: "row" }, copyButton("", () => script.textContent, script)));
    this.#editor = new CodeEditor(host, this.#lines, () => (this.#foreign ? this.#hold() : this.#start()));
  }

  /** Shows the code in the page's address; it never runs by itself. */
  async readAddress() {
    try {
      const code = await unlinked(location.hash);
      if (code !== this.#editor.text) this.#editor.text = code;
      this.#foreign = this.#linked = true;
      this.#tell(FROM_LINK);
      this.#clear();
    } catch ({ message }) {
      this.#tell(message, true);
    }
  }

  /** Code from a shared link runs only when its button is pressed. */
  #hold() {
    say(this.#status, "This code came from a link: read it, then press the Run button.");
    this.#run.focus();
  }

  async #start() {
    if (this.#running) return;
    this.#foreign = false;
    this.#tell("");
    this.#clear();
    const code = this.#editor.text;
    this.#busy(true);
    this.#status.classList.remove("bad");
    say(this.#status, "Running …");
    let given;
    try {
      given = await this.#still();
    } catch {
      return this.#done("There is nothing to run it on yet. Choose something, then run again.");
    }
    if (this.#engine.runCode(code, given, this.#linked)) return;
    given.close?.();
    this.#done("The engine is not running yet. Wait until it is, then run again.");
  }

  #end() {
    this.#run.focus();
    this.#engine.replace({ code: "stopped", message: "Your code was stopped, and the engine with it." });
  }

  /** The engine is gone. */
  lost() {
    if (this.#running) this.#done("Stopped before its end. The engine is started again; then the code can run again.");
  }

  printed({ text }) {
    this.#printed += text;
    this.#showing ||= setTimeout(() => this.#showPrinted(), OUTPUT_MS);
  }

  #showPrinted() {
    clearTimeout(this.#showing);
    this.#showing = 0;
    if (!this.#printed) return;
    this.#output.hidden = false;
    const { scrollHeight, scrollTop, clientHeight } = this.#output;
    this.#output.append(this.#printed);
    this.#printed = "";
    if (scrollHeight - scrollTop - clientHeight < 30) this.#output.scrollTop = this.#output.scrollHeight; // unless it was scrolled
  }

  ran({ ms, problem }) {
    this.#showPrinted();
    if (!problem) return this.#done(`Ran in ${milliseconds(ms)}.`);
    const { text, line } = problem;
    const last = text.trimEnd().split("\n").at(-1);
    this.#output.hidden = false;
    this.#output.append(el("span", { class: "mistake", text }));
    this.#editor.mark(line);
    this.#done(`${line ? `Line ${line}: ` : ""}${last}`, true);
    if (line) this.#status.append(" ", el("button", { type: "button", class: "link", text: `Go to line ${line}`, on: { click: () => this.#editor.visit(line) } }));
  }

  #done(text, severe = false) {
    this.#showPrinted();
    this.#busy(false);
    this.#status.classList.toggle("bad", severe);
    this.#status.replaceChildren(text);
  }

  #busy(running) {
    this.#running = running;
    this.#run.setAttribute("aria-disabled", String(running));
    this.#stop.hidden = !running;
    clearTimeout(this.#timer);
    if (running) this.#timer = setTimeout(() => say(this.#status, "Still running. The page waits meanwhile; Stop ends it."), LONG_MS);
  }

  #clear() {
    this.#editor.mark(null);
    this.#printed = "";
    this.#output.replaceChildren();
    this.#output.hidden = true;
    this.#status.replaceChildren();
  }

  #reset() {
    if (this.#editor.text !== this.#lines) this.#editor.text = this.#lines;
    history.replaceState(null, "", location.pathname + location.search);
    this.#foreign = this.#linked = false;
    this.#tell("");
    if (this.#running) return;
    this.#clear();
    say(this.#status, "The original code is back. Undo brings yours back.");
  }

  async #link() {
    try {
      history.replaceState(null, "", location.pathname + location.search + (await linked(this.#editor.text)));
    } catch ({ message }) {
      return this.#tell(message, true);
    }
    try {
      await navigator.clipboard.writeText(location.href);
      this.#tell("The link is copied. It contains this code.");
    } catch {
      this.#tell("The address of this page now contains this code: copy it from there.");
    }
  }

  #tell(text, severe = false) {
    this.#note.hidden = !text;
    this.#note.classList.toggle("severe", severe);
    say(this.#note, text);
  }
}
