// Results of the kind "vectors": what texts mean, shown as how alike the first is to each of the others.

import { drawBar, fitted, inks, setFont } from "../ui/drawing.js";

const ROW = 52; // pixels of the page
const TEXT = 15;

/** Draws how alike texts are on the paper of a view (overlay.js), the most alike first; `beside` has `texts` and `similarities`. */
export function draw({ context, width, height }, found, schema, { texts = [], similarities = [] }) {
  const colours = inks();
  const [first, ...others] = found.length ? found.map(({ text }) => text) : texts;
  const [left, across] = [20, width - 40];
  setFont(context, TEXT + 1, 650);
  context.fillStyle = colours.ink;
  context.fillText(fitted(context, first ? `“${first}”` : "Write a sentence", across), left, 26);
  const rows = others.map((text, i) => ({ text, value: similarities[i] })).sort((a, b) => (b.value ?? 0) - (a.value ?? 0));
  const room = Math.max(1, Math.floor((height - 48) / ROW));
  rows.slice(0, rows.length > room ? room - 1 : room).forEach(({ text, value }, i) => {
    const y = 62 + i * ROW;
    const number = value === undefined ? "" : value.toFixed(2);
    setFont(context, TEXT);
    context.fillStyle = colours.ink;
    context.fillText(fitted(context, text, across - 56), left, y);
    setFont(context, TEXT, 650);
    context.fillStyle = colours.accent;
    context.fillText(number, left + across - context.measureText(number).width, y);
    drawBar(context, left, y + 14, across, 8, value ?? 0, colours);
  });
  if (rows.length <= room) return;
  setFont(context, TEXT - 1);
  context.fillStyle = colours.quiet;
  context.fillText(`and ${rows.length - room + 1} more in the table`, left, 62 + (room - 1) * ROW);
}

/** A text in words, and how alike the first one is to it. */
export function describe({ text, pieces }, place, { similarities = [] } = {}) {
  const value = similarities[place - 1];
  const alike = value === undefined ? "–" : { text: value.toFixed(2), part: value };
  return { Text: text || "–", Similarity: place ? alike : "compared with these", Pieces: String(pieces) };
}
