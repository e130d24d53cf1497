// Where lines of text are in a detector's map, which way each is read, and their order. As tasks/text_regions.py and
// text_lines.py.

const TURN = 2 * Math.PI;
const ARC_TOLERANCE = 0.25; // pixels between a round corner and the shape that stands for it
const [GROWTH, SMALLEST, SHORTEST_SIDE] = [1.4, 3, 3]; // of a rectangle; pixels of its shorter side
const ELONGATED = 1.5; // ratio of sides from which the longer one says where the line runs
const ALIKE = (20 * Math.PI) / 180; // of directions of lines on one page
const STEEP = (85 * Math.PI) / 180; // from here on a line that climbs and one that falls look alike

const far = ([x0, y0], [x1, y1]) => Math.hypot(x1 - x0, y1 - y0);
const following = (points) => points.map((point, i) => [point, points[(i + 1) % points.length]]);

/** The nearest whole number, of two the even one, as Python rounds. */
export function toEven(value) {
  const rounded = Math.round(value);
  return Math.abs(value % 1) === 0.5 && rounded % 2 ? rounded - 1 : rounded;
}

/** What is left of an angle, nearest to 0. */
const remainder = (value, by) => value - by * toEven(value / by);

export function boxOf(points) {
  const [xs, ys] = [0, 1].map((axis) => points.map((point) => point[axis]));
  const [left, top] = [Math.min(...xs), Math.min(...ys)];
  return { left, top, width: Math.max(...xs) - left, height: Math.max(...ys) - top };
}

/** The corners of lines in pixels of a page of this size: long ones from left to right, short ones along these. */
export function foundQuads({ data: mask, shape: [height, width] }, sums, size, least) {
  const quads = [];
  for (const runs of components(mask, width)) {
    let region = smallestRectangle(hullOf(runs.flatMap(([y, first, last]) => [[first, y], [last, y]])));
    if (Math.min(region.width, region.height) < SMALLEST || meanInside(cornersOf(region), sums, width, height) < least) continue;
    const distance = (GROWTH * region.width * region.height) / (2 * (region.width + region.height));
    region = smallestRectangle(grown(cornersOf(region), distance));
    if (Math.min(region.width, region.height) < SMALLEST + 2) continue;
    const within = (place, axis) => Math.min(Math.max(toEven(place), 0), size[axis] - 1);
    const quad = upright(cornersOf(region).map(([x, y]) => [within((x * size[0]) / width, 0), within((y * size[1]) / height, 1)]));
    if (Math.min(...[1, 3].map((i) => Math.trunc(far(quad[0], quad[i])))) > SHORTEST_SIDE) quads.push(quad);
  }
  const long = quads.filter((quad) => ratio(quad) >= ELONGATED).map(alongLongerSide);
  const main = mainDirection(long);
  return [...long, ...quads.filter((quad) => ratio(quad) < ELONGATED).map((quad) => nearestTo(quad, main))];
}

/** The runs of ones, [row, first, last], that touch, by their corners too, together. */
function components(mask, width) {
  const runs = [];
  const parents = [];
  const root = (run) => {
    while (parents[run] !== run) parents[run] = run = parents[parents[run]];
    return run;
  };
  let above = [0, 0];
  for (let start = 0, y = 0; start < mask.length; start += width, y++) {
    const begin = runs.length;
    let near = above[0];
    const line = mask.subarray(start, start + width);
    for (let at = line.indexOf(1); at >= 0; ) {
      const end = line.indexOf(0, at) < 0 ? width : line.indexOf(0, at);
      const here = runs.length;
      runs.push([y, at, end - 1]);
      parents.push(here);
      while (near < above[1] && runs[near][2] < at - 1) near++;
      for (let touching = near; touching < above[1] && runs[touching][1] <= end; touching++) parents[root(touching)] = root(here);
      at = line.indexOf(1, end);
    }
    above = [begin, runs.length];
  }
  const groups = new Map();
  runs.forEach((run, place) => groups.set(root(place), [...(groups.get(root(place)) ?? []), run]));
  return [...groups.values()];
}

