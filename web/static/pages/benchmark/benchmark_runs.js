// The measurement: model by model, its backends in turns, and rivals among them.

import { nameOf } from "../../ui/model_names.js";
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
  #beside;
  #stopped = false;

  /**
   * `beside(model)`: the rivals that are measured with a model, each {backend, prepared} (benchmark_rivals.js).
   * `on.step({done, total, text})` hears how far it is, `on.row(row)` of each result as soon as it is there.
   */
  constructor(calls, on, beside = () => []) {
    this.#calls = calls;
    this.#beside = beside;
    this.#on = on;
  }

  /** Ends it; what was measured so far stays. */
  stop() {
    this.#stopped = true;
    this.#calls.stop();
  }

  /** Measures; whether it came to its end. */
  async run(models, backends, rounds) {
    const total = models.reduce((sum, model) => sum + 1 + backends.length + this.#beside(model).length + rounds, 0);
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
    const said = (done) => `${nameOf(model)}: ${done}`;
    step(said("opening"));
    await this.#calls.ask("open", { name: model });
    const own = backends.map((backend) => ({ backend, prepared: () => this.#prepared(backend) }));
    const ready = [];
    try {
      for (const { backend, prepared } of [...own, ...this.#beside(model)]) {
        step(said(`compiling for ${backend}`));
        try {
          ready.push({ backend, times: [], ...await prepared() });
        } catch (error) {
          if (this.#stopped || error.code === "stopped" || error.code?.startsWith("engine-")) throw error;
          this.#on.row({ model, backend, error: error.message.slice(0, 200) });
        }
      }
      for (let round = 0; round < rounds; round += 1) {
        step(said(`round ${round + 1} of ${rounds}`));
        await this.#round(model, round % 2 ? [...ready].reverse() : [...ready], ready); // nobody is always the first
      }
    } finally {
      for (const { end } of ready) end?.();
    }
  }

  /** A turn of each; a rival that fails is left out of later rounds. */
  async #round(model, order, ready) {
    for (const one of order) {
      const { backend, compile, first, turn, end, times } = one;
      try {
        times.push(...await turn());
        this.#on.row({ model, backend, compile, first, ...summary(times) });
      } catch (error) {
        if (!end || this.#stopped) throw error;
        end();
        ready.splice(ready.indexOf(one), 1);
        this.#on.row({ model, backend, error: error.message.slice(0, 200) });
      }
    }
  }

  /** A backend with the model compiled and warmed up, and its turns. */
  async #prepared(backend) {
    const { ms: compile, error, open } = await this.#calls.ask("plan", { backend, brief: true });
    if (error) throw Object.assign(new Error(error.message), { code: error.code });
    if (open) throw Object.assign(new Error("it leaves sizes of its inputs open"), { code: "input" });
    const { times: [first] } = await this.#calls.ask("time", { backend, count: 1 });
    const { times } = await this.#calls.ask("time", { backend, ...WARM_UP });
    const count = Math.min(MOST, Math.max(1, Math.round(SLICE_MS / Math.min(...times))));
    const turn = async () => (await this.#calls.ask("time", { backend, count, budget_ms: 1000 })).times;
    return { compile, first, turn };
  }
}
