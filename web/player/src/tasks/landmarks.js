// Landmarks: one model finds regions of a picture, a second one points in each. As tasks/landmarks.py of the engine.

import { isPicture } from "../pictures.js";
import { boxOf } from "./ocr_regions.js";

const LEAST_SIDE = 1e-5; // kEpsilon of MediaPipe's landmarks_to_matrix_calculator.cc

export const landmarks = {
  takes: isPicture,

  async found(model, picture, numbers) {
    const { decode } = model.facts;
    const source = await model.taken(picture);
    const found = [];
    for (const region of (await searched(model, source, numbers)).slice(0, numbers.most[0])) {
      const one = await thingIn(model, source, region, numbers.min_presence_score[0]);
      if (one) found.push(decode.gestures ? { ...one, ...(await gesture(model, one, model.placeOf(source).size)) } : one);
    }
    return found;
  },
};

/** Where a model's detector sees things, best first. */
export async function searched({ parts, facts: { decode } }, source, { min_detection_score: least }) {
  const seen = await parts.detector.run(source, { min_score: least });
  return seen.map(({ keypoints, box }) => regionOf(decode.rule, Object.values(keypoints), box));
}

/** What a model of landmarks finds in a region, null if that scores less than `least`. */
export const thingIn = async (...asked) => (await lookIn(...asked))?.one ?? null;

/** As `thingIn`, with the points that a film's next region lies around: {one, anchors}. */
export async function lookIn(model, source, region, least) {
  const { decode } = model.facts;
  const place = model.placeOf(source, region);
  const outputs = await model.look(source, place, mapsOf(place));
  const score = outputs[decode.score].data[0];
  if (!(score >= least)) return null;
  const { data } = outputs[decode.landmarks];
  return { one: thing(outputs, decode, score, place), anchors: (decode.follow?.points ?? []).map((i) => [data[3 * i], data[3 * i + 1]]) };
}

/** Where a film's next frame is looked at for a thing; `follow` as package/landmark_tasks.py has it. */
export function regionAround({ rule, towards, boxed }, { one, anchors }) {
  if (!towards) return regionOf(rule, anchors, boxed ? one.box : boxOf(anchors));
  const end = [0, 1].map((axis) => towards.reduce((sum, [place, share]) => sum + share * anchors[place][axis], 0));
  const { rotation } = regionOf(rule, [...anchors, end], one.box);
  const [cos, sin] = [Math.cos(rotation), Math.sin(rotation)];
  const { left, top, width, height } = boxOf(anchors.map(([x, y]) => [cos * x + sin * y, cos * y - sin * x]));
  const [x, y] = [left + width / 2, top + height / 2];
  return square({ left: cos * x - sin * y - width / 2, top: sin * x + cos * y - height / 2, width, height }, rotation, rule);
}

/** The square around keypoints, turned as they are; as tasks/regions.py. */
export function regionOf({ start, end, upright, scale, shift, around_start: around }, points, box) {
  const [[x0, y0], [x1, y1]] = [points[start], points[end]];
  let turn = upright - Math.atan2(y0 - y1, x1 - x0);
  turn -= 2 * Math.PI * Math.floor((turn + Math.PI) / (2 * Math.PI));
  const reach = 2 * Math.hypot(x1 - x0, y1 - y0);
  return square(around ? { left: x0 - reach / 2, top: y0 - reach / 2, width: reach, height: reach } : box, turn, { scale, shift });
}

function square({ left, top, width, height }, turn, { scale, shift }) {
  const down = shift * height;
  const side = Math.max(width, height) * scale;
  return {
    x: left + width / 2 - down * Math.sin(turn), y: top + height / 2 + down * Math.cos(turn), width: side, height: side, rotation: turn,
  };
}

/** The model's inputs that bring its points to the picture; as `crop_map` of tasks/landmarks.py. */
function mapsOf(place) {
  const { cos, sin, ow, oh } = place;
  const [across, down] = [place.width / ow, place.height / oh];
  return {
    turn: [cos * across, sin * across, 0, -sin * down, cos * down, 0, 0, 0, across],
    shift: [...place.toImage(0, 0), 0],
    rotation: [cos, sin, 0, -sin, cos, 0, 0, 0, 1],
  };
}

