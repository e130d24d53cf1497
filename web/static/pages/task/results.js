// What the engine's task found: drawn over the picture, listed in a table, handed out as files. How one kind of result
// looks is the business of results/<kind>.js; which kind it is, and what things are called, the engine says when it is ready.

import { byId, download, say } from "../../ui/dom.js";
import { asCsv } from "./results_csv.js";
import { fillTable } from "./results_table.js";
import { coverDrawing } from "../../ui/drawing.js";
import { drawWhole, viewAt, viewOn } from "../../ui/overlay.js";
import { MAX_SIDE } from "../../media/picture.js";

const NOTHING = { picture: null, found: [], mirrored: false, medium: null, beside: null };
const PAPER = { width: 1200, height: 480 }; // pixels of a drawing of a sound, a text or a file
const darkness = matchMedia("(prefers-color-scheme: dark)");
const TABLE_MS = 250; // between two tables of a video

/**
 * Things as JSON can hold them: typed arrays as lists of numbers with two decimals, those longer than `most` as their
 * length; painted pictures are left out.
 */
export function asJson(found, most = Infinity) {
  const brief = (values) => (values.length > most ? { length: values.length } : Array.from(values, (value) => Math.round(value * 100) / 100));
  return JSON.parse(JSON.stringify(found, (_, value) => {
    if (value instanceof ImageBitmap) return undefined;
    return ArrayBuffer.isView(value) ? brief(value) : value;
  }));
}

/** The results on the page. */
export class Results {
  #manifest;
  #canvas;
  #schema = null; // webinfer/tasks/base.py, ResultSchema
  #drawer = null; // the module of its kind
  #shown = null; // {picture, found, mirrored, medium, live, beside, about}, or null for nothing yet
  #paper = null; // of a source that is not a picture and was not shown yet: what its drawer needs
  #refuse;
  #changed;
  #paint;
  #attempts = 0;
  #listed = 0; // when the table was filled last

  /**
   * `refuse(error)` is called if the code that draws cannot be loaded; `changed(name, value)` of what was chosen for
   * drawing; `paint(look)` how frames of videos are to be painted by the engine, null for not at all; `rows()` gives what
   * was found in several files, or null.
   */
  constructor(manifest, canvas, { refuse, changed, paint, rows }) {
    this.#manifest = manifest;
    this.#canvas = canvas;
    this.#refuse = refuse;
    this.#changed = changed;
    this.#paint = paint;
    darkness.addEventListener("change", () => this.redraw());
    byId("download-json").addEventListener("click", () => this.#offer(this.#json(), "json"));
    byId("download-csv").addEventListener("click", () => this.#offer(new Blob([asCsv(rows() ?? this.#shown.found)], { type: "text/csv" }), "csv"));
    byId("download-picture").addEventListener("click", async () => this.#offer(await this.picture(), "png"));
  }

  /** The field of the page's machine-readable result that holds what was found. */
  get name() {
    return this.#schema.name;
  }

  /** Takes over what the engine's task finds from now on; ends when it can be drawn. */
  async expect(schema) {
    const other = this.#schema?.kind !== schema.kind;
    if (other) this.#drawer = null;
    if (this.#schema?.name !== schema.name) this.#shown = null; // it was found by another task
    this.#schema = schema;
    const name = `static/results/${schema.kind}.js`;
    const attempt = this.#attempts; // browsers remember a module that failed: another fragment is another module
    try {
      this.#drawer = await import(`${this.#manifest[name].url}${attempt ? `#${attempt}` : ""}`);
    } catch ({ message }) {
      this.#attempts += 1;
      return this.#refuse({ code: "download", message: `The results cannot be drawn: ${message}.` });
    }
    if (other) this.#showControls();
    this.#paint(this.#drawer.look?.() ?? null);
    if (this.#shown) this.show(this.#shown);
    else this.redraw(); // a text or recording that came before the code that draws it
  }

  #showControls() {
    const box = byId("result-controls");
    box.replaceChildren();
    this.#drawer.controls?.(box, new URLSearchParams(location.search), (name, value) => {
      this.redraw();
      this.#paint(this.#drawer.look());
      this.#changed(name, value);
    }, this.#schema);
    box.hidden = !box.childElementCount;
  }

  /** Asks again for the code that draws, if it did not come. */
  renew() {
    if (this.#schema && !this.#drawer) this.expect(this.#schema);
  }

  /**
   * Shows what was found in a picture of {width, height}, which the element `medium` shows, `mirrored` as in a mirror;
   * `live`: as one of many. For other sources than pictures, `beside` has what the drawing needs, and `about` what it was in a word.
   */
  show(shown) {
    if (shown !== this.#shown) this.#letGo();
    this.#shown = shown;
    this.redraw();
    const now = performance.now();
    if (!this.#drawer || (shown.live && now - this.#listed < TABLE_MS)) return;
    this.#listed = now;
    this.#tell(`${this.#schema.title}: ${shown.found.length}`, shown.found);
  }

  /** Frees pictures that the engine painted. */
  #letGo() {
    this.#shown?.found.forEach(({ painted }) => painted?.close());
  }

  /** Shows nothing: another picture is on its way. For other sources than pictures, the `paper` shows the source without results. */
  clear(paper = null) {
    this.#letGo();
    this.#shown = null;
    this.#paper = paper;
    this.#listed = 0;
    this.redraw();
    if (this.#schema) this.#tell(`${this.#schema.title}: –`, []);
  }

  #tell(summary, found) {
    say(byId("found"), summary);
    fillTable(byId("things"), found, this.#schema, this.#drawer?.describe, this.#shown?.beside);
    byId("downloads").hidden = !this.#shown;
  }

  /** Draws once more, for a canvas of another size. */
  redraw() {
    const { picture, found, mirrored, medium, beside } = this.#shown ?? { ...NOTHING, beside: this.#paper };
    const view = viewOn(this.#canvas, picture ?? this.#sheet(), { mirrored, medium });
    if (picture?.width ? found.length : beside) this.#drawer?.draw(view, found, this.#schema, beside);
  }

  /** The size of a drawing of another source than a picture: the canvas's own. */
  #sheet() {
    return { width: this.#canvas.clientWidth || 1, height: this.#canvas.clientHeight || 1 };
  }

  #json() {
    const { picture, found, about, beside } = this.#shown;
    const given = picture ? { image: picture } : { about, beside: asJson(beside) };
    const text = JSON.stringify({ ...given, [this.#schema.name]: asJson(found) }, null, 1);
    return new Blob([text], { type: "application/json" });
  }

  /** The picture with what is drawn over it, in pixels of its own or at most `side` wide and high, as a blob. */
  picture(side = MAX_SIDE, type = "image/png") {
    const { found, mirrored, medium, beside } = this.#shown;
    const picture = this.#shown.picture ?? PAPER;
    const part = Math.min(1, side / Math.max(picture.width, picture.height));
    const canvas = document.createElement("canvas");
    const view = { ...viewAt(canvas, picture, { mirrored, medium, part }), saved: true };
    if (medium) drawWhole(view, medium);
    else coverDrawing(view);
    if (found.length || !medium) this.#drawer.draw(view, found, this.#schema, beside);
    return new Promise((resolve) => canvas.toBlob(resolve, type, 0.8));
  }

  #offer(blob, ending) {
    download(`${this.name}.${ending}`, [blob], blob.type);
  }
}
