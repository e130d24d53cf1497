// Two models side by side: both graphs with what was added, removed and changed, and lists of it.

import { byId, bytes, counted, el, say, short, table } from "../../ui/dom.js";
import { elementsOf } from "../../media/npy.js";
import { drawingOf, Layouts } from "./model_drawing.js";
import { GraphView } from "./model_graph.js";

const ROWS = 200; // of a list

/** The largest difference, how many elements differ, and of how many; null of arrays that cannot be compared so. */
export function numbersOf(one, other) {
  if (one.length !== other.length) return null;
  let [most, differ] = [0, 0];
  for (let at = 0; at < one.length; at += 1) {
    if (one[at] === other[at] || (Number.isNaN(one[at]) && Number.isNaN(other[at]))) continue;
    differ += 1;
    most = Math.max(most, Math.abs(Number(one[at]) - Number(other[at])) || 0);
  }
  return { most, differ, of: one.length };
}

function changeText({ kind, name, was, now }) {
  const what = kind === "attribute" ? name.replaceAll("_", " ") : `${kind} ${name}`.trim();
  return `${what}: ${was || "none"} → ${now || "none"}`;
}

/** A list behind its title; `rows` are made only as far as they are shown. */
function listed(title, columns, rows, make) {
  if (!rows.length) return null;
  const more = rows.length > ROWS ? el("p", { class: "quiet", text: `The first ${ROWS} of ${rows.length.toLocaleString("en")}.` }) : null;
  const shown = table(title, columns, rows.slice(0, ROWS).map(make));
  return el("details", { open: rows.length <= 20 }, el("summary", { text: `${title} (${rows.length.toLocaleString("en")})` }), el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, shown), more);
}

export class Comparison {
  #layouts;
  #views;
  #drawings = [null, null];

  constructor(layoutAddress) {
    this.#layouts = [new Layouts(layoutAddress), new Layouts(layoutAddress)];
    this.#views = ["graph-one", "graph-other"].map((id) => new GraphView(byId(id), { select: () => {}, open: () => {} }));
  }

  /** Another model is being opened: there is nothing to compare with. */
  forget() {
    byId("compare-result").hidden = true;
    say(byId("compare-status"), "");
  }

  /** Shows the engine's answer about the model `told` and another one. */
  async show(told, { buffers, ...other }) {
    const { nodes, weights } = other;
    const counts = { added: nodes.added.length, removed: nodes.removed.length, changed: nodes.changed.length, weights: (weights.differ ?? []).length };
    document.documentElement.dataset.webinferCompared = JSON.stringify({ name: other.name, same: nodes.same, ...counts, error: weights.error?.code });
    byId("compare-one").textContent = `${told.name}, ${bytes(told.bytes)}`;
    byId("compare-other").textContent = `${other.name}, ${bytes(other.bytes)}`;
    byId("compare-lists").replaceChildren(...this.#lists(told.outline, other, buffers).filter(Boolean));
    byId("compare-result").hidden = false;
    say(byId("compare-status"), summary(told, other));
    await this.#draw([told.outline, other.outline], nodes);
  }

  #lists(one, { outline: other, nodes, weights }, buffers) {
    const link = ({ nodes: all }, node, go) => el("button", { type: "button", class: "link", text: `${all[node].op} ${all[node].name}`.trim(), on: { click: go } });
    let place = 0;
    const numbers = (weights.differ ?? []).map(({ dtypes }) => dtypes && numbersOf(...dtypes.map((dtype) => elementsOf({ dtype, data: buffers[place++] }))));
    const apart = ({ was, now }, found) => (found ? `${found.differ.toLocaleString("en")} of ${counted(found.of, "element")}, by ${short(found.most)} at most` : was === now ? "other bytes" : `${was} → ${now}`);
    return [
      weights.error ? el("p", { class: "bad", text: `The weights could not be compared: ${weights.error.message}` }) : null,
      listed("Changed operators", ["Operator", "What changed"], nodes.changed, ({ node, other: now, changes }) => [link(one, node, () => this.#go(node, now)), changes.map(changeText).join("; ")]),
      listed("Removed operators", ["Operator", "Number"], nodes.removed, (node) => [link(one, node, () => this.#go(node, -1)), String(node)]),
      listed("Added operators", ["Operator", "Number"], nodes.added, (node) => [link(other, node, () => this.#go(-1, node)), String(node)]),
      listed("Weights that differ", ["Weight", "Difference"], (weights.differ ?? []).map((row, at) => [row, numbers[at]]), ([row, found]) => [row.name, apart(row, found)]),
      listed("Removed weights", ["Weight"], weights.removed ?? [], (name) => [name]),
      listed("Added weights", ["Weight"], weights.added ?? [], (name) => [name]),
    ];
  }

  async #draw(outlines, { added, removed, changed }) {
    const marked = [[...removed.map((node) => [node, "removed"]), ...changed.map(({ node }) => [node, "differs"])], [...added.map((node) => [node, "added"]), ...changed.map(({ other }) => [other, "differs"])]];
    await Promise.all(outlines.map(async (outline, side) => {
      const drawing = await this.#layouts[side].arranged(drawingOf(outline));
      if (!drawing) return;
      this.#drawings[side] = drawing;
      this.#views[side].show(drawing);
      this.#views[side].mark(new Map(marked[side].map(([node, mark]) => [drawing.at[node], mark])));
      const first = marked[side][0];
      if (first && drawing.at[first[0]] >= 0) this.#views[side].select(drawing.at[first[0]]);
    }));
  }

  /** Shows a node of each graph, -1 for none. */
  #go(...nodes) {
    nodes.forEach((node, side) => this.#views[side].select(node < 0 ? -1 : this.#drawings[side]?.at[node] ?? -1));
    byId("compare-graphs").scrollIntoView({ block: "nearest" });
  }
}

function summary(told, { nodes, weights, sha256 }) {
  if (told.sha256 === sha256) return "Both files are identical.";
  const parts = [counted(nodes.same, "operator") + " the same", `${nodes.changed.length} changed`, `${nodes.removed.length} removed`, `${nodes.added.length} added`];
  const held = weights.error ? [] : [`${counted(weights.same, "weight")} the same`, `${weights.differ.length} differ`];
  const unread = weights.unread ? ` ${counted(weights.unread, "weight")} could not be read.` : "";
  return `${parts.join(", ")}. ${held.length ? `${held.join(", ")}.` : ""}${unread}`;
}
