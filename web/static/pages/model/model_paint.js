// Paints what is in view of a graph (model_graph.js) on its canvas.

import { COLOURS, FONTS } from "./model_drawing.js";

export const TEXTS = 0.32; // zoom from which texts are drawn
const NAMES = ["--card", "--ink", "--quiet", "--accent", "--bad", "--mild", "--good"];

/** What the style sheet's names mean now, for a canvas, which knows none of them. */
export function palette(probe) {
  const read = (style) => {
    probe.style.color = style;
    return getComputedStyle(probe).color;
  };
  const found = Object.fromEntries(NAMES.map((name) => [name.slice(2), read(`var(${name})`)]));
  found.ops = Array.from({ length: COLOURS }, (_, at) => {
    probe.className = `colour-${at}`;
    return read("var(--colour)");
  });
  return found;
}

/**
 * Paints a drawing. `view` is the graph's point in the canvas' middle and the zoom; `state` has the box that is
 * `selected`, those `found` by a search, the `heat` of each and its `marks`.
 */
export function paint(canvas, drawing, { x, y, zoom }, colours, state) {
  const { clientWidth: width, clientHeight: height } = canvas;
  const scale = devicePixelRatio || 1;
  const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  context.setTransform(scale * zoom, 0, 0, scale * zoom, scale * (width / 2 - x * zoom), scale * (height / 2 - y * zoom));
  const [across, down] = [width / 2 / zoom, height / 2 / zoom];
  paintEdges(context, drawing, { top: y - down, bottom: y + down, zoom }, colours, state);
  context.textAlign = "center";
  drawing.boxes.forEach((box, at) => {
    const inside = Math.abs(box.x - x) < across + box.width / 2 && Math.abs(box.y - y) < down + box.height / 2;
    if (inside) paintBox(context, box, at, zoom, colours, state);
  });
  context.globalAlpha = 1;
}

function paintEdges(context, { boxes, edges, bends }, { top, bottom, zoom }, colours, { selected }) {
  edges.forEach(([from, to], at) => {
    const [a, b, bent] = [boxes[from], boxes[to], bends[at]];
    if (Math.min(a.y, b.y) > bottom || Math.max(a.y, b.y) < top) return;
    const own = from === selected || to === selected;
    if (!bent && !own && zoom < TEXTS / 2) return; // far ones would be all that is seen
    const points = bent ?? [a.x, a.y + a.height / 2, b.x, b.y - b.height / 2];
    context.strokeStyle = context.fillStyle = own ? colours.accent : colours.quiet;
    context.globalAlpha = own ? 1 : bent ? 0.6 : 0.3;
    context.lineWidth = (own ? 2 : 1.1) / Math.max(zoom, 0.35);
    context.setLineDash(bent ? [] : [6, 5]);
    context.beginPath();
    context.moveTo(points[0], points[1]);
    (bent ? bend : reachFar)(context, points);
    context.stroke();
    if (zoom > TEXTS) arrow(context, points);
  });
  context.setLineDash([]);
}

/** A line through points, rounded where it bends. */
function bend(context, points) {
  const last = points.length - 2;
  for (let at = 2; at < last; at += 2) {
    const [x, y, nextX, nextY] = points.slice(at, at + 4);
    if (at + 2 === last) context.quadraticCurveTo(x, y, nextX, nextY);
    else context.quadraticCurveTo(x, y, (x + nextX) / 2, (y + nextY) / 2);
  }
  if (last === 2) context.lineTo(points[2], points[3]);
}

/** The two control points and the end of a line past many layers, beside them. */
export function farLine(x0, y0, x1, y1) {
  const side = Math.min(260, 60 + Math.abs(y1 - y0) * 0.12);
  return [x0 + side, y0 + 40, x1 + side, y1 - 40, x1, y1];
}

function reachFar(context, points) {
  context.bezierCurveTo(...farLine(...points));
}

function arrow(context, points) {
  const [x, y] = points.slice(-2);
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x - 4, y - 7);
  context.lineTo(x + 4, y - 7);
  context.fill();
}

function paintBox(context, box, at, zoom, colours, { selected, found, heat, marks }) {
  const [left, top] = [box.x - box.width / 2, box.y - box.height / 2];
  const solid = found && !found.has(at) ? 0.22 : 1;
  const own = colours.ops[box.colour] ?? colours.quiet;
  const mark = { refused: colours.bad, removed: colours.bad, differs: colours.mild, added: colours.good }[marks.get(at)];
  context.beginPath();
  context.roundRect(left, top, box.width, box.height, box.kind === "op" ? 7 : box.height / 2);
  context.globalAlpha = solid;
  context.fillStyle = colours.card;
  context.fill();
  if (box.kind === "op") {
    context.globalAlpha = solid * (heat ? 0.75 * (heat.get(at) ?? 0) : 0.17);
    context.fillStyle = heat ? colours.bad : own;
    context.fill();
  }
  context.globalAlpha = solid;
  context.strokeStyle = at === selected ? colours.accent : mark ?? own;
  context.lineWidth = at === selected || mark ? 3 : 1.2;
  context.stroke();
  if (zoom < TEXTS) return;
  context.fillStyle = box.kind === "op" ? colours.ink : colours.quiet;
  context.font = box.kind === "op" ? FONTS.title : FONTS.line;
  context.fillText(box.title, box.x, box.kind === "op" ? box.y - 3 : box.y + 4);
  if (!box.line) return;
  context.font = FONTS.line;
  context.fillStyle = heat ? colours.ink : colours.quiet;
  context.fillText(box.line, box.x, box.y + 13);
}
