// Runs on typed arrays that Python begins with one call: what they must be is looked at here, where that costs nothing.

/** Runs of one range of a program. `json`: {first, count, reads, inputs: [[number of a buffer, bytes, class of arrays], …]}. */
export class Runs {
  #program;
  #plan;
  #arrived;
  #inputs;

  /** `arrived` as Program.start takes it. */
  constructor(program, json, arrived) {
    this.#program = program;
    this.#plan = JSON.parse(json);
    this.#arrived = arrived;
    this.#inputs = this.#plan.inputs.map(([buffer, nbytes, name]) => ({ buffer, nbytes, Type: globalThis[name] ?? Uint8Array }));
  }

  /**
   * Begins a run, as Program.start does. false, and nothing was done, where an array is not of its input's type and
   * bytes, where too many runs are under way, or the device is lost.
   */
  begin = (ticket, ...arrays) => {
    const program = this.#program, { first, count, reads } = this.#plan;
    if (program.device.lost || !program.readings[reads]?.free.length) return false;
    const given = [];
    for (const [i, { buffer, nbytes, Type }] of this.#inputs.entries()) {
      const array = arrays[i];
      if (array.byteLength !== nbytes || (array.constructor !== Type && array.constructor !== Uint8Array)) return false;
      given.push(buffer, array);
    }
    program.start(first, count, reads, ticket, this.#arrived, ...given);
    return true;
  };
}
