// The same nodes as a table: for readers who do not look at pictures, and for those who search or compare.

import { byId, counted, el, milliseconds, say } from "../../ui/dom.js";
import { sizesOf } from "./model_drawing.js";

const PAGE = 200; // rows that are made at a time

/** Whether a node has these words in its operator, name, types or attributes. */
export function fits({ op, name, inputs, outputs, attributes }, values, words) {
  const told = Object.entries(attributes).flat();
  const ends = [...inputs, ...outputs].flatMap((key) => (values[key] ? [values[key].name, values[key].type] : []));
  const text = [op, name, ...told, ...ends].join(" ").toLowerCase();
  return words.every((word) => text.includes(word));
}

/** `choose(node)` hears which row was chosen. */
export class NodeList {
  #choose;
  #rows = new Map(); // node -> row
  #shown = { nodes: [], values: {}, times: null, kernels: null };
  #numbers = [];

  constructor(choose) {
    this.#choose = choose;
    byId("list-more").addEventListener("click", () => this.#more());
  }

  /** Shows these of a graph's nodes; `kernels` and `times` of each where they are known. */
  show({ nodes, values }, numbers, { kernels = null, times = null } = {}) {
    this.#shown = { nodes, values, kernels, times };
    this.#numbers = numbers;
    this.#rows.clear();
    byId("list-time").hidden = !times;
    byId("list-body").replaceChildren();
    this.#more();
  }

  /** Marks the row of a node, -1 for none. */
  select(node) {
    for (const [number, row] of this.#rows) row.setAttribute("aria-selected", String(number === node));
    this.#rows.get(node)?.scrollIntoView({ block: "nearest" });
  }

  #more() {
    const at = this.#rows.size;
    const fresh = this.#numbers.slice(at, at + PAGE).map((number) => this.#row(number));
    byId("list-body").append(...fresh);
    const left = this.#numbers.length - this.#rows.size;
    byId("list-more").hidden = left === 0;
    say(byId("list-more"), `Show ${counted(Math.min(left, PAGE), "more node")}`);
    byId("list-none").hidden = this.#numbers.length > 0;
  }

  #row(number) {
    const { nodes, values, kernels, times } = this.#shown;
    const { op, name, outputs } = nodes[number];
    const choose = el("button", { type: "button", class: "link", text: op, on: { click: () => this.#choose(number) } });
    const row = el("tr", { "aria-selected": "false" },
      el("td", { text: String(number) }),
      el("th", { scope: "row" }, choose),
      el("td", { text: sizesOf(values[outputs[0]]?.type ?? "") }),
      el("td", { text: kernels?.get(number) ?? "" }),
      times ? el("td", { class: "figure", text: times.has(number) ? milliseconds(times.get(number)) : "–" }) : null,
      el("td", { class: "name", text: name }));
    this.#rows.set(number, row);
    return row;
  }
}
