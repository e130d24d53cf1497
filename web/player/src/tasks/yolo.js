// Models as Ultralytics exports them: objects with boxes, masks, points or turned boxes. As tasks/yolo_objects.py.

import { isPicture } from "../pictures.js";
import { toEven } from "./ocr_regions.js";

const HALF = 0.1; // taken off half a pixel of filling, so that the odd pixel goes to the right and to the bottom

export const yolo = {
  takes: isPicture,

  async found(model, picture, { min_score: [least] }) {
    const { decode, picture: { width, height } } = model.facts;
    const [wide, high] = model.placeOf(picture).size;
    const at = letterbox(wide, high, width, height);
    const [across, down] = [wide / at.width, high / at.height];
    const place = model.placeOf(picture, {
      x: wide / 2 + (width / 2 - at.left - at.width / 2) * across, y: high / 2 + (height / 2 - at.top - at.height / 2) * down,
      width: width * across, height: height * down, rotation: 0,
    });
    const outputs = await model.look(picture, place, { rows_used: line(at.top, at.height, height), columns_used: line(at.left, at.width, width) });
    const { data, shape: [count, columns] } = outputs[decode.output];
    let rows = Array.from({ length: count }, (_, i) => Array.from(data.subarray(columns * i, columns * (i + 1))));
    rows = rows.filter((row) => row[4] > 0 && row[4] >= least).sort((a, b) => b[4] - a[4]);
    // By the scale before sides are rounded to whole pixels of the input, as the makers do.
    const scale = Math.min(width / wide, height / high);
    const back = (x, y) => [(x - at.left) / scale, (y - at.top) / scale];
    if (decode.task === "obb") {
      if (!decode.final) rows = apart(rows, decode.overlap);
      return rows.slice(0, decode.most).map((row) => turned(row, back, decode.labels));
    }
    const inside = (x, y) => back(x * width, y * height).map((value, axis) => Math.min(Math.max(value, 0), [wide, high][axis]));
    return rows.slice(0, decode.most).map((row) => {
      const [[left, top], [right, bottom]] = [inside(row[0], row[1]), inside(row[2], row[3])];
      const found = { box: { left, top, width: right - left, height: bottom - top }, ...category(row[4], row[5], decode.labels) };
      if (decode.task === "pose") found.points = points(row, decode.each, inside);
      if (decode.task === "segment") found.mask = mask(row, outputs[decode.prototypes], at, [width, height]);
      return found;
    });
  },
};

/** Classifiers that see the middle of a picture; as `Middle` of tasks/classifier.py. */
export const middle = {
  takes: isPicture,

  async found(model, picture) {
    const { decode, picture: { width, height } } = model.facts;
    const [wide, high] = model.placeOf(picture).size;
    const scale = Math.min(wide / width, high / height);
    const place = model.placeOf(picture, { x: wide / 2, y: high / 2, width: scale * width, height: scale * height, rotation: 0 });
    const outputs = await model.look(picture, place);
    const places = outputs[decode.classes].data;
    return Array.from(outputs[decode.scores].data, (score, i) => category(score, Number(places[i]), decode.labels));
  },
};

const category = (score, index, labels) => ({ score, index, label: labels[index] ?? "" });

/** Where a picture lies in an input, in whole pixels of that. */
function letterbox(wide, high, width, height) {
  const scale = Math.min(width / wide, height / high);
  const [across, down] = [wide, high].map((side) => Math.max(toEven(side * scale), 1));
  return { left: Math.round((width - across) / 2 - HALF), top: Math.round((height - down) / 2 - HALF), width: across, height: down };
}

const line = (first, count, size) => Array.from({ length: size }, (_, i) => Number(i >= first && i < first + count));

function points(row, each, inside) {
  const found = [];
  for (let i = 6; i < row.length; i += each) found.push([...inside(row[i], row[i + 1]), each > 2 ? row[i + 2] : 1]);
  return found;
}

