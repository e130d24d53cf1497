// Several pictures in one go: a strip of them below the stage, each with how many things were found in it.

import { el, say } from "../../ui/dom.js";
import { asJson } from "./results.js";

export class FileStrip {
  #box;
  #show;
  #entries = []; // {file, button, count, found: null until it was looked at}
  #at = -1; // the one that is shown
  #waiting = []; // those that were not looked at yet

  /** Fills the list `box`; `show(file)` has a picture looked at and promises whether it could be read. */
  constructor(box, show) {
    this.#box = box;
    this.#show = show;
  }

  /** Looks at each of these files in turn, instead of those before; none takes the strip away. */
  begin(files) {
    for (const { picture } of this.#entries) URL.revokeObjectURL(picture.src);
    this.#entries = files.map((file, at) => this.#entry(file, at));
    this.#box.replaceChildren(...this.#entries.map(({ button }) => el("li", {}, button)));
    this.#box.hidden = !this.#entries.length;
    this.#waiting = [...this.#entries.keys()];
    this.#next();
  }

  #entry(file, at) {
    const count = el("span", { text: "…" });
    const picture = el("img", { alt: "", src: URL.createObjectURL(file), loading: "lazy" });
    const button = el("button", { type: "button", title: file.name, on: { click: () => this.#open(at) } }, picture, el("span", { class: "unseen", text: `${file.name}: ` }), count);
    return { file, button, count, picture, found: null };
  }

  async #open(at) {
    this.#at = at;
    for (const [i, { button }] of this.#entries.entries()) button.setAttribute("aria-pressed", String(i === at));
    const entries = this.#entries;
    const read = await this.#show(entries[at].file);
    if (read || entries !== this.#entries) return;
    say(entries[at].count, "cannot be read");
    entries[at].found ??= [];
    this.#next();
  }

  #next() {
    while (this.#waiting.length && this.#entries[this.#waiting[0]].found) this.#waiting.shift();
    if (this.#waiting.length) this.#open(this.#waiting.shift());
  }

  /** Takes over what was found in the picture at hand. */
  took(found) {
    const entry = this.#entries[this.#at];
    if (!entry) return;
    const first = entry.found === null;
    entry.found = asJson(found);
    say(entry.count, String(found.length));
    if (first) this.#next();
  }

  /** What was found in all files, each thing with the name of its file; null without a strip. */
  get rows() {
    if (!this.#entries.length) return null;
    return this.#entries.flatMap(({ file, found }) => (found ?? []).map((one) => ({ file: file.name, ...one })));
  }
}
