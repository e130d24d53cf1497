// Results of the kind "types": what kind of file some bytes are, beside the first of them.

import { labelText, shareOf } from "../ui/dom.js";
import { drawBar, fitted, inks, setFont } from "../ui/drawing.js";

const MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace";
const LINE = 20; // pixels of the page
const ROW = 44;
const WIDE = 620;
const SPLIT = 0.58; // of the width, for the bytes
const named = ({ description, label }) => description || labelText(label);
const readable = (byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : "·");

/** Draws the first bytes of a file and its likely kinds on the paper of a view (overlay.js); `beside` has name, bytes, head. */
export function draw({ context, width, height }, found, schema, { name = "", bytes: size = 0, head = [] }) {
  const wide = width >= WIDE;
  const bars = found.length ? Math.min(found.length, 5) * ROW + 30 : 0;
  const paper = wide ? { right: width * SPLIT, low: height } : { right: width, low: Math.max(5 * LINE, height - bars) };
  dump(context, Array.from(head), 20, paper, name, size);
  kinds(context, found, wide ? { left: width * SPLIT + 10, top: 0, right: width - 20, low: height } : { left: 20, top: paper.low, right: width - 20, low: height });
}

/** Bytes in hexadecimal and as letters, as many as there is room for. */
function dump(context, head, left, { right, low }, name, size) {
  const colours = inks();
  setFont(context, 15, 650);
  context.fillStyle = colours.ink;
  const bytes = `${size.toLocaleString("en")} bytes`;
  context.fillText(fitted(context, name, right - left - 120), left, 26);
  setFont(context, 13);
  context.fillStyle = colours.quiet;
  context.fillText(bytes, right - 12 - context.measureText(bytes).width, 26);
  setFont(context, 13, 400, MONO);
  const letter = context.measureText("0").width;
  const across = [16, 12, 8, 6, 4].find((count) => (4 * count + 1) * letter < right - left - 8) ?? 4;
  for (let at = 0, y = 54; at < head.length && y < low - 8; at += across, y += LINE) {
    head.slice(at, at + across).forEach((byte, i) => {
      context.fillStyle = colours.quiet;
      context.fillText(byte.toString(16).padStart(2, "0"), left + 3 * i * letter, y);
      context.fillStyle = colours.ink;
      context.fillText(readable(byte), left + (3 * across + 1 + i) * letter, y);
    });
  }
}

/** The likely kinds as bars, the one that is told in larger letters. */
function kinds(context, found, { left, top, right, low }) {
  const colours = inks();
  found.slice(0, Math.floor((low - top - 10) / ROW)).forEach((one, i) => {
    const y = top + 26 + i * ROW;
    const share = shareOf(one.score);
    setFont(context, i ? 14 : 16, i ? 500 : 700);
    context.fillStyle = colours.ink;
    context.fillText(fitted(context, named(one), right - left - 70), left, y);
    setFont(context, 14, 650);
    context.fillStyle = colours.accent;
    context.fillText(share, right - context.measureText(share).width, y);
    drawBar(context, left, y + 12, right - left, 7, one.score, colours);
  });
}

/** A kind in words; the first is the one that is told, which is not the model's own where that is not certain enough. */
export function describe({ label, description, mime_type: mime, score, guess }, place) {
  const unsure = !place && guess && guess !== label ? ` (${labelText(guess)} was not certain enough)` : "";
  return { Type: `${description || labelText(label)}${unsure}`, "MIME type": mime || "–", Score: { text: shareOf(score), part: score } };
}
