// What was found as comma-separated values (RFC 4180): a row for each thing, a column for each number or text in it.

const LONGEST = 8; // values of a list that become columns; longer ones (masks, meshes, embeddings) stay in the JSON

/** The numbers and texts of a thing by the path to them: {"box.left": 12, "keypoints.0.x": 40}. */
function flat(value, longest, path = "", into = {}) {
  if (value === null || value === undefined || value instanceof ImageBitmap) return into;
  if (typeof value !== "object") return Object.assign(into, { [path]: value });
  const entries = ArrayBuffer.isView(value) ? Object.entries(Array.from(value.length > longest ? [] : value)) : Object.entries(value);
  if (Array.isArray(value) && value.length > longest) return into;
  for (const [name, inner] of entries) flat(inner, longest, path ? `${path}.${name}` : name, into);
  return into;
}

/** Whether it is a picture's vector: nothing else is known of it. */
const isVector = (one) => "values" in one && !("width" in one) && !("text" in one);

const quoted = (value) => {
  const text = String(value ?? "");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

/** The table of what was found; things that lack a value have an empty cell. */
export function asCsv(found) {
  const rows = found.map((one) => flat(one, isVector(one) ? Infinity : LONGEST));
  const columns = [...new Set(rows.flatMap(Object.keys))];
  return [columns, ...rows.map((row) => columns.map((name) => row[name]))].map((cells) => `${cells.map(quoted).join(",")}\r\n`).join("");
}
