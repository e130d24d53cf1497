// What was found as a table: a row for each thing, a column for each field that its task declares.

import { el, labelText, shareOf } from "../../ui/dom.js";

const titled = (name) => name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " ");

const TEXTS = { // by the field's kind
  box: ({ left, top, width, height }) => `${Math.round(width)} × ${Math.round(height)} at ${Math.round(left)}, ${Math.round(top)}`,
  points: (points) => `${Object.keys(points).length}`,
  landmarks: (part) => (part ? `${(part.landmarks ?? part).xyz.length / 3}` : "–"),
  text: (text) => text || "–",
  label: (label) => labelText(label) || "–",
  category: ({ label, index }) => labelText(label) || `class ${index}`,
  number: (number, unit) => (unit === "0..1" ? shareOf(number) : `${Number(number.toFixed(3))} ${unit}`),
};
const NAMING = ["category", "label", "text"]; // kinds of fields that say what a thing is

function cell(value, { kind, unit }) {
  const made = el("td", { text: (TEXTS[kind] ?? String)(value, unit), class: { number: "score", box: "place" }[kind] ?? "" });
  return kind === "number" && unit === "0..1" ? barred(made, value) : made;
}

/** A cell with a bar below its text. */
function barred(made, part) {
  const bar = el("span", { class: "bar" });
  bar.style.setProperty("--part", `${(100 * Math.min(1, Math.max(0, part))).toFixed(1)}%`);
  made.append(bar);
  return made;
}

/** A row in its drawer's own words: the first of them names it. */
function words(told) {
  return Object.entries(told).map(([column, one], i) => {
    const made = el(i ? "td" : "th", { ...(i ? {} : { scope: "row" }), text: one.text ?? one, class: one.text === undefined ? "" : "score" });
    return { column, made: one.text === undefined ? made : barred(made, one.part) };
  });
}

/** A row of a thing's fields, named by what it is, else by its number, as in the picture. */
function numbers(one, { label, fields }, number) {
  const named = fields.find(({ kind }) => NAMING.includes(kind));
  const kind = named && TEXTS[named.kind](one[named.name]);
  const parts = fields.filter((field) => field.kind === "landmarks");
  const alike = parts.length === 1 && parts[0]; // as many in each row, by the model
  const rest = fields.filter((field) => field !== named && field !== alike && field.kind !== "mask");
  const first = { column: label, made: el("th", { scope: "row", text: kind ?? String(number) }) };
  return [first, ...rest.map((field) => ({ column: titled(field.name), made: cell(one[field.name], field) }))];
}

/**
 * Fills a table with what was found; `describe` of the results' kind may say in its own words {column: text} of a thing,
 * by its place and what was told `beside`: as text, or as {text, part} with a bar.
 */
export function fillTable(table, found, schema, describe, beside) {
  const rows = found.map((one, i) => (describe ? words(describe(one, i, beside)) : numbers(one, schema, i + 1)));
  const head = (rows[0] ?? []).map(({ column }) => el("th", { scope: "col", text: column }));
  const lines = rows.map((row) => el("tr", {}, row.map(({ made }) => made)));
  table.replaceChildren(el("thead", {}, el("tr", {}, head)), el("tbody", {}, lines));
  table.hidden = !found.length;
}