function thing(outputs, { landmarks: name, world, left, confidences, mask, points: most }, score, place) {
  const sure = confidences && outputs[confidences].data;
  const points = (output) => Array.from({ length: most ?? outputs[output].data.length / 3 }, (_, i) => {
    const [x, y, z] = outputs[output].data.subarray(3 * i, 3 * i + 3);
    return sure ? { x, y, z, visibility: sure[2 * i], presence: sure[2 * i + 1] } : { x, y, z };
  });
  const shown = points(name);
  const found = { box: boxOf(shown.map(({ x, y }) => [x, y])), score, landmarks: shown, ...(world && { world: points(world) }), ...(mask && { mask: laidOver(outputs[mask], place) }) };
  if (!left) return found;
  const likely = outputs[left].data[0];
  return { ...found, ...(likely > 0.5 ? { handedness: "Left", handednessScore: likely } : { handedness: "Right", handednessScore: 1 - likely }) };
}

/** A mask of the model's input laid over all of the picture; as kernels_wasm/src/image/f32_mask_to_picture.c. */
function laidOver({ data, shape: [high, wide] }, place) {
  const [width, height] = place.size;
  const values = new Float32Array(width * height);
  const [from, across, down] = [[0, 0], [1, 0], [0, 1]].map(([x, y]) => place.fromImage(x, y).map((at, axis) => at * [wide, high][axis]));
  const [ax, bx, ay, by] = [across, down].flatMap((end) => end.map((at, axis) => at - from[axis]));
  const line = wide + 2; // zeros lie around the mask
  const padded = new Float32Array(line * (high + 2));
  for (let row = 0; row < high; row++) padded.set(data.subarray(row * wide, (row + 1) * wide), (row + 1) * line + 1);
  for (let row = 0, i = 0; row < height; row++) {
    for (let column = 0; column < width; column++, i++) {
      const x = ax * column + ay * row + from[0];
      const y = bx * column + by * row + from[1];
      if (!(x > -1 && y > -1 && x < wide && y < high)) continue;
      const left = Math.floor(x);
      const top = Math.floor(y);
      const at = (top + 1) * line + left + 1;
      const upper = padded[at] + (padded[at + 1] - padded[at]) * (x - left);
      const lower = padded[at + line] + (padded[at + line + 1] - padded[at + line]) * (x - left);
      values[i] = upper + (lower - upper) * (y - top);
    }
  }
  return { width, height, values };
}

/** The first gesture that a classifier sees in a hand, by its landmarks alone; as tasks/gesture_recognizer.py. */
export async function gesture({ parts, facts }, { landmarks: shown, world, handedness, handednessScore }, [width, height]) {
  const longer = Math.max(width, height);
  const outputs = await parts.embedder.run({
    hand: asObject(shown, [longer, longer, width]), world_hand: asObject(world, [1, 1, 1]),
    handedness: Float32Array.of(handedness === "Left" ? handednessScore : 1 - handednessScore),
  });
  const [embedding] = Object.values(outputs);
  const told = [];
  for (const { part, labels, least } of facts.decode.gestures) {
    const [{ data }] = Object.values(await parts[part].run(embedding.data));
    const best = data.indexOf(data.reduce((most, each) => Math.max(most, each)));
    if (data[best] >= least) told.push({ gesture: labels[best], gestureScore: data[best] });
  }
  return told.find((each) => each.gesture !== "None") ?? told[0] ?? { gesture: "None", gestureScore: 0 };
}

/** Points from the first of them on, in parts of the longer side of the box around them; `units` divide them first. */
function asObject(points, units) {
  const axes = ["x", "y", "z"].map((axis, i) => points.map((point) => (point[axis] - points[0][axis]) / units[i]));
  const side = Math.max(...axes.slice(0, 2).map((axis) => Math.max(...axis) - Math.min(...axis))) + LEAST_SIDE;
  return Float32Array.from(points.flatMap((_, i) => axes.map((axis) => axis[i] / side)));
}
