// Texts are what is looked at: a sentence, and those that it is compared with, a line each. They are read while one types.

import * as address from "../ui/address.js";
import { byId } from "../ui/dom.js";
import { watchFiles } from "../media/drops.js";

const MOST_LINES = 64;
const MOST_LETTERS = 600; // of a text that stands in the address
const fields = { sentence: byId("sentence"), others: byId("others") };
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
    watchFiles(byId("stage"), ([file]) => this.showFile(file), (error) => troubles.show(error));
  }

  /** Takes over what stands in the boxes. */
  #typed() {
    for (const [name, { value }] of Object.entries(fields)) address.set(name, value === usual[name] || value.length > MOST_LETTERS ? null : value);
    this.#read("text");
    if (this.current.given.texts.length < 2) this.#changed(); // nothing to compare
    this.detect();
  }

  #read(kind) {
    const others = fields.others.value.split("\n").map((line) => line.trim()).filter(Boolean).slice(0, MOST_LINES);
    const texts = [fields.sentence.value.trim(), ...others];
    this.current = { kind, given: { texts }, about: { texts: texts.length }, paper: { texts } };
  }

  /** Has the texts compared. */
  async detect() {
    const { given } = this.current;
    if (given?.texts.length > 1) this.#engine.detect(given, this.current, false);
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
  async showFile(file) {
    fields.others.value = (await file.slice(0, 1e5).text()).split(/\r?\n/).slice(0, MOST_LINES).join("\n");
    this.#troubles.forget();
    this.#typed();
  }

  renew() {}

  /** The texts, for the engine. */
  async still() {
    return this.current.given;
  }
}
