// What was found as a table: a row for each thing, a column for each field that its task declares.

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

const named = (name) => name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " ");

const TEXTS = { // by the field's kind
  box: ({ left, top, width, height }) => `${Math.round(width)} × ${Math.round(height)} at ${Math.round(left)}, ${Math.round(top)}`,
  points: (points) => `${Object.keys(points).length}`,
  landmarks: (part) => (part ? `${(part.landmarks ?? part).xyz.length / 3}` : "–"),
  text: (text) => text || "–",
  category: ({ label, index }) => label || `class ${index}`,
  number: (number, unit) => (unit === "0..1" ? `${(100 * number).toFixed(1)} %` : `${Number(number.toFixed(3))} ${unit}`),
};

function cell(value, { kind, unit }) {
  const made = element("td", (TEXTS[kind] ?? String)(value, unit), kind === "number" ? "score" : undefined);
  if (kind === "number" && unit === "0..1") {
    const bar = element("span", undefined, "bar");
    bar.style.setProperty("--part", `${(100 * Math.min(1, Math.max(0, value))).toFixed(1)}%`);
    made.append(bar);
  }
  return made;
}

/** Fills a table with what was found; `describe` of the results' kind may say in its own words {column: text} of a thing. */
export function fillTable(table, found, schema, describe) {
  const fields = schema.fields.filter(({ kind }) => !describe && kind !== "mask");
  const described = describe ? found.map(describe) : [];
  const columns = describe ? Object.keys(described[0] ?? {}) : fields.map(({ name }) => named(name));
  const head = element("tr");
  for (const name of [schema.label, ...columns]) head.append(Object.assign(element("th", name), { scope: "col" }));
  const rows = found.map((one, i) => {
    const row = element("tr");
    row.append(Object.assign(element("th", `${schema.label} ${i + 1}`), { scope: "row" }));
    if (describe) for (const text of Object.values(described[i])) row.append(element("td", text));
    else row.append(...fields.map((field) => cell(one[field.name], field)));
    return row;
  });
  const [top, body] = [element("thead"), element("tbody")];
  top.append(head);
  body.append(...rows);
  table.replaceChildren(top, body);
  table.hidden = !found.length;
}
