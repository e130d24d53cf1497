// Texts are what is looked at: one, or a sentence and those that it is compared with, a line each. They are read while one types.

import * as address from "../ui/address.js";
import { byId } from "../ui/dom.js";
import { watchFiles } from "../media/drops.js";

const MOST_LINES = 64;
const MOST_LETTERS = 600; // of a text that stands in the address
const fields = { sentence: byId("sentence"), ...(byId("others") ? { others: byId("others") } : {}) };
const alone = !fields.others; // nothing is compared
const usual = Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, field.defaultValue])); // as the page came with them

/** As Stage (stage.js), for texts. */
export class Source {
  #engine;
  #troubles;
  #changed;
  current = { kind: "none" }; // {kind: "sample" | "text", given, about, paper}

  constructor({ engine, troubles, changed }) {
    Object.assign(this, { mirrored: false });
    [this.#engine, this.#troubles, this.#changed] = [engine, troubles, changed];
    for (const field of Object.values(fields)) field.addEventListener("input", () => this.#typed());
    watchFiles(byId("stage"), (files) => this.showFiles(files), (error) => troubles.show(error));
  }

  /** Takes over what stands in the boxes. */
  #typed() {
    for (const [name, { value }] of Object.entries(fields)) address.set(name, value === usual[name] || value.length > MOST_LETTERS ? null : value);
    this.#read("text");
    if (!this.#complete) this.#changed();
    this.detect();
  }

  /** Whether there is something to look at, or to compare. */
  get #complete() {
    const { text, texts } = this.current.given ?? {};
    return alone ? Boolean(text) : texts?.length > 1;
  }

  #read(kind) {
    const text = fields.sentence.value.trim();
    if (alone) {
      this.current = { kind, given: { text }, about: { texts: 1 }, paper: { text } };
      return;
    }
    const others = fields.others.value.split("\n").map((line) => line.trim()).filter(Boolean).slice(0, MOST_LINES);
    const texts = [text, ...others];
    this.current = { kind, given: { texts }, about: { texts: texts.length }, paper: { texts } };
  }

  /** Has the texts compared. */
  async detect() {
    if (this.#complete) this.#engine.detect(this.current.given, this.current, false);
  }

  /** Shows the page's own sentences; at the page's start those of its address. */
  async showSample() {
    const first = this.current.kind === "none";
    for (const [name, field] of Object.entries(fields)) {
      field.value = (first && address.get(name)) || usual[name];
      if (!first) address.set(name, null);
    }
    this.#read(Object.entries(fields).every(([name, { value }]) => value === usual[name]) ? "sample" : "text");
    this.#changed();
    await this.detect();
  }

  /** Compares with the lines of a text file. */
  async showFiles([file]) {
    const lines = (await file.slice(0, 1e5).text()).split(/\r?\n/).slice(0, MOST_LINES).join("\n");
    (fields.others ?? fields.sentence).value = lines;
    this.#troubles.forget();
    this.#typed();
  }

  renew() {}

  /** The texts, for the engine. */
  async still() {
    return this.current.given;
  }
}
