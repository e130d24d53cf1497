// One person: body, face and hands together; the body says where face and hands are looked at. As tasks/holistic_landmarker.py.

import { isPicture } from "../pictures.js";
import { landmarks, regionOf, thingIn } from "./landmarks.js";
import { boxOf } from "./ocr_regions.js";

const HEAD = 11; // the body's first landmarks
const HANDS = { leftHand: [15, 17, 19], rightHand: [16, 18, 20] }; // wrist, little finger, index finger; the person's own sides
const LEAST_VISIBLE = 0.1; // of a wrist whose hand is looked for

export const holistic = {
  takes: isPicture,

  async found(model, picture, numbers) {
    const { parts, facts: { decode: { rules } } } = model;
    const source = model.taken(picture);
    const [pose] = await landmarks.found(model, source, { ...numbers, most: [1] });
    if (!pose) return [];
    const [least] = numbers.min_presence_score;
    const points = pose.landmarks.map(({ x, y }) => [x, y]);
    const head = points.slice(0, HEAD);
    const face = await faceRegion(parts.faces, source, regionOf(rules.head, head, boxOf(head)), rules.face, numbers.min_detection_score);
    const found = { box: pose.box, score: pose.score, pose, face: face && (await thingIn(parts.face, source, face, least)) };
    for (const [name, places] of Object.entries(HANDS)) {
      const seen = pose.landmarks[places[0]].visibility > LEAST_VISIBLE;
      found[name] = seen ? await thingIn(parts.hand, source, await handRegion(parts.hands, source, places.map((i) => points[i]), rules), least) : null;
    }
    return [found];
  },
};

/** Where the detector sees the best face in a region; null if there is none. */
async function faceRegion(detector, source, near, rule, least) {
  const { output, keypoints } = detector.facts.decode;
  const place = detector.placeOf(source, near);
  const { data, shape } = (await detector.look(source, place, { min_score: least }))[output];
  if (!(data[shape[2] - 1] > 0)) return null;
  const points = keypoints.map((_, i) => place.toImage(data[4 + 2 * i], data[5 + 2 * i]));
  return regionOf(rule, points, boxOf(points));
}

/** Where a hand is exactly, for the body's wrist, little finger and index finger. */
async function handRegion(recropper, source, [wrist, little, index], rules) {
  const middle = [0, 1].map((axis) => (2 * index[axis] + little[axis]) / 3);
  const near = regionOf(rules.hand, [middle, middle.map((value, axis) => 2 * value - wrist[axis])]);
  const { landmarks: points } = await thingIn(recropper, source, near, 0);
  return regionOf(rules.recrop, points.map(({ x, y }) => [x, y]));
}
