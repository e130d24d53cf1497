// The panel "Where the time goes": asks for a measurement, shows how far it is, then a figure of it: the whole
// inference as a strip, and a table with a bar for each operator and, unfolded, for each of its steps.

import { byId, counted, el } from "./dom.js";

const COLOURS = 7; // .colour-0 to .colour-6 in demo.css; operators that take less time share the last one
const OUTSIDE = "outside the kernels";

const milliseconds = (ms) => ms.toFixed(ms < 10 ? 3 : 1);
const percent = (part) => `${(100 * part).toFixed(1)} %`;
const ofPeak = (least, ms) => (least && ms ? `${Math.round((100 * least) / ms)} %` : "–");
const speed = (flops, ms) => (flops && ms ? (flops / ms / 1e6).toFixed(1) : "–");
const sum = (rows, key) => rows.reduce((total, row) => total + row[key], 0);

/** Steps by operator, the one that takes longest first: [{op, steps, ms, least_ms, flops}]. */
export function grouped(steps) {
  const groups = new Map();
  for (const step of steps) groups.set(step.op, [...(groups.get(step.op) ?? []), step]);
  const sums = (members) => Object.fromEntries(["ms", "least_ms", "flops"].map((key) => [key, sum(members, key)]));
  const rows = [...groups].map(([op, members]) => ({ op, steps: members, ...sums(members) }));
  return rows.sort((a, b) => b.ms - a.ms);
}

function bar(part) {
  const made = el("span", { class: "bar" });
  made.style.setProperty("--part", `${(100 * part).toFixed(2)}%`);
  return made;
}

/** The cells of a row; a narrow page hides the table's head and shows the units. */
function figures({ ms, least_ms: least, flops }, whole) {
  const cells = [[milliseconds(ms), " ms"], [percent(ms / whole), ""], [speed(flops, ms), " GFLOP/s"], [ofPeak(least, ms), " of peak"]];
  return cells.map(([text, unit]) => {
    const cell = el("td", { text });
    cell.dataset.unit = unit;
    return cell;
  });
}

/** Tells screen readers what the parts are: browsers forget it for tables that a narrow page lays out as a grid. */
function withRoles(table) {
  const roles = { THEAD: "rowgroup", TBODY: "rowgroup", TR: "row", TD: "cell" };
  table.setAttribute("role", "table");
  for (const node of table.querySelectorAll("thead, tbody, tr, th, td")) {
    node.setAttribute("role", roles[node.tagName] ?? (node.scope === "col" ? "columnheader" : "rowheader"));
  }
  return table;
}

function stepRow(step, longest, whole) {
  const row = el("tr", { class: "step" });
  const head = el("th", { scope: "row", text: `${step.index} ${step.kernel}` });
  head.append(el("small", { text: step.shapes }), bar(step.ms / longest));
  row.append(head, ...figures(step, whole));
  row.hidden = true;
  return row;
}

/** One operator: a row that unfolds into its steps. */
function groupBody(group, colour, { longestGroup, longestStep, whole }) {
  const body = el("tbody", { class: `colour-${colour}` });
  const rows = group.steps.map((step) => stepRow(step, longestStep, whole));
  const fold = el("button", { type: "button", class: "fold", text: group.op });
  fold.setAttribute("aria-expanded", "false");
  fold.append(" ", el("small", { text: counted(group.steps.length, "step") }));
  fold.addEventListener("click", () => {
    const open = fold.getAttribute("aria-expanded") !== "true";
    fold.setAttribute("aria-expanded", String(open));
    for (const row of rows) row.hidden = !open;
  });
  const row = el("tr", { class: "group" });
  const head = el("th", { scope: "rowgroup" });
  head.append(fold, bar(group.ms / longestGroup));
  row.append(head, ...figures(group, whole));
  body.append(row, ...rows);
  return body;
}

function outsideBody(ms, { longestGroup, whole }) {
  const body = el("tbody", { class: "outside" });
  const row = el("tr", { class: "group" });
  const head = el("th", { scope: "row" });
  const name = el("span", { class: "name", text: "Outside the kernels" });
  name.append(" ", el("small", { text: "checks, copies, waiting" }));
  head.append(name, bar(ms / longestGroup));
  row.append(head, ...figures({ ms, flops: 0 }, whole));
  body.append(row);
  return body;
}