/** The corners of the smallest convex shape around points, in turn. */
function hullOf(found) {
  const sorted = found.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const points = sorted.filter((point, i) => !i || point[0] !== sorted[i - 1][0] || point[1] !== sorted[i - 1][1]);
  if (points.length < 3) return points;
  const turns = ([ax, ay], [bx, by], [cx, cy]) => (bx - ax) * (cy - ay) - (by - ay) * (cx - ax);
  return [points, [...points].reverse()].flatMap((side) => {
    const line = [];
    for (const point of side) {
      while (line.length > 1 && turns(line.at(-2), line.at(-1), point) <= 0) line.pop();
      line.push(point);
    }
    return line.slice(0, -1);
  });
}

/** The smallest rectangle around a convex shape, turned by 45° at most. */
function smallestRectangle(corners) {
  let best = { x: corners[0][0], y: corners[0][1], width: 0, height: 0, rotation: 0 };
  let least = Infinity;
  for (const [[x0, y0], [x1, y1]] of following(corners)) {
    const rotation = remainder(Math.atan2(y1 - y0, x1 - x0), Math.PI / 2);
    const [cos, sin] = [Math.cos(rotation), Math.sin(rotation)];
    const { left, top, width, height } = boxOf(corners.map(([x, y]) => [x * cos + y * sin, y * cos - x * sin]));
    if (width * height >= least) continue;
    least = width * height;
    const [u, v] = [left + width / 2, top + height / 2];
    best = { x: u * cos - v * sin, y: u * sin + v * cos, width, height, rotation };
  }
  return best;
}

/** Left upper, right upper, right lower, left lower, as the region is turned. */
function cornersOf({ x, y, width, height, rotation }) {
  const [cos, sin] = [Math.cos(rotation), Math.sin(rotation)];
  const halves = [[-1, -1], [1, -1], [1, 1], [-1, 1]].map(([right, down]) => [(right * width) / 2, (down * height) / 2]);
  return halves.map(([right, down]) => [x + cos * right - sin * down, y + sin * right + cos * down]);
}

/** The corners of a convex shape whose sides were moved outwards, its corners made round, on whole pixels. */
function grown(corners, distance) {
  const whole = corners.map((point) => point.map(Math.trunc));
  const path = whole.filter((point, i) => whole.findIndex(([x, y]) => x === point[0] && y === point[1]) === i);
  if (path.length < 3) return path;
  const steps = Math.min(Math.PI / Math.acos(1 - Math.min(ARC_TOLERANCE, distance / 4) / distance), distance * Math.PI);
  const [sin, cos] = [Math.sin(TURN / steps), Math.cos(TURN / steps)];
  const normals = following(path).map(([a, b]) => [(b[1] - a[1]) / far(a, b), (a[0] - b[0]) / far(a, b)]);
  const found = path.flatMap(([x, y], place) => {
    let [kx, ky] = normals.at(place - 1);
    const [jx, jy] = normals[place];
    const turn = Math.max(-1, Math.min(kx * jy - jx * ky, 1));
    const arc = [[kx, ky]];
    if (Math.abs(turn * distance) >= 1) {
      const angle = Math.atan2(turn, kx * jx + ky * jy);
      for (let i = Math.max(rounded((steps / TURN) * Math.abs(angle)), 1) - 1; i > 0; i--) {
        [kx, ky] = [kx * cos - sin * ky, kx * sin + ky * cos];
        arc.push([kx, ky]);
      }
      arc.push([jx, jy]);
    }
    return arc.map(([u, v]) => [rounded(x + u * distance), rounded(y + v * distance)]);
  });
  return hullOf(found);
}

/** The nearest whole number, halves away from 0, as C programs round. */
const rounded = (value) => Math.trunc(value < 0 ? value - 0.5 : value + 0.5);

