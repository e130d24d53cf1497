// What a model is: the panel beside its graph.

import { byId, bytes, counted, el } from "../../ui/dom.js";
import { countOperators, COLOURS } from "./model_drawing.js";

const MOST = 12; // operators that are listed at once

function pairs(entries) {
  return entries.flatMap(([name, value]) => [el("dt", { text: name }), el("dd", {}, value)]);
}

function ends(keys, values) {
  const rows = keys.map((key) => el("li", {}, el("strong", { text: values[key]?.name || key }), " ", el("span", { class: "quiet", text: values[key]?.type || "unknown" })));
  return el("ul", { class: "ends" }, rows);
}

/** Operators as bars, most frequent first; one that is pressed is searched for. */
function operators(nodes, search) {
  const counts = countOperators(nodes);
  const rows = counts.map(([op, count], at) => {
    const part = el("span", { class: "bar", "aria-hidden": "true" });
    part.style.setProperty("--part", `${(100 * count) / counts[0][1]}%`);
    const button = el("button", { type: "button", class: "link", text: op, on: { click: () => search(op) } });
    const row = el("li", { class: `colour-${Math.min(at, COLOURS - 1)}` }, button, el("span", { class: "figure", text: String(count) }), part);
    row.hidden = at >= MOST;
    return row;
  });
  const list = el("ol", { class: "operators" }, rows);
  if (counts.length <= MOST) return [list];
  const more = el("button", { type: "button", class: "link", text: `Show all ${counts.length} operators` });
  more.addEventListener("click", () => {
    for (const row of rows) row.hidden = false;
    more.remove();
  });
  return [list, more];
}

/** Fills the panel; `told` is the engine's answer to "open", `search(text)` looks for nodes. */
export function showFacts({ name, bytes: size, sha256, format, outline }, search) {
  const weights = outline ? Object.values(outline.values).reduce((sum, { bytes: own }) => sum + own, 0) : 0;
  byId("facts-title").textContent = name;
  byId("facts").replaceChildren(...pairs([
    ["Format", format || "not known"],
    ["Size", bytes(size)],
    ...(outline ? [["Weights", bytes(weights)], ["Operators", outline.nodes.length.toLocaleString("en")]] : []),
    ...(outline ? [["Inputs", ends(outline.inputs, outline.values)], ["Outputs", ends(outline.outputs, outline.values)]] : []),
    ...Object.entries(outline?.facts ?? {}).map(([key, value]) => [key.charAt(0).toUpperCase() + key.slice(1), value]),
    ["SHA-256", el("code", { class: "hash", text: sha256 })],
  ]));
  byId("operators").replaceChildren(...(outline ? operators(outline.nodes, search) : []));
  byId("operators-box").hidden = !outline;
  byId("facts-box").hidden = false;
}

/** One line for each backend: what it makes of the model, or why it cannot; and the one that it is being compiled for. */
export function showPlans(plans, titles, compiling = "") {
  const rows = Object.entries(plans).map(([backend, plan]) => {
    const error = plan.error;
    const row = el("li", { class: error ? "absent" : "present" }, el("strong", { text: titles[backend] ?? backend }), " ");
    if (error) row.append(el("span", { class: "value", text: error.problems?.length ? `${counted(error.problems.length, "feature")} unsupported` : error.message }));
    else if (plan.open) row.append(el("span", { class: "value", text: "waits for the sizes of its inputs" }));
    else row.append(el("span", { class: "value", text: planned(plan) }));
    if (error?.problems?.length) row.append(el("ul", { class: "problems" }, error.problems.map((text) => el("li", { text }))));
    return row;
  });
  const waits = compiling && el("li", { class: "quiet" }, el("strong", { text: titles[compiling] ?? compiling }), " compiling …");
  byId("plans").replaceChildren(...rows, ...(waits ? [waits] : []));
}

function planned({ rows, graph, memory, ms, choice, backend }) {
  const elsewhere = rows.filter((row) => row.backend !== backend && backend.includes("+")).length;
  const share = elsewhere ? ` ${choice}.` : "";
  return `${counted(graph.nodes.length, "node")} in ${counted(rows.length, "step")}, ${bytes(memory.constants + memory.arena)} of memory, compiled in ${Math.round(ms)} ms.${share}`;
}
