// Landmarks: one model finds regions of a picture, a second one points in each. As tasks/landmarks.py of the engine.

import { isPicture } from "../pictures.js";
import { boxOf } from "./ocr_regions.js";

const LEAST_SIDE = 1e-5; // kEpsilon of MediaPipe's landmarks_to_matrix_calculator.cc

export const landmarks = {
  takes: isPicture,

  async found(model, picture, numbers) {
    const { decode } = model.facts;
    const source = model.taken(picture);
    const seen = await model.parts.detector.run(source, { min_score: numbers.min_detection_score });
    const found = [];
    for (const { keypoints, box } of seen.slice(0, numbers.most[0])) {
      const one = await thingIn(model, source, regionOf(decode.rule, Object.values(keypoints), box), numbers.min_presence_score[0]);
      if (one) found.push(decode.gestures ? { ...one, ...(await gesture(model, one, model.placeOf(source).size)) } : one);
    }
    return found;
  },
};

/** What a model of landmarks finds in a region, null if that scores less than `least`. */
export async function thingIn(model, source, region, least) {
  const { decode } = model.facts;
  const place = model.placeOf(source, region);
  const outputs = await model.look(source, place, mapsOf(place));
  const score = outputs[decode.score].data[0];
  return score >= least ? thing(outputs, decode, score) : null;
}

/** The square around keypoints, turned as they are; as tasks/regions.py. */
export function regionOf({ start, end, upright, scale, shift, around_start: around }, points, box) {
  const [[x0, y0], [x1, y1]] = [points[start], points[end]];
  let turn = upright - Math.atan2(y0 - y1, x1 - x0);
  turn -= 2 * Math.PI * Math.floor((turn + Math.PI) / (2 * Math.PI));
  const reach = 2 * Math.hypot(x1 - x0, y1 - y0);
  const { left, top, width, height } = around ? { left: x0 - reach / 2, top: y0 - reach / 2, width: reach, height: reach } : box;
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

function thing(outputs, { landmarks: name, world, left, confidences, points: most }, score) {
  const sure = confidences && outputs[confidences].data;
  const points = (output) => Array.from({ length: most ?? outputs[output].data.length / 3 }, (_, i) => {
    const [x, y, z] = outputs[output].data.subarray(3 * i, 3 * i + 3);
    return sure ? { x, y, z, visibility: sure[2 * i], presence: sure[2 * i + 1] } : { x, y, z };
  });
  const shown = points(name);
  const found = { box: boxOf(shown.map(({ x, y }) => [x, y])), score, landmarks: shown, ...(world ? { world: points(world) } : {}) };
  if (!left) return found;
  const likely = outputs[left].data[0];
  return { ...found, ...(likely > 0.5 ? { handedness: "Left", handednessScore: likely } : { handedness: "Right", handednessScore: 1 - likely }) };
}

/** The first gesture that a classifier sees in a hand, by its landmarks alone; as tasks/gesture_recognizer.py. */
async function gesture({ parts, facts }, { landmarks: shown, world, handedness, handednessScore }, [width, height]) {
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

