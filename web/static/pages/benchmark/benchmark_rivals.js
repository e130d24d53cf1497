// Runtimes of others on the page "Benchmark", where the server has them: each in a worker of its own, made for one model on
// one backend. Every question to them has a deadline: what hangs becomes a row that says so.

import { byId, el } from "../../ui/dom.js";

const LIMIT_MS = 60_000; // of one question
const WARM_UP = { ms: 600, runs: 3 };
const SLICE_MS = 60; // of a turn
const MOST = 20; // runs of a turn
const FORMATS = { litertjs: ["tflite"], ortweb: ["onnx"], tfjs: ["tflite", "onnx"] };

/** The rivals of a server, or null where it has none. `index` is the address of what it says of them. */
export async function readRivals(index) {
  if (!index) return null;
  const url = new URL(index, document.baseURI);
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${index} returned ${answer.status}.`);
  const { systems, models } = await answer.json();
  const { Remote, setLimit } = await import(new URL("remote.js", url).href);
  setLimit(LIMIT_MS);
  return new Rivals(systems, models, Remote);
}

class Rivals {
  #Remote;
  #models;
  systems; // {name: title}
  threads = 1; // of those that run on wasm

  constructor(systems, models, Remote) {
    Object.assign(this, { systems });
    this.#models = models;
    this.#Remote = Remote;
  }

  /** Offers them as boxes; `chosen` names those that are ticked, null for all. */
  offer(chosen) {
    byId("rivals").append(...Object.entries(this.systems).map(([name, title]) =>
      el("label", {}, el("input", { type: "checkbox", value: name, checked: !chosen || chosen.includes(name) }), ` ${title}`)));
  }

  /** What rows of these systems on these backends are called, by their `backend`. */
  titles(backends) {
    return Object.fromEntries(Object.entries(this.systems).flatMap(([name, title]) =>
      Object.entries(backends).map(([backend, own]) => [`${name} ${backend}`, `${title}, ${own}`])));
  }

  /** Why a system is not given a model, or "" if it is. */
  #refused(system, model) {
    if (!model) return "this site does not have the model in a format that it reads";
    if (system === "ortweb" && model.onnx) return ""; // the model, or its ONNX version
    if (!FORMATS[system].includes(model.format)) return `it reads no .${model.format} files`;
    return system === "tfjs" && !model.tfjs ? model.tfjs_why || "it lacks one of the model’s operators" : "";
  }

  /** The systems on these backends: each opens a model when it is asked to, or says why it does not. */
  on(model, systems, backends) {
    return systems.flatMap((system) => backends.map((backend) => ({
      backend: `${system} ${backend}`, prepared: () => this.#prepared(system, backend, this.#models[model]),
    })));
  }

  async #prepared(system, backend, model) {
    const refused = this.#refused(system, model);
    if (refused) throw new Error(refused);
    const remote = new this.#Remote(system);
    try {
      await remote.call("start", { threads: backend === "wasm" ? this.threads : 1, backend });
      const { load_ms: compile, first_run_ms: first } = await remote.call("load", { model });
      const { run_ms: least } = await remote.call("warm", WARM_UP);
      const runs = Math.min(MOST, Math.max(1, Math.round(SLICE_MS / least)));
      return { compile, first, turn: async () => (await remote.call("turn", { runs })).times, end: () => remote.end() };
    } catch (error) {
      remote.end();
      throw error;
    }
  }
}
