// Results of the kind "landmarks": points of things, and the lines between them that the task declares
// (webinfer/tasks/base.py, ResultSchema: fields of the kind "landmarks").

import { drawLabel } from "./detections.js";
import { labelText } from "../ui/dom.js";
import { COLOUR, drawPoint, strokeEdged } from "../ui/overlay.js";

const COLOURS = [COLOUR, "#ffb454", "#8ab4ff", "#ff8ec4"]; // of lines, by the field
const POINT = "#ffffff";
const MANY = 100; // points from which on they are specks
const SEEN = 0.5; // visibility from which on a point is drawn

/** Draws landmarks over the picture of a view (overlay.js). */
export function draw(view, found, schema) {
  const fields = schema.fields.filter(({ kind }) => kind === "landmarks");
  for (const one of found) {
    fields.forEach(({ name, lines }, i) => {
      const points = one[name]?.landmarks ?? one[name]; // of a part that is a thing of its own
      if (points) drawField(view, points, lines, COLOURS[i % COLOURS.length]);
    });
    if (one.gesture) {
      const { left, top, width } = one.box;
      drawLabel(view, labelText(one.gesture), view.x(view.mirrored ? left + width : left), view.y(top));
    }
  }
}

function drawField(view, { xyz, confidences }, lines, colour) {
  const { context, x, y, unit } = view;
  const count = xyz.length / 3;
  const at = Array.from({ length: count }, (_, i) => [x(xyz[3 * i]), y(xyz[3 * i + 1])]);
  const seen = (i) => !confidences?.length || confidences[2 * i] >= SEEN;
  const spread = extent(at);
  const thick = unit * Math.min(1, Math.max(0.35, spread / 220));
  if (count >= MANY) specks(context, at, Math.max(0.8, spread / 200), colour);
  context.lineJoin = context.lineCap = "round";
  const wide = thick * (count >= MANY ? 0.7 : 1);
  strokeEdged(context, traced(at, lines, seen), colour, 2.6 * wide, 5 * wide);
  if (count >= MANY) return;
  for (let i = 0; i < count; i += 1) if (seen(i)) drawPoint(context, ...at[i], 3.6 * thick, POINT, colour, 1.8 * thick);
}

/** The longer side of the box around some points. */
function extent(at) {
  const spans = [0, 1].map((axis) => {
    const values = at.map((point) => point[axis]);
    return Math.max(...values) - Math.min(...values);
  });
  return Math.max(...spans);
}

/** The lines between points that are seen. */
function traced(at, lines, seen) {
  const path = new Path2D();
  for (const chain of lines) {
    chain.forEach((index, i) => {
      const joined = i > 0 && seen(index) && seen(chain[i - 1]);
      path[joined ? "lineTo" : "moveTo"](...at[index]);
    });
  }
  return path;
}

function specks(context, at, radius, colour) {
  const path = new Path2D();
  for (const [px, py] of at) {
    path.moveTo(px + radius, py);
    path.arc(px, py, radius, 0, 2 * Math.PI);
  }
  context.fillStyle = colour;
  context.globalAlpha = 0.85;
  context.fill(path);
  context.globalAlpha = 1;
}
