// Questions to the engine that are answered one by one, as promises (`ask` in webinfer/page/messages.toml).

/** What the engine, or the loss of it, says to a question; `code` is that of the engine's error. */
export class CallError extends Error {
  constructor({ code, message }) {
    super(message);
    this.code = code;
  }
}

export class Calls {
  #engine;
  #count = 0;
  #open = new Map(); // id -> {resolve, reject, step, piece}

  /** `engine` is the page's EngineClient, which passes answers and errors with a number to `answered` and `failed`. */
  constructor(engine) {
    this.#engine = engine;
  }

  /** Whether something is being worked on. */
  get busy() {
    return this.#open.size > 0;
  }

  /**
   * What the engine answers to an action with these fields: its `answer`, with `buffers` where there are such.
   * `step` hears how far it is, `piece` each piece of a text. Throws CallError.
   */
  ask(action, fields = {}, step = () => {}, piece = () => {}) {
    const id = -(this.#count += 1); // pictures count up
    return new Promise((resolve, reject) => {
      this.#open.set(id, { resolve, reject, step, piece });
      if (this.#engine.ask("ask", { id, action, fields })) return;
      this.failed({ id, code: "engine-start", message: "The engine is not running." });
    });
  }

  /** Ends what is under way at its next step; its question fails with the code "stopped". */
  stop() {
    if (this.busy) this.#engine.ask("stop");
  }

  answered({ id, answer, buffers }) {
    this.#take(id)?.resolve({ ...answer, buffers });
  }

  stepped({ id, stage, done, total }) {
    this.#open.get(id)?.step({ stage, done, total });
  }

  pieced({ id, text }) {
    this.#open.get(id)?.piece(text);
  }

  failed({ id, code, message }) {
    this.#take(id)?.reject(new CallError({ code, message }));
  }

  /** The engine is gone: nothing will be answered. */
  drop({ code, message }) {
    for (const id of [...this.#open.keys()]) this.failed({ id, code, message });
  }

  #take(id) {
    const found = this.#open.get(id);
    this.#open.delete(id);
    return found;
  }
}
