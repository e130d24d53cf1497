// Results of the kind "vectors": what texts mean, shown as how alike the first is to each of the others; or what a picture
// looks like, shown as how alike it is to those that the page showed before.

import { drawBar, fitted, inks, setFont } from "../ui/drawing.js";

const ROW = 52; // pixels of the page
const TEXT = 15;
const MOST = 5; // pictures that are remembered
const SAME = 0.98; // similarity from which on a picture is the one before
const seen = []; // {values, thumbnail} of pictures, the newest first

/** Draws vectors of texts, with `texts` and `similarities` in `beside`, or that of the picture of a view (overlay.js). */
export function draw(view, found, schema, beside) {
  if (view.medium) drawPicture(view, found[0].values);
  else drawTexts(view, found, beside);
}

const cosine = (one, other) => one.reduce((sum, value, i) => sum + value * other[i], 0); // they have length 1

/** The pictures that were shown before, at the lower edge, the most alike first. */
function drawPicture({ context, width, height, left, scale, picture, medium, unit }, values) {
  const others = seen.map((one) => ({ ...one, alike: one.values.length === values.length ? cosine(values, one.values) : NaN }));
  const rows = others.filter(({ alike }) => alike < SAME).sort((a, b) => b.alike - a.alike);
  if (others.every(({ alike }) => !(alike >= SAME))) {
    const thumbnail = document.createElement("canvas");
    [thumbnail.width, thumbnail.height] = [160, 120];
    const fit = Math.max(thumbnail.width / picture.width, thumbnail.height / picture.height);
    thumbnail.getContext("2d").drawImage(medium, 0, 0, picture.width * fit, picture.height * fit);
    seen.unshift({ values, thumbnail });
    seen.length = Math.min(seen.length, MOST + 1);
  }
  const [across, gap] = [Math.min(110 * unit, (Math.min(width, picture.width * scale) - 24) / MOST - 6), 6];
  const down = across * 0.75;
  const begin = Math.max(0, left) + 12;
  setFont(context, 13 * unit, 650);
  rows.slice(0, MOST).forEach(({ thumbnail, alike }, i) => {
    const [x, y] = [begin + i * (across + gap), height - down - 34 * unit];
    context.fillStyle = "rgb(6 16 20 / 78%)";
    context.fillRect(x - 3, y - 3, across + 6, down + 28 * unit);
    context.drawImage(thumbnail, x, y, across, down);
    context.fillStyle = "#ffffff";
    context.fillText(`${Math.round(100 * alike)} % similar`, x + 2, y + down + 13 * unit, across - 4);
  });
}

/** Draws how alike texts are on the paper of a view (overlay.js), the most alike first. */
function drawTexts({ context, width, height }, found, { texts = [], similarities = [] }) {
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
export function describe({ text, pieces, values }, place, { similarities = [] } = {}) {
  if (pieces === undefined) return { Vector: `${values.length} numbers`, Begins: Array.from(values.slice(0, 4), (value) => value.toFixed(3)).join(", ") };
  const value = similarities[place - 1];
  const alike = value === undefined ? "–" : { text: value.toFixed(2), part: value };
  return { Text: text || "–", Similarity: place ? alike : "reference", Tokens: String(pieces) };
}
