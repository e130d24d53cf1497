// Results of the kind "mask": how likely each pixel belongs to what was looked for. Shown as a colour, or used: the
// background blurred, transparent, in one colour, or another picture.

import { choices } from "../ui/dom.js";
import { drawWhole } from "../ui/overlay.js";

const TINT = [54, 224, 200, 165]; // red, green, blue, most alpha
const SHARP = [0.25, 0.75]; // probabilities that are background and foreground for sure
const BLUR = 1 / 40; // of the picture's longer side
const DEPTHS = "depths"; // the name of results of depth estimation
const HEAT = [[13, 8, 135], [126, 3, 168], [204, 71, 120], [248, 149, 64], [240, 249, 33]]; // Matplotlib's "plasma"
const effects = { blur: "Blur", mask: "Mask", cut: "Transparent", colour: "Colour", picture: "Picture" };
const SQUARES = ["#ffffff", "#d5d5d5"]; // of a chessboard, which stands for nothing
const SQUARE = 1 / 48; // of the picture's longer side
const chosen = { effect: document.documentElement.dataset.effect ?? "blur", colour: "#1f6f5c", picture: null };
const layers = new Map(); // canvases that are used again

/** A canvas of this size, the same for the same name. */
function layer(name, width, height) {
  const canvas = layers.get(name) ?? document.createElement("canvas");
  layers.set(name, canvas);
  canvas.width = Math.max(1, Math.round(width)); // which empties it, too
  canvas.height = Math.max(1, Math.round(height));
  return canvas;
}

/** What alpha a probability becomes: soft edges, nothing of what is unlikely. */
const alpha = (p) => Math.min(1, Math.max(0, (p - SHARP[0]) / (SHARP[1] - SHARP[0])));

/** Alpha as the model has it: a matte's edges are hair and glass. */
const matte = (p) => Math.min(1, Math.max(0, p));

