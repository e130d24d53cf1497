// What a model is run on: for each input noise, zeros, a picture or a .npy file.

import { byId, el } from "../../ui/dom.js";
import { ARRAYS, readNpy } from "../../media/npy.js";
import { openPicture } from "../../media/picture.js";

const CHANNELS = [1, 3, 4];
const RANGES = { // what a pixel from 0 to 255 becomes
  "0 … 1": [1 / 255, 0],
  "−1 … 1": [2 / 255, -1],
  "0 … 255": [1, 0],
};

/** Where height, width and channels of a picture lie in a shape of four sizes; null if it is not the shape of a picture. */
export function pictureAxes(shape) {
  if (shape.length !== 4 || shape[0] !== 1) return null;
  if (CHANNELS.includes(shape[3]) && shape[1] > 1) return { height: shape[1], width: shape[2], channels: shape[3], last: true };
  if (CHANNELS.includes(shape[1]) && shape[2] > 1) return { height: shape[2], width: shape[3], channels: shape[1], last: false };
  return null;
}

/** The bytes of a picture, stretched to the input's size, in the input's type and order. */
export async function pictureTensor(file, { shape, dtype }, range) {
  const { height, width, channels, last } = pictureAxes(shape);
  const { bitmap } = await openPicture(file);
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, 0, 0, width, height);
  bitmap.close();
  const { data } = context.getImageData(0, 0, width, height);
  const values = new (dtype === "float16" ? Float32Array : ARRAYS[dtype])(height * width * channels);
  const [scale, offset] = dtype.startsWith("float") ? range : [1, dtype === "int8" ? -128 : 0];
  for (let pixel = 0; pixel < height * width; pixel += 1) {
    for (let channel = 0; channel < channels; channel += 1) {
      const at = last ? pixel * channels + channel : channel * height * width + pixel;
      const level = channels === 1 ? 0.299 * data[4 * pixel] + 0.587 * data[4 * pixel + 1] + 0.114 * data[4 * pixel + 2] : data[4 * pixel + channel];
      values[at] = level * scale + offset;
    }
  }
  return values.buffer;
}

/** One row of the form; `values` gives what the engine is sent. */
class InputRow {
  #info;
  #refuse;
  #data = null; // ArrayBuffer of a picture or a .npy file
  #file = null;
  #kind;
  #range;
  #picker;
  #note;
  row;

  constructor(info, number, refuse) {
    this.#info = info;
    this.#refuse = refuse;
    const name = `input-${number}`;
    const kinds = [["noise", "Random"], ["zeros", "Zeros"], ...(this.#takesPictures() ? [["picture", "Picture"]] : []), ["npy", ".npy file"]];
    this.#kind = el("select", { id: name }, kinds.map(([value, text]) => el("option", { value, text })));
    this.#range = el("select", { "aria-label": `Range of pixel values for ${info.name}` }, Object.keys(RANGES).map((text) => el("option", { text })));
    this.#picker = el("input", { type: "file", "aria-label": `File for ${info.name}` });
    this.#note = el("span", { class: "quiet" });
    const type = `${info.dtype} [${info.shape.join(", ")}]`;
    this.row = el("div", { class: "input" },
      el("label", { for: name }, el("strong", { text: info.name }), " ", el("span", { class: "quiet", text: type })),
      el("div", { class: "row" }, this.#kind, this.#range, this.#picker, this.#note));
    this.#kind.addEventListener("change", () => this.#changed());
    this.#range.addEventListener("change", () => this.#read());
    this.#picker.addEventListener("change", () => this.take(this.#picker.files[0]));
    this.#changed();
  }

  #takesPictures() {
    return pictureAxes(this.#info.shape) && ["float32", "uint8", "int8"].includes(this.#info.dtype);
  }

  #changed() {
    const kind = this.#kind.value;
    this.#picker.hidden = kind !== "picture" && kind !== "npy";
    this.#picker.accept = kind === "npy" ? ".npy" : "image/*";
    this.#range.hidden = kind !== "picture" || this.#info.dtype !== "float32";
    this.#data = this.#file = null;
    this.#picker.value = "";
    this.#note.textContent = "";
  }

  /** Takes a picture or a .npy file, whatever was chosen before. */
  async take(file) {
    if (!file) return;
    this.#file = file;
    await this.#read();
  }

  async #read() {
    const [file, kind] = [this.#file, this.#kind.value];
    if (!file) return;
    try {
      const data = kind === "npy" ? this.#array(await file.arrayBuffer(), file.name) : await pictureTensor(file, this.#info, RANGES[this.#range.value]);
      if (file !== this.#file) return;
      this.#data = data;
      this.#note.textContent = file.name;
    } catch (error) {
      this.#data = null;
      this.#note.textContent = "";
      this.#refuse(error);
    }
  }

  #array(buffer, name) {
    const found = readNpy(buffer, name);
    const { dtype, shape } = this.#info;
    if (found.dtype === dtype && String(found.shape) === String(shape)) return found.data;
    const [has, needs] = [found, this.#info].map((one) => `${one.dtype} [${one.shape.join(", ")}]`);
    throw Object.assign(new Error(`“${name}” is ${has}; input ${this.#info.name} needs ${needs}.`), { code: "input" });
  }

  get value() {
    const kind = this.#kind.value;
    if (kind === "noise" || kind === "zeros") return kind;
    if (this.#data) return this.#data;
    const what = kind === "npy" ? "a .npy file" : "a picture";
    throw Object.assign(new Error(`Choose ${what} for ${this.#info.name} first.`), { code: "input" });
  }
}

export class Inputs {
  #infos = [];
  #rows = [];
  #refuse;

  constructor(refuse) {
    this.#refuse = refuse;
  }

  /** Rows for these inputs: {name, dtype, shape}. What was chosen stays if they are the same. */
  show(infos) {
    if (JSON.stringify(infos) === JSON.stringify(this.#infos)) return;
    this.#infos = infos;
    this.#rows = infos.map((info, number) => new InputRow(info, number, this.#refuse));
    const seed = el("label", { class: "seed" }, "Random seed ", el("input", { type: "number", id: "seed", value: "0", min: "0", max: "999999", step: "1" }));
    byId("inputs").replaceChildren(...this.#rows.map(({ row }) => row), seed);
  }

  /** {inputs, seed} for the engine. Throws an error with the code "input" where a file is missing. */
  get values() {
    const inputs = Object.fromEntries(this.#infos.map(({ name }, number) => [name, this.#rows[number].value]));
    return { inputs, seed: Math.trunc(Math.abs(Number(byId("seed").value))) || 0 };
  }
}
