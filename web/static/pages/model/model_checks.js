// Two looks into every node: how long it takes, drawn into the graph, and how far two backends are apart.

import { byId, counted, el, milliseconds, short, table } from "../../ui/dom.js";

const LISTED = 8;

/** Milliseconds by node: the sums of its steps. */
export function timesOfNodes(rows, times) {
  const found = new Map();
  rows.forEach(({ node }, at) => node >= 0 && found.set(node, (found.get(node) ?? 0) + times[at]));
  return found;
}

/** A share of the longest for each node; small ones are lifted, so that they differ to the eye. */
export function heatOf(times) {
  const longest = Math.max(...times.values(), Number.MIN_VALUE);
  return new Map([...times].map(([node, ms]) => [node, Math.sqrt(ms / longest)]));
}

const link = (node, text, show) => el("button", { type: "button", class: "link", text, on: { click: () => show("run", node) } });

/** Shows a profile: {run_ms, overhead_ms} and the slowest nodes. */
export function showProfile({ run_ms: run, overhead_ms: outside }, times, graph, title, show) {
  const whole = [...times.values()].reduce((sum, ms) => sum + ms, 0) || 1;
  const slowest = [...times].sort(([, a], [, b]) => b - a).slice(0, LISTED);
  const rows = slowest.map(([node, ms]) => {
    const bar = el("span", { class: "bar", "aria-hidden": "true" });
    bar.style.setProperty("--part", `${(100 * ms) / slowest[0][1]}%`);
    return [el("span", {}, link(node, `${graph.nodes[node].op} (node ${node})`, show), bar), milliseconds(ms), `${((100 * ms) / whole).toFixed(1)} %`];
  });
  const text = `${title}: ${milliseconds(run)} a run, ${milliseconds(outside)} of it outside the kernels. The graph is coloured by time.`;
  fill("Time by node", text, table("The slowest nodes", ["Slowest nodes", "Time", "Share of the nodes"], rows));
}

/** Shows a comparison: {ok, backend, against, differences} with each tensor that both computed. */
export function showComparison({ ok, backend, against, differences }, graph, tolerance, show) {
  const off = differences.filter(({ within }) => !within);
  const name = ({ node, label, op }) => (node >= 0 ? link(node, `${op} (node ${node})`, show) : el("span", { text: `${op} ${label}` }));
  const among = [...differences].sort((a, b) => b.relative - a.relative).slice(0, LISTED);
  const rows = among.map((one) => [name(one), short(one.max_abs), short(one.relative), one.within ? "within" : "too much"]);
  const [first] = off;
  const verdict = !differences.length
    ? el("p", { text: `${backend} and ${against} have no tensor in common.` })
    : ok
      ? el("p", { class: "good", text: `${backend} and ${against} agree on ${counted(differences.length, "tensor")}: none differs by more than ${tolerance} of its range.` })
      : el("p", { class: "bad" }, `${backend} and ${against} differ first at `, name(first), `: by ${short(first.max_abs)}, ${short(first.relative)} of its range. ${counted(off.length, "tensor")} of ${differences.length} ${off.length === 1 ? "differs" : "differ"} by more than ${tolerance}.`);
  fill("Comparison of the backends", verdict, table("The largest differences", ["Largest differences", "Maximum", "Of its range", "Verdict"], rows));
}

function fill(title, text, made) {
  const lead = typeof text === "string" ? el("p", { text }) : text;
  byId("check").replaceChildren(el("h3", { text: title }), lead, el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, made));
  byId("check").hidden = false;
}

/** Takes the results of earlier looks away. */
export function forgetChecks() {
  byId("check").hidden = true;
  byId("check").replaceChildren();
}
