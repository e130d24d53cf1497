// The page's end of the engine worker: messages, the newest picture first, and a supervisor.
// The messages are defined in webinfer/page/messages.toml.

import { Backpressure } from "./backpressure.js";
import { EngineThreads } from "./engine_threads.js";
import { Heartbeat } from "./heartbeat.js";
import { complaint, FROM_ENGINE, VERSION } from "./messages.js";

const RESTARTS = 1;

/** "starting", "ready" or "failed", for programs that drive the page: html[data-state=ready]. */
const state = (name) => (document.documentElement.dataset.state = name);

/** What is handed over, not copied: pictures. */
const owned = (given) => (given?.close ? [given] : []);

/**
 * Runs one engine worker. `on` has a function for each message from the engine but `alive` and `pong`; each gets the
 * message, `result` and `error` also the tag that their picture came with. `on.restarting` hears why the engine is
 * started again, `on.quiet` that an answer is being waited for in vain, `on.moving` that there is one again.
 */
export class EngineClient {
  #settings;
  #on;
  #started; // {worker, waiting, stop}: a worker that has been told to start, its events so far, how to end its downloads
  #cause; // by first.js: {code, message} of what is behind a failure, or null
  #worker = null;
  #threads = new EngineThreads(() => this.#settings.manifest["static/thread_worker.js"].url, (failure) => this.#worker && this.#post("threadFailed", failure));
  #life = null; // AbortController: nothing that an ended worker says is heard
  #heartbeat = null;
  #restarts = 0;
  #selected = 0; // models that were asked for and not answered yet
  #id = 0;
  #flying = new Map(); // id -> {tag, sent, single, answer} of the pictures in flight, in order
  #backpressure = new Backpressure();
  #waiting = null; // {given, tag, live} that goes next; a newer one takes its place

  constructor(settings, started, on) {
    this.#settings = settings;
    this.#started = started;
    this.#cause = started.cause;
    this.#on = on;
  }

  /** Whether the engine has said what it runs on. */
  get ready() {
    return this.#heartbeat?.ready ?? false;
  }

  /** Whether there is an engine, if only one that starts. */
  get exists() {
    return this.#worker !== null;
  }

