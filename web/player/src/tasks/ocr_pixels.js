// Pictures as the models of text want to see them, to the byte as the engine's kernels u8_cut_quad and u8_resize_to_planes
// make them of float32. A picture here is {data, red, width, height, row, pixel, channel}: bytes, and steps within them.

import { toEven } from "./ocr_regions.js";

const [FLATTEST, LOWEST] = [8, 30]; // a picture that is wider than this many times its height, or lower, gets black around
const ONE = 2048; // OpenCV's INTER_RESIZE_COEF_SCALE
const A = -0.75; // of bicubic weights
const f = Math.fround;

/** A picture of ImageData, with black above and below where it is very wide or very low, and the rows of black. */
export function pageOf({ data, width, height }) {
  const flat = height <= LOWEST || width > FLATTEST * height;
  const black = flat ? Math.floor(Math.abs(2 * Math.max(Math.floor(width / FLATTEST), LOWEST) - height) / 2) : 0;
  const page = { red: 0, width, height: height + 2 * black, row: 4 * width, pixel: 4, channel: 1 };
  if (!black) return [{ ...page, data }, 0];
  const padded = new Uint8ClampedArray(page.row * page.height);
  padded.set(data, black * page.row);
  return [{ ...page, data: padded }, black];
}

/** The same seen turned against the clock by so many quarters of a circle. */
export function turnedPicture(picture, quarters) {
  if (!quarters) return picture;
  const { red, width, height, row, pixel } = picture;
  return turnedPicture({ ...picture, red: red + (width - 1) * pixel, width: height, height: width, row: -pixel, pixel: row }, quarters - 1);
}

/** [3, height, width], blue first: the picture stretched to the first `used` columns, normalised; the others are 0. */
export function planesOf({ data, red, width, height, row, pixel, channel }, ow, oh, used, { means, deviations }) {
  const planes = new Float32Array(3 * ow * oh);
  const columns = Array.from({ length: used }, (_, x) => taps(x, width / used, width, true));
  const scales = deviations.map((deviation) => f(1 / (255 * deviation)));
  const offsets = means.map((mean, i) => f(-mean / deviations[i]));
  for (let y = 0; y < oh; y++) {
    const [above, below, upperWeight, lowerWeight] = taps(y, height / oh, height, false);
    for (let c = 0; c < 3; c++) {
      const at = red + (2 - c) * channel;
      for (let x = 0; x < used; x++) {
        const [first, second, a, b] = columns[x];
        const [left, right] = [at + first * pixel, at + second * pixel];
        const upper = (data[left + above * row] * a + data[right + above * row] * b) >> 4;
        const lower = (data[left + below * row] * a + data[right + below * row] * b) >> 4;
        const sample = (((upper * upperWeight) >> 16) + ((lower * lowerWeight) >> 16) + 2) >> 2;
        planes[(c * oh + y) * ow + x] = f(f(sample * scales[c]) + offsets[c]);
      }
    }
  }
  return planes;
}

/** Where an output pixel reads: two neighbours and their weights. */
function taps(at, step, size, isColumn) {
  const position = f((at + 0.5) * step - 0.5);
  const first = Math.floor(position);
  let weight = f(position - first);
  if (isColumn && (first < 0 || first >= size - 1)) weight = 0; // rows keep theirs, of an edge taken twice
  const within = (place) => Math.min(Math.max(place, 0), size - 1);
  return [within(first), within(first + 1), toEven(f(f(1 - weight) * ONE)), toEven(f(weight * ONE))];
}

/** What a quadrilateral shows, as large as its longer sides; it begins with its left upper corner, with the clock. */
export function cutOf({ data, red, width, height, row, pixel, channel }, [a, b, c, d]) {
  const far = ([x0, y0], [x1, y1]) => Math.hypot(x1 - x0, y1 - y0);
  const [ow, oh] = [Math.trunc(Math.max(far(a, b), far(c, d))), Math.trunc(Math.max(far(a, d), far(b, c)))];
  const [ax, ay, a0, bx, by, b0, wx, wy] = projective([a, b, c, d], ow, oh).map(f);
  const cut = new Uint8ClampedArray(3 * ow * oh);
  const inside = (value) => Math.min(Math.max(f(value), -4), 32767);
  let out = 0;
  for (let y = 0; y < oh; y++) {
    for (let x = 0; x < ow; x++) {
      const scale = 1 / (wx * x + wy * y + 1);
      const [atX, atY] = [inside((ax * x + ay * y + a0) * scale), inside((bx * x + by * y + b0) * scale)];
      const [left, top] = [Math.floor(atX) - 1, Math.floor(atY) - 1];
      const [across, down] = [weights(f(atX - Math.floor(atX))), weights(f(atY - Math.floor(atY)))];
      for (let channels = 0; channels < 3; channels++) {
        let sum = 0;
        for (let j = 0; j < 4; j++) {
          const line = red + channels * channel + Math.min(Math.max(top + j, 0), height - 1) * row;
          let along = 0;
          for (let i = 0; i < 4; i++) along = f(along + f(data[line + Math.min(Math.max(left + i, 0), width - 1) * pixel] * across[i]));
          sum = f(sum + f(along * down[j]));
        }
        cut[out++] = toEven(Math.min(Math.max(sum, 0), 255));
      }
    }
  }
  return { data: cut, red: 0, width: ow, height: oh, row: 3 * ow, pixel: 3, channel: 1 };
}

/** Bicubic weights of four neighbours, each step rounded to float32. */
function weights(x) {
  const y = f(1 - x);
  const near = (t) => f(f(f(f(f(f(A + 2) * t) - f(A + 3)) * t) * t) + 1);
  const x1 = f(x + 1);
  const first = f(f(f(f(f(f(A * x1) - f(5 * A)) * x1) + f(8 * A)) * x1) - f(4 * A));
  const [second, third] = [near(x), near(y)];
  return [first, second, third, f(f(f(1 - first) - second) - third)];
}

/** The map from pixels of a picture of this size to those of the one in which a quadrilateral lies. */
function projective([[x0, y0], [x1, y1], [x2, y2], [x3, y3]], width, height) {
  const [dx1, dx2, dx3] = [x1 - x2, x3 - x2, x0 - x1 + x2 - x3];
  const [dy1, dy2, dy3] = [y1 - y2, y3 - y2, y0 - y1 + y2 - y3];
  const whole = dx1 * dy2 - dx2 * dy1;
  const [g, h] = [(dx3 * dy2 - dx2 * dy3) / whole, (dx1 * dy3 - dx3 * dy1) / whole];
  return [
    (x1 - x0 + g * x1) / width, (x3 - x0 + h * x3) / height, x0, (y1 - y0 + g * y1) / width, (y3 - y0 + h * y3) / height, y0,
    g / width, h / height,
  ];
}
