// Frames of videos whose masks stay on the GPU: the engine worker has them painted (gpu_mask.js) without asking Python.

/** What is painted, for one engine worker. `engine` is the Python object that answers messages. */
export class PaintedFrames {
  #look = null; // JSON, or null: nothing is painted
  #painter = null; // a promise of {paint, ms, close} and of {backend, reason}; null: Python has not been asked

  /** How frames are painted from now on; null: their masks are told as numbers. */
  paint(look) {
    this.#look = look && JSON.stringify(look);
  }

  /** Lets the painter go: another model, or another device, needs another one. */
  forget() {
    this.#painter?.then(({ painter }) => painter?.close(), () => {});
    this.#painter = null;
  }

  async #asked(engine) {
    return { painter: await engine.painter(), facts: JSON.parse(engine.runs_on()) };
  }

  /** The fields of `result` for a frame of a video, without its id, or null where Python has to look at it. */
  async result(engine, frame) {
    if (!this.#look) return null;
    try {
      const { painter, facts } = await (this.#painter ??= this.#asked(engine));
      const painted = await painter?.paint(frame, this.#look);
      if (!painted) return null;
      const { width, height } = painted;
      const times = { prepare_ms: 0, infer_ms: painter.ms, decode_ms: 0 };
      return { ...facts, image: { width, height }, found: [{ width, height, painted }], beside: {}, times };
    } catch { // the device is lost: Python says so, and opens another
      this.forget();
      return null;
    }
  }
}
