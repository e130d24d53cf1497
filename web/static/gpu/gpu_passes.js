// Passes over long ranges of a program's dispatches, as command buffers that are there before a run needs them.

export const MANY = 12; // dispatches that are worth a command buffer of their own
const CUT = 20; // dispatches that are worth two submits

/**
 * A range in parts, as [first, count]. The browser records a submit's dispatches, about 3 us each, before the GPU begins
 * with any, and the GPU takes about twice as long for them: it computes a third while the rest is recorded. On an NVIDIA
 * H200 medians became 0.92 of one submit's for models of 42 to 106 dispatches (the first 20 apart), 0.91 for 21 to 39 (10).
 */
function parts(first, count) {
  if (count < CUT) return [[first, count]];
  const third = Math.round(count / 3);
  return [[first, third], [first + third, count - third]];
}

/** The command buffers of a program's long ranges; each is used once. */
export class PassesAhead {
  #program;
  #made = new Map(); // first:count -> command buffers that no run has used yet

  /** `program` is one of gpu_program.js. */
  constructor(program) {
    this.#program = program;
  }

  /** Command buffers of a range, each for a submit of its own. */
  take(first, count) {
    const key = `${first}:${count}`, found = this.#made.get(key) ?? this.#encoded(first, count);
    this.#made.delete(key);
    return found;
  }

  /** Encodes a range for a later run; not ranges that are encoded as fast as they are computed. */
  prepare(first, count) {
    const key = `${first}:${count}`;
    if (count >= MANY && !this.#made.has(key)) this.#made.set(key, this.#encoded(first, count));
  }

  clear() {
    this.#made.clear();
  }

  #encoded(first, count) {
    const program = this.#program;
    return parts(first, count).map(([from, some]) => {
      const encoder = program.device.gpu.createCommandEncoder();
      program.encode(encoder, from, some);
      return encoder.finish();
    });
  }
}