function table(groups, report, whole) {
  const longest = {
    whole,
    longestGroup: Math.max(report.overhead_ms, ...groups.map(({ ms }) => ms), Number.MIN_VALUE),
    longestStep: Math.max(...report.steps.map(({ ms }) => ms), Number.MIN_VALUE),
  };
  const made = el("table");
  const head = el("tr");
  for (const name of ["Operator", "ms", "Share", "GFLOP/s", "Of peak"]) head.append(el("th", { scope: "col", text: name }));
  made.append(el("caption", { class: "unseen", text: "Time by operator" }), el("thead"));
  made.tHead.append(head);
  made.append(...groups.map((group, at) => groupBody(group, Math.min(at, COLOURS - 1), longest)));
  made.append(outsideBody(report.overhead_ms, longest));
  return withRoles(made);
}

/** The whole inference as one line of coloured parts; the table says the same in words. */
function fillStrip(strip, groups, report, whole) {
  const parts = groups.map(({ op, ms }, at) => ({ op, ms, className: `colour-${Math.min(at, COLOURS - 1)}` }));
  parts.push({ op: OUTSIDE, ms: report.overhead_ms, className: "outside" });
  strip.replaceChildren(...parts.map(({ op, ms, className }) => {
    const part = el("span", { class: className, title: `${op}: ${percent(ms / whole)}` });
    part.style.flexGrow = String(ms / whole);
    return part;
  }));
  strip.setAttribute("aria-label", parts.map(({ op, ms }) => `${op} ${percent(ms / whole)}`).join(", "));
}

/** `ask` starts a measurement and says whether it could; the answers go to `progress` and `show`. */
export class ProfilePanel {
  #links = []; // object URLs of the downloads

  constructor(ask) {
    byId("measure").addEventListener("click", () => {
      if (byId("measure").getAttribute("aria-disabled") === "true" || !ask()) return;
      this.#measuring(true);
      this.progress({ done: 0, total: 0 });
    });
  }

  /** What was measured belongs to an engine that is gone, or the measurement failed. */
  forget() {
    this.#measuring(false);
    byId("profile").hidden = true;
    byId("profile-status").textContent = "";
  }

  progress({ done, total }) {
    byId("profile-progress").value = total ? done / total : 0;
    byId("profile-status").textContent = total ? `Measuring, round ${done + 1} of ${total} …` : "Measuring …";
  }

  show({ report, svg }) {
    this.#measuring(false);
    const groups = grouped(report.steps);
    const whole = report.total_ms + report.overhead_ms || 1;
    const kernels = Math.max(report.run_ms - report.overhead_ms, 0);
    byId("profile-run").textContent = milliseconds(report.run_ms);
    byId("profile-kernels").textContent = milliseconds(kernels);
    byId("profile-outside").textContent = percent(report.overhead_ms / (report.run_ms || 1)).slice(0, -2);
    byId("profile-speed").textContent = speed(sum(report.steps, "flops"), kernels);
    byId("profile-caption").textContent =
      `${report.steps.length} steps, each timed by itself. Expand an operator to see its steps. ` +
      "Of peak: how much of this device's best possible speed was reached, limited by arithmetic or memory.";
    fillStrip(byId("profile-strip"), groups, report, whole);
    byId("profile-table").replaceChildren(table(groups, report, whole));
    this.#offer(report, svg);
    byId("profile").hidden = false;
    byId("profile-status").textContent = `${report.model} on ${report.backend}: ${milliseconds(report.run_ms)} ms an inference.`;
  }

  #measuring(yes) {
    byId("measure").setAttribute("aria-disabled", String(yes));
    byId("profile-progress").hidden = !yes;
  }

  #offer(report, svg) {
    for (const link of this.#links) URL.revokeObjectURL(link);
    const json = JSON.stringify(report, null, 1);
    const files = [["profile-json", json, "application/json", "json"], ["profile-svg", svg, "image/svg+xml", "svg"]];
    this.#links = files.map(([id, text, type, suffix]) => {
      const link = URL.createObjectURL(new Blob([text], { type }));
      Object.assign(byId(id), { href: link, download: `${report.model}-${report.backend}-profile.${suffix}` });
      return link;
    });
  }
}
