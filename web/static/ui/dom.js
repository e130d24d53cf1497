// Elements, texts and numbers for pages that build a lot of them. Text only, never HTML: names in a model are shown as they are.

export const byId = (id) => document.getElementById(id);

/** An element with attributes (or properties: text, class, on: {event: listener}) and children. */
export function el(tag, { text, class: className, on = {}, ...attributes } = {}, ...children) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== undefined && value !== null) made.setAttribute(name, value);
  }
  for (const [type, listener] of Object.entries(on)) made.addEventListener(type, listener);
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return made;
}

/** The same for SVG. */
export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** A table: names of columns and rows of cells, each text or an element; the first cell of a row names it. */
export function table(caption, columns, rows) {
  const head = el("tr", {}, columns.map((text) => el("th", { scope: "col", text })));
  const body = rows.map((cells) => el("tr", {}, cells.map((cell, at) => {
    const made = el(at ? "td" : "th", at ? {} : { scope: "row" });
    if (at === cells.length - 1 && cells.length < columns.length) made.colSpan = columns.length - at;
    made.append(cell);
    return made;
  })));
  return el("table", {}, el("caption", { class: "unseen", text: caption }), el("thead", {}, head), el("tbody", {}, body));
}

/** A group of which one is chosen: {value: title} by the name of the choice. */
export function choices(legend, name, titles, chosen) {
  const one = ([value, title]) => {
    const input = el("input", { type: "radio", name, value });
    input.checked = value === chosen;
    return el("label", { class: "choice" }, input, el("span", { text: title }));
  };
  return el("fieldset", { class: "choices" }, el("legend", { text: legend }), Object.entries(titles).map(one));
}

/**
 * Sets a text only when it differs: a live region must not repeat itself thirty times a second. Where the page is shown in
 * another language (language.js), its English is compared.
 */
export function say(node, text) {
  const shown = node.firstChild;
  const own = shown && globalThis.englishOf ? globalThis.englishOf(shown) : node.textContent;
  if (own !== text) node.textContent = text;
}

export const counted = (count, word, words = `${word}s`) => `${count.toLocaleString("en")} ${count === 1 ? word : words}`;

const GESTURES = { ILoveYou: "I love you" }; // the one of MediaPipe's names whose words nothing parts

/** A model's name of a class in words, "Open Palm" for Open_Palm. Downloaded files keep the model's own. */
export const labelText = (label) => GESTURES[label] ?? label.replaceAll("_", " ");

/** A share of one in per cent; what would be 0.0 is told as less than can be shown. */
export const shareOf = (part) => (part > 0 && part < 0.0005 ? "< 0.1 %" : `${(100 * part).toFixed(1)} %`);

export const milliseconds = (ms) => `${ms.toFixed(ms < 10 ? 2 : ms < 100 ? 1 : 0)} ms`;

export function bytes(count) {
  const [size, unit] = count < 1e3 ? [count, "bytes"] : count < 1e6 ? [count / 1e3, "kB"] : [count / 1e6, "MB"];
  return `${unit === "bytes" ? size : size.toFixed(size < 10 ? 2 : 1)} ${unit}`;
}

/** A number as short as it can be read. */
export function short(value) {
  if (typeof value === "bigint" || Number.isInteger(value)) return String(value);
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  return size >= 1e5 || size < 1e-4 ? value.toExponential(3) : value.toPrecision(5).replace(/\.?0+$/, "");
}

/** Hands bytes or a text out as a file. */
export function download(name, parts, type = "application/octet-stream") {
  const link = URL.createObjectURL(new Blob(parts, { type }));
  el("a", { href: link, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(link), 10_000);
}
