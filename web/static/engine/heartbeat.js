// Knows whether a worker is alive and makes progress: it is pinged every few seconds, and a caller that waits for an answer in
// vain hears of it. Ticks are counted, not seconds: a laptop that slept must not find its engine declared dead.

const TICK_MS = 2_000;
const SILENT_STARTING = 60; // ticks: compiling Python's runtime can take a slow phone a minute
const SILENT_READY = [5, 15]; // ticks, by the page's stall timeout
const SILENT_COMPUTING = 60; // ticks: a large model's first picture, or what a page asks for, may hold a slow device so long; kernels hear no ping
const OWN_TIME = "ran"; // the end of what may take as long as it likes: the user can end it
const ANSWERS = { // what a message asks for; each picture has an answer of its own
  start: "ready", select: "ready", plan: "plan", profile: "profile", tune: "tuned", exportTuning: "tuningLog", importTuning: "tuningImported",
  runCode: OWN_TIME,
};

/**
 * The signs of one worker. `on` has `ping()` to ask it for one, `silent(seconds)` when it gives none, `quiet(seconds)`
 * when it owes an answer and has said nothing else for half of `stallTimeoutMs`, and `moving()` when it has after that.
 */
export class Heartbeat {
  #quietTicks;
  #on;
  #timer = 0;
  #unanswered = 0; // ticks since the last sign
  #waited = 0; // ticks since the last message that is more than a sign
  #owed = new Set(); // types of messages, ids of pictures
  #heard = false;
  #proved = false; // whether a picture was answered with this model
  #longest = 0; // ticks without a sign, after which one came
  ready = false;

  constructor(stallTimeoutMs, on) {
    this.#quietTicks = Math.max(1, Math.round(stallTimeoutMs / 2 / TICK_MS));
    this.#on = on;
  }

  /** Begins to count. */
  start() {
    this.asked("start");
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
  }

  /** Ends counting. */
  stop() {
    clearInterval(this.#timer);
  }

  /** Notes that the worker was asked something: by a message of this type, or to look at the picture `id`. */
  asked(type, id) {
    const answer = id ?? ANSWERS[type];
    if (answer === undefined) return;
    if (!this.#owed.size) this.#waited = 0;
    if (type === "start" || type === "select") [this.#proved, this.#longest] = [false, 0];
    this.#owed.add(answer);
  }

  /** Notes a message. Of an error without a picture it is not known what it answers. */
  heard({ type, id }) {
    if (this.ready) this.#longest = Math.max(this.#longest, this.#unanswered);
    this.#unanswered = 0;
    this.#heard = true;
    this.#proved ||= type === "result";
    if (type === "pong" || type === "alive") return;
    if (this.#waited >= this.#quietTicks) this.#on.moving();
    this.#waited = 0;
    if (type === "step") return; // its answer is still to come
    const all = type === "error" && id === undefined;
    const settled = all ? [...this.#owed].filter((answer) => answer !== OWN_TIME) : [type === "started" ? ANSWERS.start : id ?? type];
    for (const answer of settled) this.#owed.delete(answer);
  }

  /** A worker that has never said anything may not even have been loaded. */
  get #silentTicks() {
    if (this.ready) {
      const computing = [...this.#owed].some((id) => typeof id === "number" && (id < 0 || !this.#proved)); // asks count down
      if (computing) return SILENT_COMPUTING;
      return Math.max(Math.min(Math.max(2 * this.#quietTicks, SILENT_READY[0]), SILENT_READY[1]), 2 * this.#longest);
    }
    return this.#heard ? SILENT_STARTING : 4 * this.#quietTicks;
  }

  #tick() {
    if (this.#owed.has(OWN_TIME)) return;
    const limit = this.#silentTicks;
    if (this.#unanswered >= limit) return this.#on.silent((limit * TICK_MS) / 1000);
    this.#unanswered += 1;
    if (this.#owed.size && ++this.#waited === this.#quietTicks) this.#on.quiet((this.#waited * TICK_MS) / 1000);
    this.#on.ping();
  }
}