/** The mask as a picture: of this colour where there is background (`inverse`) or foreground; `edges` makes alpha of values. */
function stencil({ width, height, values }, [red, green, blue, most], inverse, edges = alpha) {
  const canvas = layer("stencil", width, height);
  const image = new ImageData(width, height);
  const { data } = image;
  for (let i = 0; i < width * height; i += 1) {
    const part = edges(values[i]);
    data[4 * i] = red;
    data[4 * i + 1] = green;
    data[4 * i + 2] = blue;
    data[4 * i + 3] = most * (inverse ? 1 - part : part);
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

/** What takes the background's place, as large as the view's picture. */
function background({ medium, scale, picture }, effect) {
  const [width, height] = [picture.width * scale, picture.height * scale];
  const canvas = layer("background", width, height);
  const context = canvas.getContext("2d");
  if (effect === "colour" || (effect === "picture" && !chosen.picture)) {
    context.fillStyle = chosen.colour;
    context.fillRect(0, 0, width, height);
  } else if (effect === "cut") {
    chessboard(context, width, height);
  } else if (effect === "picture") {
    const fit = Math.max(width / chosen.picture.width, height / chosen.picture.height);
    const [across, down] = [chosen.picture.width * fit, chosen.picture.height * fit];
    context.drawImage(chosen.picture, (width - across) / 2, (height - down) / 2, across, down);
  } else {
    blurred(context, medium, width, height);
  }
  return canvas;
}

/** What is shown of transparency. */
function chessboard(context, width, height) {
  const side = Math.max(4, Math.round(Math.max(width, height) * SQUARE));
  for (let y = 0; y < height; y += side) {
    for (let x = 0; x < width; x += side) {
      context.fillStyle = SQUARES[(x + y) / side % 2];
      context.fillRect(x, y, side, side);
    }
  }
}

/** Draws the medium out of focus; where browsers cannot blur, by way of a small copy. */
function blurred(context, medium, width, height) {
  const radius = Math.max(width, height) * BLUR;
  if ("filter" in context) {
    context.filter = `blur(${radius}px)`;
    context.drawImage(medium, -radius, -radius, width + 2 * radius, height + 2 * radius); // no dark rim
    context.filter = "none";
    return;
  }
  const small = layer("small", width / radius, height / radius);
  small.getContext("2d").drawImage(medium, 0, 0, small.width, small.height);
  context.imageSmoothingQuality = "high";
  context.drawImage(small, 0, 0, width, height);
}

/** What the engine paints of a video's frames where their masks stay on the GPU (webinfer/tasks/gpu_mask.py, MaskLook). */
export function look() {
  const clear = [0, 0, 0, 0];
  const colour = [1, 3, 5].map((at) => parseInt(chosen.colour.slice(at, at + 2), 16) / 255);
  const behind = chosen.effect === "picture" && chosen.picture;
  const plain = ["colour", "picture"].includes(chosen.effect) && !behind;
  return {
    front: chosen.effect === "mask" ? TINT.map((part) => part / 255) : clear,
    back: plain ? [...colour, 1] : clear,
    blurred: chosen.effect === "blur",
    cut: Boolean(behind) || chosen.effect === "cut",
  };
}

/** Draws masks over the picture of a view (overlay.js), maps of depth as colours. `effect` of a schema goes before the chosen one. */
export function draw(view, found, schema) {
  const effect = schema.effect ?? chosen.effect;
  for (const mask of found) {
    if (schema.name === DEPTHS) drawWhole(view, heat(mask));
    else if (mask.painted) {
      if (effect === "cut" || (effect === "picture" && chosen.picture)) drawWhole(view, background(view, effect));
      drawWhole(view, mask.painted);
    } else if (effect === "cut" && view.saved) {
      view.context.globalCompositeOperation = "destination-in";
      drawWhole(view, stencil(mask, [0, 0, 0, 255], false, matte));
      view.context.globalCompositeOperation = "source-over";
    } else if (effect === "mask" || !view.medium) drawWhole(view, stencil(mask, TINT, false));
    else {
      const canvas = background(view, effect);
      const context = canvas.getContext("2d");
      context.globalCompositeOperation = "destination-in";
      context.imageSmoothingQuality = "high";
      context.drawImage(stencil(mask, [0, 0, 0, 255], true, effect === "cut" ? matte : alpha), 0, 0, canvas.width, canvas.height);
      drawWhole(view, canvas);
    }
  }
}

/** A map of depth as a picture: far is dark blue, near is yellow. */
function heat({ width, height, values }) {
  const canvas = layer("heat", width, height);
  const image = new ImageData(width, height);
  const last = HEAT.length - 1;
  values.forEach((value, at) => {
    const place = Math.min(1, Math.max(0, value)) * last;
    const below = Math.min(last - 1, Math.floor(place));
    for (let i = 0; i < 3; i += 1) image.data[4 * at + i] = HEAT[below][i] + (place - below) * (HEAT[below + 1][i] - HEAT[below][i]);
    image.data[4 * at + 3] = 255;
  });
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

/** A mask in words. */
export function describe({ width, height, values, low, high }) {
  if (low !== undefined) return { "Model's range": `${low.toPrecision(3)} to ${high.toPrecision(3)}`, Pixels: `${width} × ${height}` };
  if (!values) return { Mask: "stays on the GPU", Pixels: `${width} × ${height}` };
  let sum = 0;
  for (const value of values) sum += value;
  return { "Share of the picture": `${((100 * sum) / values.length).toFixed(1)} %`, Pixels: `${width} × ${height}` };
}

/** Puts what can be chosen into `box`; `parameters` are those of the page's address, `changed(name, value)` hears of changes. */
export function controls(box, parameters, changed, { name } = {}) {
  if (name === DEPTHS) return;
  if (effects[parameters.get("effect")]) chosen.effect = parameters.get("effect");
  if (/^#[0-9a-f]{6}$/.test(parameters.get("colour"))) chosen.colour = parameters.get("colour");
  const group = choices("Background", "effect", effects, chosen.effect);
  const colour = Object.assign(document.createElement("input"), { type: "color", value: chosen.colour, ariaLabel: "Colour of the background" });
  const file = Object.assign(document.createElement("input"), { type: "file", accept: "image/*", ariaLabel: "Picture for the background" });
  const refresh = () => {
    colour.hidden = chosen.effect !== "colour";
    file.hidden = chosen.effect !== "picture";
  };
  group.addEventListener("change", ({ target }) => {
    chosen.effect = target.value;
    refresh();
    changed("effect", target.value);
  });
  colour.addEventListener("input", () => {
    chosen.colour = colour.value;
    changed("colour", colour.value);
  });
  file.addEventListener("change", async () => {
    chosen.picture = await createImageBitmap(file.files[0]).catch(() => null);
    changed("effect", "picture");
  });
  refresh();
  box.append(group, colour, file);
}
