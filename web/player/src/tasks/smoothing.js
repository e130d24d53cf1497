// Landmarks of a film that tremble less: a one euro filter on each number. As tasks/smoothing.py of the engine.

const SPEED_CUTOFF = 1; // Hz, of the filter of speeds
const FRESH = 0.1; // how much of a new visibility counts
const NOTHING = { time: -Infinity, parts: {}, visible: {} };

/** One thing through a film: what its filter remembers. `cutoffs`: {least, slope, scaled} of each part, by name. */
export class SmoothTrack {
  last = NOTHING;
  before = NOTHING;

  constructor(cutoffs) {
    this.cutoffs = cutoffs;
  }

  /**
   * Parts by name, lists of numbers, made smooth for the milliseconds of their frame and the thing's size in pixels.
   * The first frame is as it is, and so is one that is earlier than the last; one of the same time replaces the last.
   */
  smoothed(parts, time, size) {
    if (time < this.last.time) this.last = this.before = NOTHING;
    const memory = time === this.last.time ? this.before : this.last;
    const rate = 1000 / (time - memory.time);
    const found = Object.fromEntries(Object.entries(parts).map(([name, value]) => {
      return [name, filtered(Float32Array.from(value), memory.parts[name], this.cutoffs[name], rate, 1 / Math.max(size, 1e-6))];
    }));
    [this.before, this.last] = [memory, { time, parts: found, visible: {} }];
    return Object.fromEntries(Object.entries(found).map(([name, { smooth }]) => [name, smooth]));
  }

  /** Visibilities of a part, which change slowly. */
  visible(name, values) {
    const old = this.before.visible[name] ?? values;
    return (this.last.visible[name] = values.map((value, i) => old[i] + FRESH * (value - old[i])));
  }
}

function filtered(value, memory, { least, slope, scaled }, rate, scale) {
  const old = memory ?? { value, smooth: value, speed: new Float32Array(value.length) };
  const [smooth, speed] = [new Float32Array(value.length), new Float32Array(value.length)];
  const unit = scaled ? scale : 1;
  value.forEach((fresh, i) => {
    speed[i] = moved(old.speed[i], (fresh - old.value[i]) * unit * rate, SPEED_CUTOFF, rate);
    smooth[i] = moved(old.smooth[i], fresh, least + slope * Math.abs(speed[i]), rate);
  });
  return { value, smooth, speed };
}

/** A number that follows another, but for what is faster than `cutoff` Hz; `rate` are frames a second, 0 of the first. */
function moved(old, fresh, cutoff, rate) {
  const turns = 2 * Math.PI * cutoff;
  return old + ((fresh - old) * turns) / (turns + rate);
}