/** A sum of prototypes as large as the picture in the input, 0..1, nothing outside of the box. */
function mask(row, { data, shape: [, rows, columns, count] }, at, [width, height]) {
  const sums = Float32Array.from({ length: rows * columns }, (_, i) => {
    let sum = 0;
    for (let k = 0; k < count; k++) sum += row[6 + k] * data[count * i + k];
    return sum;
  });
  const values = new Float32Array(at.width * at.height);
  const [left, right] = span(row[0] * width - at.left, row[2] * width - at.left, at.width);
  const [top, bottom] = span(row[1] * height - at.top, row[3] * height - at.top, at.height);
  for (let j = top; j < bottom; j++) {
    const [upper, lower, y] = between(j + at.top, height, rows);
    for (let i = left; i < right; i++) {
      const [before, behind, x] = between(i + at.left, width, columns);
      const across = (line) => sums[line * columns + before] * (1 - x) + sums[line * columns + behind] * x;
      values[j * at.width + i] = 1 / (1 + Math.exp(-(across(upper) * (1 - y) + across(lower) * y)));
    }
  }
  return { width: at.width, height: at.height, values };
}

/** Pixels that begin between two edges: the first, and the one behind the last. */
function span(first, last, size) {
  const begin = Math.min(Math.max(Math.ceil(first), 0), size);
  return [begin, Math.min(Math.max(Math.ceil(last), begin), size)];
}

/** The two cells of so many that a pixel of so many lies between, and how far from the first. */
function between(pixel, pixels, cells) {
  const at = Math.min(Math.max(((pixel + 0.5) * cells) / pixels - 0.5, 0), cells - 1);
  const first = Math.floor(at);
  return [first, Math.min(first + 1, cells - 1), at - first];
}

function turned([x, y, width, height, score, index, turn], back, labels) {
  const [cos, sin] = [Math.cos(turn), Math.sin(turn)];
  const corners = [[-1, -1], [1, -1], [1, 1], [-1, 1]].map(([right, down]) => {
    const [a, b] = [(right * width) / 2, (down * height) / 2];
    return back(x + cos * a - sin * b, y + sin * a + cos * b);
  });
  const [xs, ys] = [0, 1].map((axis) => corners.map((corner) => corner[axis]));
  const [left, top] = [Math.min(...xs), Math.min(...ys)];
  const box = { left, top, width: Math.max(...xs) - left, height: Math.max(...ys) - top };
  return { box, ...category(score, index, labels), corners, rotation: turn };
}

/** The turned boxes, best first, without those that a better one of their class overlaps, whether kept or not. */
function apart(rows, overlap) {
  const shapes = rows.map(gaussian);
  return rows.filter((row, i) => !rows.slice(0, i).some((other, j) => other[5] === row[5] && alike(shapes[j], shapes[i]) >= overlap));
}

/** Centre and covariance (of x, of y, of both) of a turned box's points. */
function gaussian([x, y, width, height, , , turn]) {
  const [cos, sin, a, b] = [Math.cos(turn), Math.sin(turn), (width * width) / 12, (height * height) / 12];
  return [x, y, a * cos * cos + b * sin * sin, a * sin * sin + b * cos * cos, (a - b) * cos * sin];
}

/** How far two turned boxes overlap, 0..1: 1 less the Hellinger distance of their normal distributions. */
function alike([x0, y0, a0, b0, c0], [x1, y1, a1, b1, c1]) {
  const [a, b, c, dx, dy] = [a0 + a1, b0 + b1, c0 + c1, x1 - x0, y1 - y0];
  const area = a * b - c * c;
  if (area <= 0) return 0;
  const far = (a * dy * dy + b * dx * dx - 2 * c * dx * dy) / (4 * area);
  const unlike = Math.log(Math.max(area / (4 * Math.sqrt(Math.max((a0 * b0 - c0 * c0) * (a1 * b1 - c1 * c1), 1e-14))), 1)) / 2;
  return 1 - Math.sqrt(1 - Math.exp(-(far + unlike)));
}
