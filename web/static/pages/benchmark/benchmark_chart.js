// The chart of a result, and its table. Bars are medians, lines across their ends the middle half of all runs; another's
// bars are hatched. Each model has a scale of its own: what differs by a hundred times fits no common one.

import { el, milliseconds, short, svg, table } from "../../ui/dom.js";
import { nameOf } from "../../ui/model_names.js";

const BAR = 16;
const GAP = 5;
const HEAD = 24;
const LETTER = 8.2; // pixels, the broadest on average
const BOLD_LETTER = 8; // the same, of a heading
const COLOURS = 7; // of the style sheet


/** Rows by model, own ones and another's, in the order of the first that names a model. */
export function grouped(own, other) {
  const groups = new Map();
  const add = (rows, whose) => {
    for (const row of rows ?? []) {
      if (!groups.has(row.model)) groups.set(row.model, []);
      groups.get(row.model).push({ ...row, whose });
    }
  };
  add(own?.rows, "own");
  add(other?.rows, "other");
  for (const rows of groups.values()) rows.sort((a, b) => a.backend.localeCompare(b.backend));
  return groups;
}

/** The chart in this many pixels; `titles` of backends, in the order of their colours. A row may have a `title` of its own. */
export function chart(own, other, titles, width) {
  const names = Object.keys(titles);
  const groups = grouped(own, other);
  const label = Math.max(own ? 72 : 120, ...(own?.rows ?? []).map(({ title, backend }) => Math.min(LETTER * (title ?? titles[backend] ?? backend).length + 16, width / 2.5)));
  const whole = width - label - 90;
  const made = svg("svg", { width, role: "img", class: "bars" });
  made.append(svg("defs", {}, svg("pattern", { id: "hatch", width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, svg("rect", { width: 2.4, height: 5, class: "hatch" }))));
  let y = 0;
  const words = [];
  for (const [model, rows] of groups) {
    const longest = Math.max(...rows.map(({ high, median }) => high ?? median ?? 0), Number.MIN_VALUE);
    made.append(text(0, y + 15, headed(model, width), "model"));
    y += HEAD;
    for (const row of rows) {
      const backend = row.title ?? titles[row.backend] ?? row.backend;
      const title = row.whose === "other" ? `${backend}, other’s` : backend;
      const below = row.whose === "other" && rows.some((one) => one.whose === "own" && one.backend === row.backend);
      made.append(text(label - 8, y + 12.5, below ? "other’s" : clipped(title, label), "label"));
      if (row.error) made.append(text(label, y + 12.5, "cannot run", "value"));
      else made.append(...bar(row, label, y, whole / longest, Math.max(names.indexOf(row.backend), 0) % COLOURS));
      words.push(`${nameOf(model)} on ${title}: ${row.error ? "cannot run" : milliseconds(row.median)}`);
      y += BAR + GAP;
    }
    y += 8;
  }
  made.setAttribute("height", y);
  made.setAttribute("aria-label", `Medians. ${words.join("; ")}`);
  return made;
}

/** A model's name, without its task where both do not fit into so many pixels. */
function headed(model, width) {
  const name = nameOf(model);
  return BOLD_LETTER * name.length > width ? name.slice(name.indexOf(": ") + 1).trim() : name;
}

/** A title that fits into so many pixels. */
function clipped(title, width) {
  const most = Math.floor((width - 8) / LETTER);
  return title.length > most ? `${title.slice(0, most - 1)}…` : title;
}

function text(x, y, content, name) {
  const made = svg("text", { x, y, class: name });
  made.textContent = content;
  return made;
}

function bar({ median, low, high, whose }, x, y, scale, colour) {
  const length = Math.max(median * scale, 1);
  const middle = y + BAR / 2;
  const parts = [svg("rect", { x, y, width: length, height: BAR, rx: 3, class: `bar-of colour-${colour}` })];
  if (whose === "other") parts.push(svg("rect", { x, y, width: length, height: BAR, rx: 3, fill: "url(#hatch)" }));
  const [from, to] = [x + low * scale, x + high * scale];
  parts.push(svg("path", { d: `M${from} ${middle}H${to}M${from} ${middle - 4}v8M${to} ${middle - 4}v8`, class: "spread" }));
  return [...parts, text(Math.max(x + length, to) + 6, y + 12.5, milliseconds(median), "value")];
}

/** All numbers as a table; with another's result its median, and how many times as fast this device is. */
export function numbers(own, other, titles) {
  const beside = new Map((other?.rows ?? []).map((row) => [`${row.model} ${row.backend}`, row]));
  const columns = ["Model", "Backend", "Median", "Middle half", "Minimum", "Runs", "First run", "Compiled in", ...(other ? ["Other’s median", "Other ÷ own"] : [])];
  const rows = (own?.rows ?? []).map((row) => {
    const theirs = beside.get(`${row.model} ${row.backend}`);
    const title = titles[row.backend] ?? row.backend;
    if (row.error) return [nameOf(row.model), title, el("span", { class: "quiet", text: row.error })];
    const figures = [milliseconds(row.median), `${short(Number(row.low.toPrecision(3)))} to ${short(Number(row.high.toPrecision(3)))}`, milliseconds(row.least), String(row.runs), milliseconds(row.first), milliseconds(row.compile)];
    const ratio = theirs && !theirs.error ? `${(theirs.median / row.median).toFixed(2)} ×` : "–";
    const more = other ? [theirs && !theirs.error ? milliseconds(theirs.median) : "–", ratio] : [];
    return [nameOf(row.model), title, ...figures, ...more];
  });
  return table("Times of each model on each backend", columns, rows);
}
