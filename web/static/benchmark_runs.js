// The measurement: model by model, its backends in turns.

import { summary } from "./benchmark_result.js";

const WARM_UP = { count: 3, budget_ms: 600 };
const SLICE_MS = 60; // of a backend's turn
const MOST = 20; // runs of a turn

/** Thrown where the user ended the measurement. */
class Stopped extends Error {
  code = "stopped";
}

export class Measurement {
  #calls;
  #on;
  #stopped = false;

  /** `on.step({done, total, text})` hears how far it is, `on.row(row)` of each result as soon as it is there. */
  constructor(calls, on) {
    this.#calls = calls;
    this.#on = on;
  }

  /** Ends it; what was measured so far stays. */
  stop() {
    this.#stopped = true;
    this.#calls.stop();
  }

  /** Measures; whether it came to its end. */
  async run(models, backends, rounds) {
    const total = models.length * (1 + backends.length + rounds);
    let done = 0;
    const step = (text) => {
      if (this.#stopped) throw new Stopped();
      this.#on.step({ done: done++, total, text });
    };
    try {
      for (const model of models) await this.#model(model, backends, rounds, step);
      return true;
    } catch (error) {
      if (error.code !== "stopped") throw error;
      return false;
    }
  }

  async #model(model, backends, rounds, step) {
    const own = (done) => `${model.replaceAll("_", " ")}: ${done}`;
    step(own("opening"));
    await this.#calls.ask("open", { name: model });
    const ready = [];
    for (const backend of backends) {
      step(own(`compiling for ${backend}`));
      try {
        ready.push(await this.#prepared(backend));
      } catch (error) {
        if (this.#stopped || error.code === "stopped" || error.code.startsWith("engine-")) throw error;
        this.#on.row({ model, backend, error: error.message.slice(0, 200) });
      }
    }
    for (let round = 0; round < rounds; round += 1) {
      step(own(`round ${round + 1} of ${rounds}`));
      const order = round % 2 ? [...ready].reverse() : ready; // nobody is always the first
      for (const one of order) {
        const { times } = await this.#calls.ask("time", { backend: one.backend, count: one.count, budget_ms: 1000 });
        one.times.push(...times);
        const { backend, compile, first } = one;
        this.#on.row({ model, backend, compile, first, ...summary(one.times) });
      }
    }
  }

  /** A backend with the model compiled and warmed up, and how many runs its turns have. */
  async #prepared(backend) {
    const { ms: compile, error, open } = await this.#calls.ask("plan", { backend, brief: true });
    if (error) throw Object.assign(new Error(error.message), { code: error.code });
    if (open) throw Object.assign(new Error("it leaves sizes of its inputs open"), { code: "input" });
    const { times: [first] } = await this.#calls.ask("time", { backend, count: 1 });
    const { times } = await this.#calls.ask("time", { backend, ...WARM_UP });
    const count = Math.min(MOST, Math.max(1, Math.round(SLICE_MS / Math.min(...times))));
    return { backend, compile, first, count, times: [] };
  }
}