  /** Whether there is a model to look at things with: a known one, or the user's. */
  get modelled() {
    return Boolean(this.#settings.model || this.#settings.files);
  }

  /** Whether a picture handed in now would start at once. */
  get idle() {
    return this.ready && this.#flying.size < this.#backpressure.limit && !this.#waiting;
  }

  /** Starts the worker, anew if there is one. */
  start() {
    this.#end();
    this.#selected = 0;
    state("starting");
    const { worker, waiting, stop } = this.#started ?? this.#fresh();
    this.#started = null;
    this.#worker = worker;
    this.#life = new AbortController();
    const { signal } = this.#life;
    signal.addEventListener("abort", stop);
    const silent = (seconds) =>
      this.#fail("engine-silent", `The engine has not answered for ${seconds} seconds.`, true);
    const { quiet, moving } = this.#on;
    this.#heartbeat = new Heartbeat(this.#settings.stallTimeout, { ping: () => this.#post("ping"), silent, quiet, moving });
    this.#heartbeat.start();
    worker.onmessage = worker.onerror = null; // first.js kept its events
    for (const type of ["message", "messageerror", "error"]) worker.addEventListener(type, (event) => this.#hear(event), { signal });
    for (const event of waiting) if (!signal.aborted) this.#hear(event);
  }

  #fresh() {
    const worker = new Worker(this.#settings.manifest["static/engine_worker.js"].url, { type: "module", name: "webinfer engine" });
    this.#settings = { ...this.#settings, life: `webinfer engine ${Math.random()}` };
    worker.postMessage({ v: VERSION, type: "start", ...this.#settings });
    return { worker, waiting: [], stop: () => {} };
  }

  #hear(event) {
    if (event.type === "message") return this.#receive(event.data);
    event.preventDefault();
    const unread = event.type === "messageerror" ? "it sent unreadable data" : "its script engine_worker.js could not be loaded";
    this.#fail("worker", `The engine's worker failed: ${event.message ?? unread}.`, this.ready);
  }

  /** Hears of the worker's end even if nobody says so: it holds a lock as long as it lives. */
  async #watchLife() {
    const { signal } = this.#life;
    const ended = () => signal.aborted || this.#fail("engine-died", "The engine's worker ended without an error message.", true);
    await navigator.locks.request(this.#settings.life, { signal }, ended).catch(() => {}); // withdrawn
  }

  /** A start on the user's wish: the supervisor's budget is fresh again. */
  restart() {
    this.#restarts = 0;
    this.start();
  }

  /**
   * Hands in a picture (transferred) or what else the task takes; `live`: as one of many; `file`: {width, height} of a file
   * that it is a smaller copy of. The newest wins over those that wait.
   */
  detect(given, tag, live, file) {
    this.drop();
    this.#waiting = { given, tag, live, file };
    this.#next();
  }

  /** Drops what waits, if anything does. */
  drop() {
    this.#waiting?.given.close?.();
    this.#waiting = null;
  }

  /** Changes what runs, some of {backend, model, options, files}; `ready` follows. Starts the engine if it had given up. */
  select(wanted) {
    this.#settings = { ...this.#settings, ...wanted };
    if (!this.#worker) return this.restart();
    state("starting");
    this.#heartbeat.ready = false; // until the worker says so again; it takes its messages in order
    this.#selected += 1;
    const { backend, model, options, files } = this.#settings;
    this.#post("select", { backend, model, options, files });
  }

  /** Has frames of videos painted as `look` says, where their masks stay on the GPU; null: never. */
  paint(look) {
    if (this.ready) this.#post("paint", { look });
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

  /** Asks for a tuning (tune), for its log (exportTuning, importTuning), or as engine_calls.js. Whether it could be asked for. */
  ask(type, fields) {
    if (this.ready) this.#post(type, fields);
    return this.ready;
  }

  /**
   * Runs Python on a picture (transferred) or what else the page shows; `printed` and `shown`, then `ran` follow. `foreign`:
   * it came with a link, and reaches nothing that the site keeps. Whether it could be asked for.
   */
  runCode(code, given, foreign) {
    if (this.ready) this.#post("runCode", { code, given, foreign }, owned(given));
    return this.ready;
  }

  /** Ends whatever the engine does: another takes its place. */
  replace(why) {
    this.#end();
    this.#on.restarting(why);
    this.start();
  }

  #post(type, fields = {}, transfer = []) {
    this.#heartbeat.asked(type, fields.id);
    this.#worker.postMessage({ v: VERSION, type, ...fields }, transfer);
  }

  #next() {
    if (!this.ready || !this.modelled || this.#flying.size >= this.#backpressure.limit || !this.#waiting) return;
    const { given, tag, live, file } = this.#waiting;
    this.#waiting = null;
    for (const other of this.#flying.values()) other.single = false;
    this.#flying.set(++this.#id, { tag, sent: performance.now(), single: this.#flying.size === 0, answer: null });
    this.#post("detect", { id: this.#id, given, live, file }, owned(given));
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
    this.#heartbeat.heard(message);
    if (message.type === "pong" || message.type === "kept") return; // first.js hears of what is kept
    if (message.type === "alive") return this.#watchLife();
    if (message.type === "thread") return this.#threads.start(message);
    if (message.type === "endThread") return this.#threads.end(message);
    const wrong = complaint(message, FROM_ENGINE);
    if (wrong) return this.#fail("protocol", `The page does not understand its engine: ${wrong}. Reload the page.`, false);
    if (message.type === "error") return this.#error(message);
    if (message.type === "ready" || message.type === "started") {
      this.#heartbeat.ready = true;
      this.#selected = Math.max(this.#selected - 1, 0);
      if (message.type === "started" && !this.#selected) this.#settings = { ...this.#settings, files: undefined }; // refused
      state("ready");
      this.#backpressure = new Backpressure(message.overlaps);
      this.#next(); // the picture that waits is looked at while the page shows what it hears
      this.#on[message.type](message);
    } else if (message.type === "settled") {
      this.#backpressure = new Backpressure(message.overlaps);
      this.#on.settled(message);
    } else if (message.type === "result") {
      this.#answered(message);
    } else {
      this.#on[message.type](message);
    }
    this.#next();
  }

  #error(message) {
    if (message.fatal) return this.#fail(message.code, message.message, message.died);
    if (this.#flying.has(message.id)) this.#answered(message);
    else this.#on.error(message);
    this.#next();
  }

  #fail(code, message, restartable) {
    this.#end();
    const cause = this.#cause?.();
    if (cause) {
      state("failed");
      this.#on.error({ ...cause, fatal: true });
    } else if (restartable && this.#restarts < RESTARTS) {
      this.#restarts += 1;
      this.#on.restarting({ code, message });
      this.start();
    } else {
      state("failed");
      this.#on.error({ code, message, fatal: true });
    }
  }

  #end() {
    this.#heartbeat?.stop();
    this.#life?.abort();
    this.#worker?.terminate();
    this.#threads.endAll();
    this.#worker = this.#heartbeat = null;
    this.#flying.clear();
  }
}
