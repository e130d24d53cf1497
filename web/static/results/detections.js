// Results of the kind "detections": boxes, upright or turned, with scores, names, points and masks (webinfer/tasks/base.py,
// ResultSchema).

import { labelText } from "../ui/dom.js";
import { COLOUR, drawPoint, drawWhole, EDGE, numberColour, strokeEdged } from "../ui/overlay.js";

const POINT = "#ffd447";
const SURE = 0.5; // of a point's score, and of a pixel of a mask
const ALPHA = 130; // of masks
let canvas = null; // used again

/** Draws detections over the picture of a view (overlay.js). */
export function draw(view, found) {
  const { context, x, y, scale, unit, mirrored } = view;
  drawMasks(view, found);
  for (const [i, { box, score, category, keypoints = {}, corners = [] }] of found.entries()) {
    const edge = x(mirrored ? box.left + box.width : box.left);
    if (corners.length) drawCorners(view, corners);
    else drawBox(context, edge, y(box.top), box.width * scale, box.height * scale, unit);
    const radius = Math.max(2.5 * unit, Math.min(box.width * scale * 0.024, 6 * unit));
    for (const [px, py, sure = 1] of Object.values(keypoints)) if (sure >= SURE) drawPoint(context, x(px), y(py), radius, POINT, EDGE, 1.25 * unit);
    const number = found.length > 1 ? i + 1 : ""; // as in the table
    drawLabel(view, `${number} ${labelText(category?.label ?? "")} ${Math.round(score * 100)} %`.trim().replace("  ", " "), edge, y(box.top));
  }
}

/** The masks of all objects in one picture, each in a colour of its own, those of better objects over others. */
function drawMasks(view, found) {
  const masks = found.map(({ mask }) => mask);
  const first = masks.find(Boolean);
  if (!first) return;
  canvas ??= document.createElement("canvas");
  Object.assign(canvas, { width: first.width, height: first.height });
  const image = new ImageData(first.width, first.height);
  const pixels = new Uint32Array(image.data.buffer);
  for (const [i, mask] of [...masks.entries()].reverse()) {
    if (!mask) continue;
    const [red, green, blue] = numberColour(i + 1, found.length);
    const colour = ((ALPHA << 24) | (blue << 16) | (green << 8) | red) >>> 0;
    mask.values.forEach((value, at) => { if (value > SURE) pixels[at] = colour; });
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  drawWhole(view, canvas);
}

function drawCorners({ context, x, y, unit }, corners) {
  const path = new Path2D();
  corners.forEach(([px, py], i) => path[i ? "lineTo" : "moveTo"](x(px), y(py)));
  path.closePath();
  strokeEdged(context, path, COLOUR, 2.5 * unit, 5 * unit);
}

function drawBox(context, left, top, width, height, unit) {
  const path = new Path2D();
  path.roundRect(left, top, width, height, Math.min(8 * unit, width / 8));
  strokeEdged(context, path, COLOUR, 2.5 * unit, 5 * unit);
}

/** Writes a label above a box whose corner is at `left` and `top` of the view. */
export function drawLabel({ context, width, unit }, text, left, top) {
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
