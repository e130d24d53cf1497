// One person: body, face and hands together; the body says where face and hands are looked at. As tasks/holistic_landmarker.py.

import { isPicture } from "../pictures.js";
import { landmarks, lookIn, regionAround, regionOf, thingIn } from "./landmarks.js";
import { boxOf } from "./ocr_regions.js";

const HEAD = 11; // the body's first landmarks
const HANDS = { leftHand: [15, 17, 19], rightHand: [16, 18, 20] }; // wrist, little finger, index finger; the person's own sides
const LEAST_VISIBLE = 0.1; // of a wrist whose hand is looked for

export const holistic = {
  takes: isPicture,

  async found(model, picture, numbers) {
    const source = await model.taken(picture);
    const [pose] = await landmarks.found(model, source, { ...numbers, most: [1] });
    return pose ? [await personIn(model, source, pose, numbers)] : [];
  },
};

/** The person with this body. `before`: where face and hands are, of the frame before; `after` is told where they are next. */
export async function personIn({ parts, facts: { decode: { rules } } }, source, pose, numbers, before = {}, after = {}) {
  const [least] = numbers.min_presence_score;
  const part = async (name, model, near, search) => {
    const region = before[name] && inside(before[name], near) ? before[name] : await search(near);
    const found = region && (await lookIn(model, source, region, least));
    if (found && model.facts.decode.follow) after[name] = regionAround(model.facts.decode.follow, found);
    return found?.one ?? null;
  };
  const points = pose.landmarks.map(({ x, y }) => [x, y]);
  const head = points.slice(0, HEAD);
  const ofFace = (near) => faceRegion(parts.faces, source, near, rules.face, numbers.min_detection_score);
  const found = { box: pose.box, score: pose.score, pose, face: await part("face", parts.face, regionOf(rules.head, head, boxOf(head)), ofFace) };
  for (const [name, places] of Object.entries(HANDS)) {
    const seen = pose.landmarks[places[0]].visibility > LEAST_VISIBLE;
    const near = nearHand(places.map((i) => points[i]), rules.hand);
    found[name] = seen ? await part(name, parts.hand, near, () => handRegion(parts.hands, source, near, rules.recrop)) : null;
  }
  return found;
}

/** Where the detector sees the best face in a region; null if there is none. */
async function faceRegion(detector, source, near, rule, least) {
  const { output, keypoints } = detector.facts.decode;
  const place = detector.placeOf(source, near);
  const { data, shape } = (await detector.look(source, place, { min_score: least }))[output];
  if (!(data[shape[2] - 1] > 0)) return null;
  const points = keypoints.map((_, i) => place.toImage(data[4 + 2 * i], data[5 + 2 * i]));
  return regionOf(rule, points, boxOf(points));
}

/** Where a hand is, by and large, for the body's wrist, little finger and index finger. */
function nearHand([wrist, little, index], rule) {
  const middle = [0, 1].map((axis) => (2 * index[axis] + little[axis]) / 3);
  return regionOf(rule, [middle, middle.map((value, axis) => 2 * value - wrist[axis])]);
}

/** Where it is exactly. */
async function handRegion(recropper, source, near, rule) {
  const { landmarks: points } = await thingIn(recropper, source, near, 0);
  return regionOf(rule, points.map(({ x, y }) => [x, y]));
}

/** Whether a region's middle lies in another one. */
function inside({ x, y }, near) {
  const [cos, sin, right, down] = [Math.cos(near.rotation), Math.sin(near.rotation), x - near.x, y - near.y];
  return Math.abs(cos * right + sin * down) <= near.width / 2 && Math.abs(cos * down - sin * right) <= near.height / 2;
}
