// Where a picture lies on its canvas, and drawing over it (used by results/<kind>.js).

export const EDGE = "rgb(0 0 0 / 65%)"; // under every line, so that it shows on any picture
export const COLOUR = "#36e0c8"; // of what was found

/** A colour of its own for each of `count` numbers, as red, green and blue: hues that lie far apart for neighbours. */
export function numberColour(number, count) {
  const hue = (((number - 1) * 0.381966 * (count > 12 ? 1 : 2.2)) % 1) * 6;
  const channel = (shift) => Math.round(255 * (0.28 + 0.67 * Math.min(1, Math.max(0, Math.abs(((hue + shift) % 6) - 3) - 1))));
  return [channel(0), channel(4), channel(2)];
}

/**
 * A view of a picture of {width, height} that fills the canvas as `object-fit: contain` does, or `cover` from its top, or
 * the `region` {left, top, width, height} of it: its 2d `context` in pixels of the page, `x` and `y` of a point of the
 * picture, `scale`, the picture's `left` and `top`, what it shows (`medium`), and `unit`, by which lines and letters of a
 * small canvas are thinner.
 */
export function viewOn(canvas, picture, { mirrored = false, medium = null, ratio = devicePixelRatio || 1, cover = false, region = null } = {}) {
  const [across, down] = [canvas.clientWidth, canvas.clientHeight].map((side) => Math.round(side * ratio));
  return viewOf(canvas, picture, { width: across / ratio, height: down / ratio, ratio, mirrored, medium, cover, region });
}

/** As `viewOn`, for a canvas of the picture's own size, or of a `part` of it. */
export function viewAt(canvas, picture, { mirrored = false, medium = null, part = 1 } = {}) {
  const [width, height] = [picture.width * part, picture.height * part];
  return viewOf(canvas, picture, { width, height, ratio: 1, mirrored, medium });
}

function viewOf(canvas, picture, { width, height, ratio, mirrored, medium, cover, region = null }) {
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  const shown = region ?? { left: 0, top: 0, ...picture };
  const scale = Math[cover ? "max" : "min"](width / shown.width, height / shown.height);
  const [left, top] = [(width - shown.width * scale) / 2 - shown.left * scale, (cover ? 0 : (height - shown.height * scale) / 2) - shown.top * scale];
  const x = (value) => left + (mirrored ? picture.width - value : value) * scale;
  const y = (value) => top + value * scale;
  const unit = Math.min(1.6, Math.max(0.5, Math.min(width, height) / 480));
  return { context, width, height, scale, left, top, x, y, unit, mirrored, medium, picture };
}

/** Draws an image of any size over the whole picture of the view, mirrored as that is. */
export function drawWhole({ context, left, top, scale, picture, mirrored }, image) {
  context.save();
  context.imageSmoothingQuality = "high";
  context.translate(left + (mirrored ? picture.width * scale : 0), top);
  context.scale(mirrored ? -1 : 1, 1);
  context.drawImage(image, 0, 0, picture.width * scale, picture.height * scale);
  context.restore();
}

/** Strokes a path in a colour, `width` wide, over an edge of `edge`. */
export function strokeEdged(context, path, colour, width, edge) {
  for (const [style, wide] of [[EDGE, edge], [colour, width]]) {
    context.strokeStyle = style;
    context.lineWidth = wide;
    context.stroke(path);
  }
}

/** Draws a round point with a rim. */
export function drawPoint(context, x, y, radius, colour, rim, rimWidth) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fillStyle = colour;
  context.fill();
  context.lineWidth = rimWidth;
  context.strokeStyle = rim;
  context.stroke();
}
