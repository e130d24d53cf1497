// Results of the kind "detections": boxes with scores, names and points (webinfer/tasks/base.py, ResultSchema).

import { COLOUR, drawPoint, EDGE, strokeEdged } from "../ui/overlay.js";

const POINT = "#ffd447";

/** Draws detections over the picture of a view (overlay.js). */
export function draw(view, found) {
  const { context, x, y, scale, unit, mirrored } = view;
  for (const [i, { box, score, category, keypoints = {} }] of found.entries()) {
    const edge = x(mirrored ? box.left + box.width : box.left);
    drawBox(context, edge, y(box.top), box.width * scale, box.height * scale, unit);
    const radius = Math.max(2.5 * unit, Math.min(box.width * scale * 0.024, 6 * unit));
    for (const [px, py] of Object.values(keypoints)) drawPoint(context, x(px), y(py), radius, POINT, EDGE, 1.25 * unit);
    const number = found.length > 1 ? i + 1 : ""; // as in the table
    drawLabel(view, `${number} ${category?.label ?? ""} ${Math.round(score * 100)} %`.trim().replace("  ", " "), edge, y(box.top));
  }
}

function drawBox(context, left, top, width, height, unit) {
  const path = new Path2D();
  path.roundRect(left, top, width, height, Math.min(8 * unit, width / 8));
  strokeEdged(context, path, COLOUR, 2.5 * unit, 5 * unit);
}

function drawLabel({ context, width, unit }, text, left, top) {
  context.font = `600 ${13 * unit}px system-ui, sans-serif`;
  const [across, down] = [context.measureText(text).width + 12 * unit, 20 * unit];
  const x = Math.min(Math.max(0, left), width - across);
  const y = top >= down + 4 * unit ? top - down - 4 * unit : top + 4 * unit; // inside the box where there is no room above it
  context.beginPath();
  context.roundRect(x, y, across, down, 5 * unit);
  context.fillStyle = COLOUR;
  context.fill();
  context.fillStyle = "#06302b";
  context.textBaseline = "middle";
  context.fillText(text, x + 6 * unit, y + down / 2 + 0.5 * unit);
}
