// Ways to a system: a worker of its own, or the server for native LiteRT. Both answer the calls of runner.js.

const CLASSIC = new Set(["litertjs", "tfjs"]);
let limit = 300_000; // ms for one call; a system that hangs becomes an error row

/** Sets how long one call may take, ms. */
export function setLimit(ms) {
  limit = ms ?? limit;
}

/** What a call of a system comes to, within the limit. */
export async function deadline(method, answer) {
  let clock;
  const late = new Promise((_, reject) => {
    clock = setTimeout(() => reject(new Error(`${method} took more than ${limit / 1000} s`)), limit);
  });
  return Promise.race([answer, late]).finally(() => clearTimeout(clock));
}

/** A worker with one system, called by message. */
export class Remote {
  #calls = new Map();
  #next = 1;

  constructor(system, url = new URL(`./worker.js?system=${system}`, import.meta.url)) {
    this.worker = new Worker(url, { type: CLASSIC.has(system) ? "classic" : "module", name: system });
    this.ready = new Promise((resolve, reject) => this.#calls.set(0, { resolve, reject }));
    this.worker.onmessage = ({ data }) => {
      const call = this.#calls.get(data.id);
      this.#calls.delete(data.id);
      if ("error" in data) call?.reject(new Error(data.error));
      else call?.resolve(data.value);
    };
    this.worker.onerror = (event) => {
      event.preventDefault();
      for (const call of this.#calls.values()) call?.reject(new Error(event.message || "the worker died"));
    };
  }

  call(method, options = {}, transfer = []) {
    return deadline(method, this.ready.then(() => new Promise((resolve, reject) => {
      const id = this.#next++;
      this.#calls.set(id, { resolve, reject });
      this.worker.postMessage({ id, method, options }, transfer);
    })));
  }

  end() {
    this.worker.terminate();
  }
}

/** Native LiteRT behind the server: the same calls, answered by Python. */
export class Native {
  constructor(entry) {
    this.entry = entry;
  }

  async call(method, options = {}) {
    const body = JSON.stringify({ ...options, model: options.model?.name, threads: this.entry.threads, method });
    const answer = await (await fetch("native", { method: "POST", body })).json();
    if (answer.error) throw new Error(answer.error);
    return answer.value;
  }

  end() {
    this.call("close").catch(() => {});
  }
}
