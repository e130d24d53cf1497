// Results of the kind "categories": what a picture shows, as bars at its lower edge, or what a text is, as bars below it;
// the best on top.

import { labelText, shareOf } from "../ui/dom.js";
import { drawBar, fitted, inks, setFont } from "../ui/drawing.js";
import { COLOUR } from "../ui/overlay.js";

const MOST = 3; // bars over the picture; the table has all

/** Draws categories over the picture of a view (overlay.js). */
export function draw(view, found, schema, beside) {
  if (typeof beside?.text === "string") return drawText(view, found, beside.text);
  const { context, scale, picture, unit } = view;
  const [left, right] = [Math.max(0, view.left), Math.min(view.width, view.left + picture.width * scale)]; // what is seen of it
  const low = Math.min(view.height, view.top + picture.height * scale);
  const [line, gap] = [24 * unit, 4 * unit];
  const shown = found.slice(0, MOST);
  context.font = `600 ${13 * unit}px system-ui, sans-serif`;
  context.textBaseline = "middle";
  shown.forEach(({ label, index, score }, i) => {
    const y = low - (shown.length - i) * (line + gap) - gap;
    const across = Math.max(0, right - left - 2 * gap);
    context.fillStyle = "rgb(6 16 20 / 72%)";
    context.fillRect(left + gap, y, across, line);
    context.fillStyle = COLOUR;
    context.globalAlpha = 0.55;
    context.fillRect(left + gap, y, across * Math.min(1, Math.max(0, score)), line);
    context.globalAlpha = 1;
    context.fillStyle = "#ffffff";
    context.fillText(`${(label && labelText(label)) || `class ${index}`}  ${shareOf(score)}`, left + gap + 8 * unit, y + line / 2);
  });
}

const ROW = 52; // pixels of the page

function drawText({ context, width, height }, found, text) {
  const colours = inks();
  const [left, across] = [20, width - 40];
  setFont(context, 16, 650);
  context.fillStyle = colours.ink;
  context.fillText(fitted(context, text ? `“${text}”` : "Write a text", across), left, 26);
  found.slice(0, Math.max(1, Math.floor((height - 48) / ROW))).forEach(({ label, index, score }, i) => {
    const y = 62 + i * ROW;
    setFont(context, 15);
    context.fillStyle = colours.ink;
    context.fillText(fitted(context, (label && labelText(label)) || `class ${index}`, across - 72), left, y);
    setFont(context, 15, 650);
    context.fillStyle = colours.accent;
    const share = shareOf(score);
    context.fillText(share, left + across - context.measureText(share).width, y);
    drawBar(context, left, y + 14, across, 8, score, colours);
  });
}
