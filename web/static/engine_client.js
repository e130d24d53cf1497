// The page's end of the engine worker: messages, the newest picture first, and a supervisor.
// The messages are defined in webinfer/page/messages.toml.

import { Backpressure } from "./backpressure.js";
import { complaint, FROM_ENGINE, VERSION } from "./messages.js";

const PING_MS = 2_000;
const SILENT_STARTING = 60; // unanswered pings: compiling Python's runtime can take a slow phone a minute
const SILENT_READY = 15;
const RESTARTS = 1;

/**
 * Runs one engine worker. `on` has a function for each message from the engine but `pong`, and for `restarting`; each
 * gets the message, `result` and `error` also the tag that their picture came with.
 */
export class EngineClient {
  #settings;
  #on;
  #started; // {worker, waiting}: a worker that has been told to start, and its events so far
  #worker = null;
  #timer = 0;
  #unanswered = 0;
  #restarts = 0;
  #id = 0;
  #flying = new Map(); // id -> {tag, sent, single, answer} of the pictures in flight, in order
  #backpressure = new Backpressure();
  #waiting = null; // {image, tag} that goes next; a newer one takes its place
  ready = false;

  constructor(settings, started, on) {
    this.#settings = settings;
    this.#started = started;
    this.#on = on;
  }

  /** Whether a picture handed in now would start at once. */
  get idle() {
    return this.ready && this.#flying.size < this.#backpressure.limit && !this.#waiting;
  }

  /** Starts the worker, anew if there is one. */
  start() {
    this.#end();
    const { worker, waiting } = this.#started ?? this.#fresh();
    this.#started = null;
    this.#worker = worker;
    worker.onmessage = ({ data }) => this.#receive(data);
    worker.onerror = (event) => {
      event.preventDefault();
      this.#fail("worker", `The engine's worker failed: ${event.message ?? "its script engine_worker.js could not be loaded"}.`, this.ready);
    };
    this.#timer = setInterval(() => this.#ping(), PING_MS);
    for (const event of waiting) worker[`on${event.type}`](event);
  }

  #fresh() {
    const worker = new Worker(this.#settings.manifest["static/engine_worker.js"].url, { type: "module", name: "webinfer engine" });
    worker.postMessage({ v: VERSION, type: "start", ...this.#settings });
    return { worker, waiting: [] };
  }

  /** A start on the user's wish: the supervisor's budget is fresh again. */
  restart() {
    this.#restarts = 0;
    this.start();
  }

  /** Hands in a picture (ImageBitmap or VideoFrame, transferred). The newest wins over those that wait. */
  detect(image, tag) {
    this.#waiting?.image.close();
    this.#waiting = { image, tag };
    this.#next();
  }

  /** Drops the picture that waits, if any. */
  drop() {
    this.#waiting?.image.close();
    this.#waiting = null;
  }

  /** Changes the backend; `ready` follows. Starts the engine if it had given up. */
  select(backend) {
    this.#settings = { ...this.#settings, backend };
    if (!this.#worker) return this.restart();
    this.ready = false; // until the worker says so again; it takes its messages in order
    this.#post("select", { backend });
  }

  /** Asks for the plan; `plan` follows. */
  plan() {
    if (this.ready) this.#post("plan");
  }

  /** Asks for a measurement; `profiling` and `profile` follow. Whether it could be asked for. */
  profile() {
    if (this.ready) this.#post("profile");
    return this.ready;
  }

  /** Asks for a tuning (tune), or for its log (exportTuning, importTuning). Whether it could be asked for. */
  ask(type, fields) {
    if (this.ready) this.#post(type, fields);
    return this.ready;
  }

  #post(type, fields = {}, transfer = []) {
    this.#worker.postMessage({ v: VERSION, type, ...fields }, transfer);
  }

  #next() {
    if (!this.ready || this.#flying.size >= this.#backpressure.limit || !this.#waiting) return;
    const { image, tag } = this.#waiting;
    this.#waiting = null;
    for (const other of this.#flying.values()) other.single = false;
    this.#flying.set(++this.#id, { tag, sent: performance.now(), single: this.#flying.size === 0, answer: null });
    this.#post("detect", { id: this.#id, image }, [image]);
  }

  /** Passes answers on in the order of their pictures. */
  #answered(message) {
    const own = this.#flying.get(message.id);
    if (!own) return;
    own.answer = message;
    this.#backpressure.landed(performance.now() - own.sent, own.single);
    for (const [id, { tag, answer }] of this.#flying) {
      if (!answer) break;
      this.#flying.delete(id);
      this.#on[answer.type](answer, tag);
    }
  }

  #receive(message) {
    this.#unanswered = 0;
    if (message.type === "pong") return;
    const wrong = complaint(message, FROM_ENGINE);
    if (wrong) return this.#fail("protocol", `The page does not understand its engine: ${wrong}. Reload the page.`, false);
    if (message.type === "error") return this.#error(message);
    if (message.type === "ready") {
      this.ready = true;
      this.#backpressure = new Backpressure(message.overlaps);
      this.#on.ready(message);
    } else if (message.type === "result") {
      this.#answered(message);
    } else {
      this.#on[message.type](message);
    }
    this.#next();
  }

  #error(message) {
    if (message.fatal) return this.#fail(message.code, message.message, message.died);
    if (message.id !== undefined) this.#answered(message);
    else this.#on.error(message);
    this.#next();
  }

  #ping() {
    const limit = this.ready ? SILENT_READY : SILENT_STARTING;
    // Ticks are counted, not seconds: a laptop that slept must not find its engine declared dead.
    if (this.#unanswered >= limit) {
      this.#fail("engine-silent", `The engine has not answered for ${(limit * PING_MS) / 1000} seconds.`, true);
      return;
    }
    this.#unanswered += 1;
    this.#post("ping");
  }

  #fail(code, message, restartable) {
    this.#end();
    if (restartable && this.#restarts < RESTARTS) {
      this.#restarts += 1;
      this.#on.restarting({ code, message });
      this.start();
    } else {
      this.#on.error({ code, message, fatal: true });
    }
  }

  #end() {
    clearInterval(this.#timer);
    this.#worker?.terminate();
    this.#worker = null;
    this.#unanswered = 0;
    this.#flying.clear();
    this.ready = false;
  }
}
