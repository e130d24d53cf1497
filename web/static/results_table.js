// What was found as a table: a row for each thing, a column for each field that its task declares.

import { el, shareOf } from "./dom.js";

const named = (name) => name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " ");

const TEXTS = { // by the field's kind
  box: ({ left, top, width, height }) => `${Math.round(width)} × ${Math.round(height)} at ${Math.round(left)}, ${Math.round(top)}`,
  points: (points) => `${Object.keys(points).length}`,
  landmarks: (part) => (part ? `${(part.landmarks ?? part).xyz.length / 3}` : "–"),
  text: (text) => text || "–",
  category: ({ label, index }) => label || `class ${index}`,
  number: (number, unit) => (unit === "0..1" ? shareOf(number) : `${Number(number.toFixed(3))} ${unit}`),
};

function cell(value, { kind, unit }) {
  const made = el("td", { text: (TEXTS[kind] ?? String)(value, unit), class: kind === "number" ? "score" : "" });
  return kind === "number" && unit === "0..1" ? barred(made, value) : made;
}

/** A cell with a bar below its text. */
function barred(made, part) {
  const bar = el("span", { class: "bar" });
  bar.style.setProperty("--part", `${(100 * Math.min(1, Math.max(0, part))).toFixed(1)}%`);
  made.append(bar);
  return made;
}

/**
 * Fills a table with what was found; `describe` of the results' kind may say in its own words {column: text} of a thing,
 * by its place and what was told `beside`: as text, or as {text, part} with a bar.
 */
export function fillTable(table, found, schema, describe, beside) {
  const fields = schema.fields.filter(({ kind }) => !describe && kind !== "mask");
  const described = describe ? found.map((one, i) => describe(one, i, beside)) : [];
  const columns = describe ? Object.keys(described[0] ?? {}) : fields.map(({ name }) => named(name));
  const head = [schema.label, ...columns].map((text) => el("th", { scope: "col", text }));
  const rows = found.map((one, i) => {
    const cells = describe ? Object.values(described[i]).map((one) => (one.text === undefined ? el("td", { text: one }) : barred(el("td", { text: one.text, class: "score" }), one.part))) : fields.map((field) => cell(one[field.name], field));
    return el("tr", {}, el("th", { scope: "row", text: `${schema.label} ${i + 1}` }), cells);
  });
  table.replaceChildren(el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows));
  table.hidden = !found.length;
}
