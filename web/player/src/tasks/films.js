// Films: what is found in a frame is followed into the next one, and keeps its id. As detect_for_video of the engine's tasks.

import { sizeOf } from "../pictures.js";
import { personIn } from "./holistic.js";
import { gesture, lookIn, regionAround, searched } from "./landmarks.js";
import { boxOf } from "./ocr_regions.js";
import { SmoothTrack } from "./smoothing.js";
import { Tracker } from "./tracking.js";

const SAME = 0.5; // overlap from which two regions show one thing
const TWICE = 0.75; // overlap from which two boxes of landmarks are those of one thing
const BOXES = ["detections", "objects", "poses", "yolo"]; // kinds of `decode`

/** What follows the things of a model's task through a film: {found(frame, time, numbers), reset()}; null if it has none. */
export function filmOf(model) {
  const { kind, follow } = model.facts?.decode ?? {};
  if (BOXES.includes(kind)) return new BoxFilm(model);
  if (!follow) return null;
  return kind === "holistic" ? new PersonFilm(model) : new LandmarkFilm(model);
}

/** Boxes that are found in each frame anew. */
class BoxFilm {
  tracker = new Tracker();
  size = "";

  constructor(model) {
    this.model = model;
  }

  async found(frame, time, numbers) {
    const size = String(sizeOf(frame));
    const found = await this.model.runNow(frame, numbers);
    if (found.length && size !== this.size) {
      this.reset();
      this.size = size;
    }
    const ids = this.tracker.ids(found.map(({ box }) => box), time, found.map(({ index }) => index));
    return found.map((one, i) => ({ ...one, id: ids[i] }));
  }

  reset() {
    this.tracker.reset();
  }
}

/** Landmarks: a thing is followed without the detector while it is there, and its points are smooth. */
class LandmarkFilm {
  tracker = new Tracker();
  tracked = []; // {region, track} of the frame before
  frame = { time: -Infinity, size: null };

  constructor(model) {
    this.model = model;
  }

  async found(frame, time, numbers) {
    const { model, model: { facts: { decode } } } = this;
    const source = await model.taken(frame);
    const size = sizeOf(source);
    this.begin(time, size);
    const each = await this.followed(source, numbers);
    this.tracked = [];
    const told = each.map(({ track, ...raw }) => {
      const smooth = numbers.smooth[0] ? smoothed(decode.follow, raw, track, time) : raw;
      this.tracked.push({ region: regionAround(decode.follow, decode.follow.steady ? smooth : raw), track });
      return smooth.one;
    });
    const ids = this.tracker.ids(told.map(({ box }) => box), time);
    const found = [];
    for (const [i, one] of told.entries()) {
      found.push({ ...one, ...(decode.gestures && (await gesture(model, one, size))), id: ids[i] });
    }
    return found;
  }

  /** Forgets what was followed if this frame cannot come behind the last. */
  begin(time, size) {
    if (this.frame.size && String(size) !== String(this.frame.size)) this.reset();
    else if (time < this.frame.time) this.tracked = [];
    this.frame = { time, size };
  }

  /** The things of a frame: those that are tracked, and new ones where there may be more or one is lost. */
  async followed(source, numbers) {
    const { model } = this;
    const [[most], [least]] = [numbers.most, numbers.min_presence_score];
    const tracked = this.tracked.slice(0, most);
    const look = async (region, track) => {
      const found = await lookIn(model, source, region, least);
      return found ? [{ ...found, region, track }] : [];
    };
    let fresh = tracked.length < most ? await searched(model, source, numbers) : null;
    const seen = [];
    for (const { region, track } of tracked) seen.push(...(await look(region, track)));
    const alive = seen.filter(({ one }, i) => !seen.slice(0, i).some((other) => overlap(one.box, other.one.box) >= TWICE));
    if (alive.length < most) fresh ??= await searched(model, source, numbers);
    const apart = (region) => alive.every(({ region: old }) => overlap(boxAround(region), boxAround(old)) < SAME);
    const told = [...alive];
    for (const region of (fresh ?? []).filter(apart).slice(0, most - alive.length)) {
      const found = await look(region, new SmoothTrack(model.facts.decode.follow.smooths));
      told.push(...found.filter(({ one }) => !told.some((other) => overlap(one.box, other.one.box) >= SAME)));
    }
    return told;
  }

  reset() {
    [this.tracked, this.frame] = [[], { time: -Infinity, size: null }];
    this.tracker.reset();
  }
}

/** A whole person: the body as of its own film, face and hands where they were while the body has them there. */
class PersonFilm {
  before = {}; // regions of face and hands, by name
  id = null; // of the body that they belong to

  constructor(model) {
    this.model = model;
    this.bodies = new LandmarkFilm(model);
  }

  async found(frame, time, numbers) {
    const source = await this.model.taken(frame);
    const [pose] = await this.bodies.found(source, time, { ...numbers, most: [1] });
    const before = pose?.id === this.id ? this.before : {};
    [this.before, this.id] = [{}, pose?.id ?? null];
    return pose ? [{ ...(await personIn(this.model, source, pose, numbers, before, this.before)), id: pose.id }] : [];
  }

  reset() {
    this.bodies.reset();
    this.before = {};
  }
}

/** A thing and its anchors with smooth points, and with visibilities that change slowly. */
function smoothed({ smooths }, { one, anchors }, track, time) {
  const { width, height } = one.box;
  const size = smooths.anchors ? 2 * Math.hypot(...anchors[0].map((at, axis) => at - anchors[1][axis])) : (width + height) / 2;
  const parts = { landmarks: one.landmarks, world: one.world };
  const given = Object.fromEntries(Object.keys(smooths).map((name) => {
    return [name, name === "anchors" ? anchors.flat() : parts[name].flatMap(({ x, y, z }) => [x, y, z])];
  }));
  const found = track.smoothed(given, time, size);
  const told = { ...one };
  for (const name of Object.keys(smooths).filter((each) => each !== "anchors")) {
    const visible = parts[name][0].visibility === undefined ? null : track.visible(name, parts[name].map(({ visibility }) => visibility));
    told[name] = parts[name].map((point, i) => {
      const [x, y, z] = found[name].subarray(3 * i, 3 * i + 3);
      return { ...point, x, y, z, ...(visible && { visibility: visible[i] }) };
    });
  }
  told.box = boxOf(told.landmarks.map(({ x, y }) => [x, y]));
  return { one: told, anchors: found.anchors ? anchors.map((_, i) => [...found.anchors.subarray(2 * i, 2 * i + 2)]) : anchors };
}

/** A region as an upright box. */
const boxAround = ({ x, y, width, height }) => ({ left: x - width / 2, top: y - height / 2, width, height });

/** Intersection over union of two boxes. */
function overlap(a, b) {
  const across = Math.min(a.left + a.width, b.left + b.width) - Math.max(a.left, b.left);
  const down = Math.min(a.top + a.height, b.top + b.height) - Math.max(a.top, b.top);
  const common = Math.max(across, 0) * Math.max(down, 0);
  return common / (a.width * a.height + b.width * b.height - common);
}
