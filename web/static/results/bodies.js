// Results of the kind "bodies": who is in a picture, pixel by pixel, and which part of the body each pixel shows.

import { choices } from "../dom.js";
import { drawWhole, EDGE } from "../view.js";

const SHOWN = { parts: "Parts", people: "People" };
const ALPHA = 165;
const LEAST = 0.008; // of the picture: smaller parts have no name in it
const chosen = { what: "parts" };
let canvas = null; // used again
let names = []; // of the parts

/** A colour of its own for each of `count` numbers, as red, green and blue: hues that lie far apart for neighbours. */
function colour(number, count) {
  const hue = (((number - 1) * 0.381966 * (count > 12 ? 1 : 2.2)) % 1) * 6;
  const channel = (shift) => Math.round(255 * (0.28 + 0.67 * Math.min(1, Math.max(0, Math.abs(((hue + shift) % 6) - 3) - 1))));
  return [channel(0), channel(4), channel(2)];
}

/** The numbers of a mask as a picture. */
function painted({ width, height }, numbers, count) {
  canvas ??= document.createElement("canvas");
  Object.assign(canvas, { width, height });
  const image = new ImageData(width, height);
  const colours = Array.from({ length: count + 1 }, (_, number) => colour(number, count));
  for (let i = 0; i < numbers.length; i += 1) {
    if (numbers[i]) image.data.set([...(colours[numbers[i]] ?? colours.at(-1)), ALPHA], 4 * i);
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

/** Draws bodies over the picture of a view (view.js). */
export function draw(view, found, schema) {
  ({ names = [] } = schema.fields.find(({ name }) => name === "parts") ?? {});
  for (const mask of found) {
    const count = chosen.what === "parts" ? names.length : Math.max(1, mask.bodies.length);
    drawWhole(view, painted(mask, mask[chosen.what], count));
    if (chosen.what === "parts") label(view, mask);
  }
}

/** Writes the name of each part that is large enough into its middle. */
function label({ context, x, y, unit, picture }, { width, height, parts }) {
  const sums = names.map(() => [0, 0, 0]); // x, y, pixels
  const step = Math.max(1, Math.round(width / 128));
  for (let row = 0; row < height; row += step) {
    for (let column = 0; column < width; column += step) {
      const sum = sums[parts[row * width + column] - 1];
      if (sum) [sum[0], sum[1], sum[2]] = [sum[0] + column, sum[1] + row, sum[2] + 1];
    }
  }
  context.font = `600 ${12 * unit}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  Object.assign(context, { lineJoin: "round", lineWidth: 3 * unit, strokeStyle: EDGE, fillStyle: "#ffffff" });
  const told = sums.flatMap(([across, down, count], i) => {
    if (count * step * step < LEAST * width * height) return [];
    const at = { x: x((across / count / width) * picture.width), y: y((down / count / height) * picture.height) };
    return [{ ...at, text: names[i].replaceAll("_", " ") }];
  });
  let low = -Infinity; // where the name above ends
  for (const { text, ...at } of told.sort((a, b) => a.y - b.y)) {
    low = Math.max(at.y, low + 16 * unit);
    context.strokeText(text, at.x, low);
    context.fillText(text, at.x, low);
  }
  context.textAlign = "start";
}

/** Bodies in words. */
export function describe({ values, parts, bodies }) {
  const seen = new Set(parts);
  seen.delete(0);
  const part = parts.reduce((sum, number) => sum + Boolean(number), 0) / values.length;
  const told = [...seen].sort((a, b) => a - b).map((number) => names[number - 1]?.replaceAll("_", " ") ?? number);
  return { People: String(bodies.length), "Of the picture": { text: `${(100 * part).toFixed(1)} %`, part }, "Parts seen": told.join(", ") || "–" };
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
