// The form for sizes of inputs that a model leaves open. A size with a name is the same in every input that has it.

import { byId, el } from "../../ui/dom.js";

const open = (size) => typeof size !== "number";
const first = (place) => (place === 0 ? 1 : 16); // a batch of one, and some of the rest

export class Shapes {
  #inputs = [];
  #fields = new Map(); // name of a size, or input and place -> field

  /** `take(shapes)` gets {input: sizes} when they were filled in. */
  constructor(take) {
    byId("shapes").addEventListener("submit", (event) => {
      event.preventDefault();
      take(Object.fromEntries(this.#inputs.map((info) => [info.name, info.shape.map((size, place) => this.#size(info, size, place))])));
    });
  }

  #key({ name }, size, place) {
    return size && size !== "?" ? size : `${name}[${place}]`;
  }

  #size(info, size, place) {
    return open(size) ? Number(this.#fields.get(this.#key(info, size, place)).value) : size;
  }

  /** Shows a field for each open size of these inputs. */
  ask(inputs) {
    this.#inputs = inputs;
    const before = this.#fields;
    this.#fields = new Map();
    for (const info of inputs) {
      info.shape.forEach((size, place) => {
        const key = this.#key(info, size, place);
        if (!open(size) || this.#fields.has(key)) return;
        const value = before.get(key)?.value ?? String(first(place));
        this.#fields.set(key, el("input", { type: "number", min: "1", max: "1000000", step: "1", required: true, value }));
      });
    }
    const rows = [...this.#fields].map(([key, field]) => el("label", {}, el("span", { text: key }), field));
    const shapes = inputs.map(({ name, shape }) => el("li", { text: `${name} [${shape.join(", ")}]` }));
    byId("shapes").replaceChildren(el("ul", { class: "quiet ends" }, shapes), el("div", { class: "sizes" }, rows), el("button", { type: "submit", class: "primary", text: "Compile" }));
    byId("shapes-box").hidden = false;
  }

  /** The model runs on inputs of these sizes: the form stays only where it was needed. */
  keep(inputs) {
    const own = this.#inputs.map(({ name }) => name);
    if (String(own) !== String(inputs.map(({ name }) => name))) byId("shapes-box").hidden = true;
  }
}
