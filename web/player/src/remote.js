// A model in a worker of its own: the page's thread stays free, and threads may wait for each other there.

import { PlayerError } from "./errors.js";
import { isPicture, pixelsOf } from "./pictures.js";
import { recordingOf } from "./recordings.js";
import { startWorker } from "./workers.js";

const METHODS = ["run", "track", "reset"];
const FACTS = ["name", "task", "inputs", "outputs", "backend", "threads", "choice"];

/** Stands for a model in a worker. */
export class RemoteModel {
  static async open(starters, bytes, { onProgress, onLost, backend, threads }) {
    const model = new RemoteModel();
    model.worker = await startWorker(starters);
    model.calls = new Map();
    model.count = 0;
    model.worker.onmessage = ({ data: { id, event, value, facts, error } }) => {
      if (event) return event === "lost" ? onLost(value) : onProgress(value);
      const call = model.calls.get(id);
      model.calls.delete(id);
      Object.assign(model, facts);
      return error ? call?.reject(new PlayerError(error.code, error.message)) : call?.resolve(value);
    };
    model.worker.onerror = ({ message }) => model.end(new PlayerError("unavailable", `the player's worker failed: ${message}`));
    try {
      await model.call("load", [bytes, { backend, threads }], []);
    } catch (error) {
      model.close();
      throw error;
    }
    return model;
  }

  call(method, args, transfer) {
    if (!this.worker) return Promise.reject(new PlayerError("closed", "this package is closed; load it again"));
    return new Promise((resolve, reject) => {
      this.calls.set(++this.count, { resolve, reject });
      this.worker.postMessage({ id: this.count, method, args }, transfer);
    });
  }

  /** As Model.run of model.js. */
  async run(given, numbers = {}) {
    if (given?.constructor?.name === "AudioBuffer") return this.call("run", [recordingOf(given), numbers], []);
    return this.withPicture("run", given, numbers);
  }

  /** As Model.track of model.js. */
  track(frame, timeMs = performance.now(), numbers = {}) {
    return this.withPicture("track", frame, timeMs, numbers);
  }

  /** As Model.reset of model.js. */
  reset() {
    return this.call("reset", [], []);
  }

  /** A call whose first argument may be a picture. */
  async withPicture(method, given, ...more) {
    if (!isPicture(given) || given.constructor.name === "ImageData") return this.call(method, [given, ...more], []);
    const bitmap = await createImageBitmap(given).catch(() => pixelsOf(given));
    return this.call(method, [bitmap, ...more], bitmap instanceof ImageData ? [] : [bitmap]);
  }

  end(error) {
    for (const { reject } of this.calls?.values() ?? []) reject(error);
    this.calls?.clear();
    this.worker?.terminate();
    this.worker = null;
  }

  close() {
    this.end(new PlayerError("closed", "this package was closed"));
  }
}

/** Answers a RemoteModel. */
export function serve(load) {
  let model = null;
  const tell = (event) => (value) => self.postMessage({ event, value });
  self.onmessage = async ({ data: { id, method, args } }) => {
    if (!method) return; // this worker is a thread of the kernels
    try {
      let value;
      if (method === "load") model = await load(args[0], { ...args[1], onProgress: tell("progress"), onLost: tell("lost") });
      else if (METHODS.includes(method)) value = await model[method](...args);
      self.postMessage({ id, value, facts: Object.fromEntries(FACTS.map((fact) => [fact, model[fact]])) });
    } catch (error) {
      self.postMessage({ id, error: { code: error.code ?? "kernel", message: error.message } });
    }
  };
}