/** The mean of a map inside a convex shape. `sums` are the map's sums along each row, up to and with each pixel. */
function meanInside(corners, sums, width, height) {
  const ys = corners.map(([, y]) => y);
  const [top, bottom] = [Math.min(...ys), Math.max(...ys)];
  let [total, count] = [0, 0];
  for (let y = Math.max(Math.floor(top), 0); y <= Math.min(Math.floor(bottom), height - 1); y++) {
    const level = Math.max(y, top);
    const met = following(corners).flatMap(([[x0, y0], [x1, y1]]) => {
      if (Math.min(y0, y1) > level || level > Math.max(y0, y1)) return [];
      return y0 === y1 ? [x0, x1] : [x0 + ((level - y0) * (x1 - x0)) / (y1 - y0)];
    });
    const [first, last] = [Math.max(toEven(Math.min(...met)), 0), Math.min(toEven(Math.max(...met)), width - 1)];
    if (first > last) continue;
    total += sums[y * width + last] - (first ? sums[y * width + first - 1] : 0);
    count += last - first + 1;
  }
  return count ? total / count : 0;
}

/** The same corners from the left upper one on, with the clock; of the two on the left it is the upper one. */
export function upright(quad) {
  const places = [...quad].sort((a, b) => a[0] - b[0]);
  const [[a, d], [b, c]] = [places.slice(0, 2), places.slice(2)].map((pair) => pair.sort((one, other) => one[1] - other[1]));
  return [a, b, c, d];
}

/** The same corners with the text turned clockwise by so many quarters of a circle. */
export const turned = (quad, quarters) => quad.map((_, i) => quad[(i + quarters) % 4]);

/** Where the text runs, clockwise from the right. */
const direction = ([[x0, y0], [x1, y1]]) => Math.atan2(y1 - y0, x1 - x0);

/** The direction in which most of the length of these lines runs; 0 if there are none. */
function mainDirection(quads) {
  const rows = quads.map((quad) => [direction(quad), far(quad[0], quad[1])]);
  let [total, main] = [0, 0];
  for (const [angle] of rows) {
    const near = rows.map(([other, weight]) => [remainder(other - angle, TURN), weight]).filter(([away]) => Math.abs(away) <= ALIKE);
    const length = near.reduce((sum, [, weight]) => sum + weight, 0);
    if (length > total) [total, main] = [length, angle + near.reduce((sum, [away, weight]) => sum + away * weight, 0) / length];
  }
  return main;
}

/** The order in which lines are read: rows from the top, each from the left, as the page is turned. */
export function readingOrder(quads) {
  const main = mainDirection(quads);
  const [cos, sin] = [Math.cos(main), Math.sin(main)];
  const boxes = quads.map((quad) => boxOf(quad.map(([x, y]) => [x * cos + y * sin, y * cos - x * sin])));
  const middle = ({ top, height }) => top + height / 2;
  const rows = [];
  for (const place of boxes.map((_, i) => i).sort((i, j) => middle(boxes[i]) - middle(boxes[j]) || boxes[i].left - boxes[j].left)) {
    const box = boxes[place];
    const row = rows.at(-1);
    if (row && Math.abs(middle(box) - row.middle) <= Math.min(box.height, row.height) / 2) row.places.push(place);
    else rows.push({ middle: middle(box), height: box.height, places: [place] });
  }
  return rows.flatMap(({ places }) => places.sort((i, j) => boxes[i].left - boxes[j].left));
}

/** The longer side over the shorter. */
function ratio(quad) {
  const sides = [far(quad[0], quad[1]), far(quad[0], quad[3])];
  return Math.max(...sides) / Math.min(...sides);
}

/** The corners of a line that is read along its longer side, towards the right; downwards if it stands upright. */
function alongLongerSide(given) {
  const quad = far(given[0], given[3]) > far(given[0], given[1]) ? turned(given, 1) : given;
  const angle = direction(quad);
  return -STEEP < angle && angle <= Math.PI - STEEP ? quad : turned(quad, 2);
}

/** The corners so that the text runs as nearly as it can in that direction. */
function nearestTo(quad, main) {
  const away = (each) => Math.abs(remainder(direction(each) - main, TURN));
  return [0, 1, 2, 3].map((i) => turned(quad, i)).reduce((best, each) => (away(each) < away(best) ? each : best));
}
