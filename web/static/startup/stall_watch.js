// Notices that downloads stand still. Quiet time is measured from the last byte of any of them, because a connection
// may carry them one after the other; and in ticks, not by the clock: a worker that computes for a minute and a laptop
// that sleeps receive nothing either.

const TICKS = 8; // in which nothing comes
const PROBES = 20; // answered ones, after which a file of which no byte can be seen is given up as well

/** Watches the downloads of one worker; `ask(signal)` is a short request that shows whether the server answers. */
export class StallWatch {
  #stallTimeoutMs;
  #ask;
  #pending = new Set(); // {seen}: whether its bytes are told by `moved`
  #controller = new AbortController();
  #timer = 0;
  #quiet = 0; // ticks since anything came
  #probes = 0;
  #probing = false;

  constructor(stallTimeoutMs, ask) {
    this.#stallTimeoutMs = stallTimeoutMs;
    this.#ask = ask;
  }

  /** Ends requests once everything stands still. */
  get signal() {
    return this.#controller.signal;
  }

  /** Bytes have come. */
  moved() {
    this.#quiet = this.#probes = 0;
  }

  /**
   * What `work()` resolves to; rejects when downloads stand still meanwhile. `seen`: whether its bytes are told by
   * `moved`. Of others it is only known when they are complete: while the server answers short requests they may be
   * on their way.
   */
  async watch(work, seen) {
    const { signal } = this;
    const entry = { seen };
    let stop;
    const stalled = new Promise((_, reject) => {
      stop = () => reject(signal.reason);
      if (signal.aborted) stop();
      signal.addEventListener("abort", stop);
    });
    this.#pending.add(entry);
    if (!this.#timer) this.#start();
    try {
      return await Promise.race([stalled, work()]);
    } catch (error) {
      throw signal.aborted ? signal.reason : error; // a reader only says that it was aborted
    } finally {
      signal.removeEventListener("abort", stop);
      this.#pending.delete(entry);
      this.moved();
      if (!this.#pending.size) this.#timer = clearInterval(this.#timer) ?? 0;
    }
  }

  #start() {
    this.moved();
    this.#timer = setInterval(() => this.#tick(), this.#stallTimeoutMs / TICKS);
  }

  #tick() {
    this.#quiet += 1;
    if (this.#quiet < TICKS || this.#probing) return;
    const unseen = [...this.#pending].some(({ seen }) => !seen);
    if (unseen && this.#probes < PROBES) this.#probe();
    else this.#stall();
  }

  async #probe() {
    this.#probing = true;
    const before = ++this.#probes;
    try {
      await this.#ask(AbortSignal.any([this.signal, AbortSignal.timeout(this.#stallTimeoutMs)]));
      this.#quiet = 0;
    } catch {
      if (this.#probes === before && this.#quiet >= TICKS && this.#pending.size) this.#stall();
    } finally {
      this.#probing = false;
    }
  }

  #stall() {
    this.#controller.abort(new Error(`nothing has come for ${Math.round(this.#stallTimeoutMs / 1000)} seconds`));
  }
}
