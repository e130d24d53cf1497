// Results of the kind "texts": lines of text where they stand in a picture, as corners around each.

import { shareOf } from "../ui/dom.js";
import { COLOUR, strokeEdged } from "../ui/overlay.js";

/** Draws lines of text over the picture of a view (overlay.js). */
export function draw({ context, x, y, unit }, found) {
  const path = new Path2D();
  for (const { quad } of found) {
    Object.values(quad).forEach(([px, py], i) => path[i ? "lineTo" : "moveTo"](x(px), y(py)));
    path.closePath();
  }
  context.fillStyle = COLOUR;
  context.globalAlpha = 0.18;
  context.fill(path);
  context.globalAlpha = 1;
  context.lineJoin = "round";
  strokeEdged(context, path, COLOUR, 1.6 * unit, 3.2 * unit);
}

/** A line of text in words. */
export function describe({ text, score }) {
  return { Text: text, Score: { text: shareOf(score), part: score } };
}
