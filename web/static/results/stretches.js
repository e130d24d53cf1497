// Results of the kind "stretches": when something is heard in a recording, over its waveform, and how likely it is all along.

import { labelText } from "../ui/dom.js";
import { fitted, inks, setFont } from "../ui/drawing.js";

const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;
const STEPS = [0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600]; // seconds between marks of the time

/** Draws a recording and its stretches on the paper of a view (overlay.js); `beside` has its peaks and seconds. */
export function draw({ context, width, height, unit }, found, schema, { peaks, seconds, probabilities = [], chunk_s: chunk }) {
  const colours = inks();
  const [axis, top] = [22, 8];
  const low = height - axis;
  const x = (time) => (seconds ? (time / seconds) * width : 0);
  for (const { start, end } of found) {
    context.fillStyle = colours.soft;
    context.fillRect(x(start), 0, Math.max(2, x(end) - x(start)), low);
    context.fillStyle = colours.accent;
    context.fillRect(x(start), 0, Math.max(2, x(end) - x(start)), 4);
  }
  wave(context, peaks, width, top, low, (time) => found.some(({ start, end }) => start <= time && time < end), seconds, colours);
  if (probabilities.length > 1) {
    context.beginPath();
    Array.from(probabilities).forEach((p, i) => context[i ? "lineTo" : "moveTo"](x((i + 0.5) * chunk), low - p * (low - top)));
    context.strokeStyle = colours.quiet;
    context.lineWidth = 1.25 * Math.max(1, unit);
    context.stroke();
  }
  times(context, width, low, axis, seconds, colours);
}

/** The waveform, in the accent's colour where something was found. */
function wave(context, peaks, width, top, low, within, seconds, { accent, quiet, line }) {
  const columns = peaks.length / 2;
  const loudest = Math.max(0.05, Array.from(peaks).reduce((most, value) => Math.max(most, Math.abs(value)), 0));
  const [middle, half] = [(top + low) / 2, ((low - top) / 2 - 2) / loudest];
  context.fillStyle = line;
  context.fillRect(0, middle - 0.5, width, 1);
  for (let column = 0; column < columns; column += 1) {
    context.fillStyle = within(((column + 0.5) / columns) * seconds) ? accent : quiet;
    const [down, up] = [peaks[2 * column] * half, peaks[2 * column + 1] * half];
    context.fillRect((column * width) / columns, middle - up, Math.max(1, (width / columns) * 0.8), Math.max(1, up - down));
  }
}

function times(context, width, low, axis, seconds, { line, quiet }) {
  const step = STEPS.find((one) => (one / seconds) * width > 56) ?? 1200;
  setFont(context, 12);
  context.fillStyle = line;
  context.fillRect(0, low, width, 1);
  for (let at = step; at < seconds; at += step) {
    const x = (at / seconds) * width;
    context.fillStyle = line;
    context.fillRect(x, low, 1, 5);
    context.fillStyle = quiet;
    const text = step < 1 ? `${at.toFixed(1)} s` : clock(at);
    context.fillText(fitted(context, text, 50), Math.min(x + 4, width - 40), low + axis / 2 + 2);
  }
}

/** A stretch in words. */
export function describe({ start, end, score, label }) {
  const text = (value) => `${value.toFixed(2)} s`;
  return { ...(label && { Sound: labelText(label) }), From: text(start), To: text(end), Duration: text(end - start), Score: { text: `${(100 * score).toFixed(1)} %`, part: score } };
}
