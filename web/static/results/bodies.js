// Results of the kind "bodies": who is in a picture, pixel by pixel, and which part of the body each pixel shows.

import { choices, labelText } from "../ui/dom.js";
import { drawWhole, EDGE, numberColour } from "../ui/overlay.js";

const SHOWN = { parts: "Parts", people: "People" };
const ALPHA = 165;
const LEAST = 0.008; // of the picture: smaller parts have no name in it
const CELLS = 128; // of a picture's side, in which parts are told apart and their names find room
const chosen = { what: "parts" };
let canvas = null; // used again
let names = []; // of the parts

/** The numbers of a mask as a picture. */
function painted({ width, height }, numbers, count) {
  canvas ??= document.createElement("canvas");
  Object.assign(canvas, { width, height });
  const image = new ImageData(width, height);
  const colours = Array.from({ length: count + 1 }, (_, number) => numberColour(number, count));
  for (let i = 0; i < numbers.length; i += 1) {
    if (numbers[i]) image.data.set([...(colours[numbers[i]] ?? colours.at(-1)), ALPHA], 4 * i);
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

/** Draws bodies over the picture of a view (overlay.js). */
export function draw(view, found, schema) {
  ({ names = [] } = schema.fields.find(({ name }) => name === "parts") ?? {});
  for (const mask of found) {
    const count = chosen.what === "parts" ? names.length : Math.max(1, mask.bodies.length);
    if ("filter" in view.context && mask.width > CELLS) view.context.filter = `blur(${(0.6 * view.picture.width * view.scale) / CELLS}px)`;
    drawWhole(view, painted(mask, mask[chosen.what], count));
    view.context.filter = "none";
    if (chosen.what === "parts") label(view, mask);
  }
}

/**
 * Where each part that is large enough has the most of itself around it: [{number, column, row, size}] in cells of `step`
 * pixels, the largest part first. A cell's depth is its distance from the nearest cell of another part, in city blocks.
 */
function middles({ width, height, parts }, step) {
  const [across, down] = [Math.ceil(width / step), Math.ceil(height / step)];
  const at = (column, row) => parts[row * step * width + column * step];
  const depth = new Uint16Array((across + 2) * (down + 2)); // with a rim of 0: the picture's edge is an edge of parts
  const place = (column, row) => (row + 1) * (across + 2) + column + 1;
  const deepened = (column, row, sides) => sides.reduce((least, [dx, dy]) => {
    const [x, y] = [column + dx, row + dy];
    const same = x >= 0 && y >= 0 && x < across && y < down && at(x, y) === at(column, row);
    return Math.min(least, same ? depth[place(x, y)] + 1 : 1);
  }, Infinity);
  for (let row = 0; row < down; row += 1) for (let column = 0; column < across; column += 1) depth[place(column, row)] = deepened(column, row, [[-1, 0], [0, -1]]);
  const best = names.map((_, i) => ({ number: i + 1, size: 0, depth: 0 }));
  for (let row = down - 1; row >= 0; row -= 1) {
    for (let column = across - 1; column >= 0; column -= 1) {
      const here = Math.min(depth[place(column, row)], deepened(column, row, [[1, 0], [0, 1]]));
      depth[place(column, row)] = here;
      const one = best[at(column, row) - 1];
      if (one) Object.assign(one, { size: one.size + 1 }, here > one.depth ? { depth: here, column, row } : {});
    }
  }
  return best.filter(({ size }) => size && size >= LEAST * across * down).sort((a, b) => b.size - a.size);
}

/** Writes the name of each part that is large enough onto it, those of larger parts first; none over another, or cut off. */
function label({ context, x, y, unit, picture, width: wide }, mask) {
  const step = Math.max(1, Math.round(mask.width / CELLS));
  const high = 15 * unit;
  context.font = `600 ${12 * unit}px system-ui, sans-serif`;
  context.textBaseline = "middle";
  Object.assign(context, { lineJoin: "round", lineWidth: 3 * unit, strokeStyle: EDGE, fillStyle: "#ffffff" });
  const taken = [];
  for (const { number, column, row } of middles(mask, step)) {
    const text = labelText(names[number - 1]);
    const across = context.measureText(text).width;
    const middle = x((((column + 0.5) * step) / mask.width) * picture.width);
    const left = Math.max(4, Math.min(wide - across - 4, middle - across / 2));
    const top = y((((row + 0.5) * step) / mask.height) * picture.height);
    if (taken.some((other) => Math.abs(other.top - top) < high && left < other.right && other.left < left + across)) continue;
    taken.push({ left, right: left + across, top });
    context.strokeText(text, left, top);
    context.fillText(text, left, top);
  }
}

/** Bodies in words. */
export function describe({ values, parts, bodies }) {
  const seen = new Set(parts);
  seen.delete(0);
  const part = parts.reduce((sum, number) => sum + Boolean(number), 0) / values.length;
  const told = [...seen].sort((a, b) => a - b).map((number) => (names[number - 1] ? labelText(names[number - 1]) : number));
  return { People: String(bodies.length), "Share of the picture": { text: `${(100 * part).toFixed(1)} %`, part }, "Parts seen": told.join(", ") || "–" };
}

/** Puts what can be chosen into `box`; `parameters` are those of the page's address, `changed(name, value)` hears of changes. */
export function controls(box, parameters, changed) {
  if (SHOWN[parameters.get("show")]) chosen.what = parameters.get("show");
  const group = choices("Show", "show", SHOWN, chosen.what);
  group.addEventListener("change", ({ target }) => {
    chosen.what = target.value;
    changed("show", target.value);
  });
  box.append(group);
}
