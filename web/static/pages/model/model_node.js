// The details of one node: what it is, what it reads and gives, which step of each backend computes it and why.

import { byId, bytes, counted, el, milliseconds, short } from "../../ui/dom.js";

function value(key, { values }, go, weigh = null) {
  const { name, type, bytes: size } = values[key] ?? { name: key, type: "" };
  const shown = go ? el("button", { type: "button", class: "link", text: name || key, on: { click: go } }) : el("strong", { text: name || key });
  const more = size && weigh ? [" ", el("button", { type: "button", class: "link", text: "Values", "aria-label": `Values of ${name || key}`, on: { click: () => weigh(key) } })] : [];
  return el("li", {}, shown, " ", el("span", { class: "quiet", text: size ? `${type}, ${bytes(size)} of weights` : type }), ...more);
}

/** Nodes by the values that they make and read. */
export function neighbours({ nodes }) {
  const [makers, readers] = [new Map(), new Map()];
  nodes.forEach(({ inputs, outputs }, number) => {
    for (const key of outputs) makers.set(key, number);
    for (const key of new Set(inputs)) readers.set(key, [...(readers.get(key) ?? []), number]);
  });
  return { makers, readers };
}

/** The nodes of what runs that compute an operator of the file; `own` is false where a later one does it on its way. */
export function runsOf(operator, file, origins) {
  const { readers } = neighbours(file);
  let front = [operator];
  const seen = new Set(front);
  for (let steps = 0; front.length && steps < 8; steps += 1) {
    const found = origins.flatMap((origin, node) => (front.includes(origin) ? [node] : []));
    if (found.length) return { nodes: found, own: steps === 0 };
    front = front.flatMap((number) => file.nodes[number].outputs.flatMap((key) => readers.get(key) ?? [])).filter((number) => !seen.has(number));
    for (const number of front) seen.add(number);
  }
  return { nodes: [], own: false };
}

function work({ flops, bytes: moved }) {
  const operations = flops >= 1e6 ? `${(flops / 1e6).toFixed(1)} MFLOP` : flops >= 1e3 ? `${(flops / 1e3).toFixed(1)} kFLOP` : flops ? `${flops} FLOP` : "";
  return [operations, bytes(moved)].filter(Boolean).join(", ");
}

/** What a backend makes of a node: a list of its steps, or why there is none. */
function steps(node, { rows, fixed }, times) {
  const own = rows.map((row, at) => ({ ...row, ms: times?.[at] })).filter((row) => row.node === node);
  if (!own.length) {
    const why = fixed.includes(node)
      ? "Computed once, when the model is loaded."
      : "No step of its own: its result is a view of the same bytes, or another node's step computes it too.";
    return [el("p", { class: "quiet", text: why })];
  }
  return own.map((row) => el("div", { class: "step-of" },
    el("code", { text: row.kernel }), " ",
    el("span", { class: "quiet", text: `step ${row.index} on ${row.backend}; ${work(row)}${row.ms === undefined ? "" : `; ${milliseconds(row.ms)}`}` }),
    el("p", { text: row.why })));
}

function pair(name, ...children) {
  return [el("dt", { text: name }), el("dd", {}, children)];
}

/** Everything about what runs: `plans` by backend, `checks` with times and differences. */
function aboutRun(number, { plans, titles, checks }) {
  const found = [];
  for (const [backend, plan] of Object.entries(plans)) {
    if (plan.graph) found.push(...pair(titles[backend] ?? backend, steps(number, plan, checks.times?.[backend])));
    else if (plan.error) found.push(...pair(titles[backend] ?? backend, el("p", { class: "quiet", text: plan.error.message })));
  }
  const difference = checks.differences?.find(({ node }) => node === number);
  if (difference) {
    const text = `${short(difference.max_abs)} at most, ${short(difference.relative)} of its range: ${difference.within ? "within the tolerance" : "too much"}`;
    found.push(...pair("Difference", el("p", { class: difference.within ? "" : "bad", text })));
  }
  return found;
}

function aboutFile(number, { file, graph, origins, error, show }) {
  const { op, number: own } = file.nodes[number];
  if (error?.operators?.includes(own)) {
    const reasons = error.problems.filter((text) => text.startsWith(`${op}:`));
    return pair("Unsupported", (reasons.length ? reasons : error.problems).map((text) => el("p", { class: "bad", text })));
  }
  if (!origins) return [];
  const { nodes, own: itself } = runsOf(number, file, origins);
  if (!nodes.length) return pair("As it runs", el("p", { class: "quiet", text: "No longer there: computed when the model was loaded, or not needed." }));
  const links = nodes.map((node) => el("button", { type: "button", class: "link", text: `${graph.nodes[node].op} (node ${node})`, on: { click: () => show("run", node) } }));
  return pair("As it runs", itself ? [] : el("p", { class: "quiet", text: "Part of another node:" }), links);
}

/**
 * Fills the panel. `told` has the `graph` that is shown, `view` ("run" or "file"), the `file`'s outline, `origins`,
 * `plans`, `checks`, `titles`, the importer's `error`, `show(view, node)` and `weigh(key)`, which shows a weight's values.
 */
export function showNode(number, told) {
  const { graph, view, file, origins, show, weigh } = told;
  const node = graph.nodes[number];
  const { makers } = neighbours(graph);
  const from = (key) => (makers.has(key) ? () => show(view, makers.get(key)) : null);
  const present = node.inputs.filter(Boolean);
  byId("node-title").textContent = node.op;
  byId("node").replaceChildren(
    ...pair("Name", el("span", { text: node.name || "none" })),
    ...(view === "run" ? aboutRun(number, told) : aboutFile(number, { ...told, graph: told.run })),
    ...pair("Reads", el("ul", { class: "ends" }, present.map((key) => value(key, graph, from(key), view === "run" ? weigh : null)))),
    ...pair("Gives", el("ul", { class: "ends" }, node.outputs.map((key) => value(key, graph, null)))),
    ...Object.entries(node.attributes).flatMap(([name, text]) => pair(name.replaceAll("_", " "), el("code", { text }))),
    ...(view === "run" && origins?.[number] >= 0 ? pair("In the file", el("button", {
      type: "button", class: "link", on: { click: () => show("file", origins[number]) },
      text: `${file.nodes[origins[number]].op} ${file.nodes[origins[number]].name}`.slice(0, 80),
    })) : []),
  );
  byId("node-box").hidden = false;
}

/** The ends of the model, when one of them is chosen. */
export function showEnd({ kind, key }, graph) {
  const { readers } = neighbours(graph);
  byId("node-title").textContent = kind === "input" ? "Input of the model" : "Output of the model";
  const count = readers.get(key)?.length ?? 0;
  byId("node").replaceChildren(
    ...pair("Value", el("ul", { class: "ends" }, value(key, graph, null))),
    ...(kind === "input" ? pair("Read by", el("span", { text: counted(count, "node") })) : []),
  );
  byId("node-box").hidden = false;
}
