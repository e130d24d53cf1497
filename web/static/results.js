// What the engine's task found: drawn over the picture and listed beside it. How one kind of result looks is the business
// of results/<kind>.js; which kind it is, and what things are called, the engine says when it is ready.

import { showResults } from "./panels.js";

const NOTHING = { picture: null, found: [], mirrored: false };

/** The results on the page. */
export class Results {
  #manifest;
  #canvas;
  #schema = null; // webinfer/tasks/base.py, ResultSchema
  #drawer = null; // the module of its kind
  #shown = null; // {picture, found, mirrored}, or null for nothing yet
  #refuse;
  #attempts = 0;

  /** `refuse(error)` hears that the code which draws could not be had; `renew` tries again. */
  constructor(manifest, canvas, refuse) {
    this.#manifest = manifest;
    this.#canvas = canvas;
    this.#refuse = refuse;
  }

  /** The field of the page's machine-readable result that holds what was found. */
  get name() {
    return this.#schema.name;
  }

  /** Takes over what the engine's task finds from now on; ends when it can be drawn. */
  async expect(schema) {
    this.#schema = schema;
    const name = `static/results/${schema.kind}.js`;
    const attempt = this.#attempts; // browsers remember a module that failed: another fragment is another module
    try {
      this.#drawer = await import(`${this.#manifest[name].url}${attempt ? `#${attempt}` : ""}`);
    } catch ({ message }) {
      this.#attempts += 1;
      return this.#refuse({ code: "download", message: `The results cannot be drawn: ${message}.` });
    }
    if (this.#shown) this.show(this.#shown);
  }

  /** Asks again for the code that draws, if it did not come. */
  renew() {
    if (this.#schema && !this.#drawer) this.expect(this.#schema);
  }

  /** Shows what was found in a picture of {width, height}; `mirrored`: the picture is shown as in a mirror. */
  show({ picture, found, mirrored }) {
    this.#shown = { picture, found, mirrored };
    this.redraw();
    if (!this.#drawer) return;
    const rows = found.map((one, index) => ({ name: `${this.#schema.label} ${index + 1}`, ...this.#drawer.describe(one) }));
    showResults(`${this.#schema.title}: ${found.length}`, rows);
  }

  /** Shows nothing: another picture is on its way. */
  clear() {
    this.#shown = null;
    this.redraw();
    if (this.#schema) showResults(`${this.#schema.title}: –`, []);
  }

  /** Draws once more, for a canvas of another size. */
  redraw() {
    const { picture, found, mirrored } = this.#shown ?? NOTHING;
    this.#drawer?.draw(this.#canvas, picture, found, mirrored);
  }
}
