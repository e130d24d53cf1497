// Downloads that report bytes as they come, one request each.
//
// Pyodide and Python fetch some files themselves. While `counting` runs, the worker's `fetch` is wrapped:
// the response is passed on untouched and a clone of it is counted, so nothing is downloaded twice.

import { StallWatch } from "./stall_watch.js";

const STAGES = { pyodide: "Python", python: "Engine", snapshot: "Engine", kernels: "Kernels" }; // folder -> stage

/** A file that could not be had; `code` is "download". */
export class DownloadError extends Error {
  code = "download";

  constructor(name, url, found) {
    super(`${name} could not be downloaded from ${url}: ${found}. Check the connection and that the server serves the whole site, then try again.`);
  }
}

/** The files of the manifest (URLs are absolute here), with progress per stage. `report({stage, done, total, unit})`. */
export class Downloads {
  #files = new Map(); // absolute URL -> {name, bytes}
  #stages = new Map(); // stage -> {done, total}
  #expected = new Set(); // absolute URLs whose bytes are in a total
  #counted = new Set();
  #broken;
  #break; // rejects #broken
  #still;
  #stall; // rejects #still
  #report;
  #watch;
  #fetchPlain = self.fetch.bind(self);

  /** `patienceMs`: how long nothing may come while anything is missing. */
  constructor(manifest, patienceMs, report) {
    this.#report = report;
    const [{ url }] = Object.values(manifest);
    const asking = { method: "HEAD", cache: "no-store", priority: "high" };
    this.#watch = new StallWatch(patienceMs, (signal) => this.#fetchPlain(url, { ...asking, signal }));
    this.manifest = manifest;
    this.#broken = new Promise((_, reject) => (this.#break = reject));
    this.#still = new Promise((_, reject) => (this.#stall = reject));
    for (const promise of [this.#broken, this.#still]) promise.catch(() => {}); // whoever asked for the file hears of it too
    for (const [name, file] of Object.entries(manifest)) this.#files.set(this.url(name), { name, bytes: file.bytes });
  }

  /** Whether the manifest has the file. */
  has(name) {
    return Object.hasOwn(this.manifest, name);
  }

  /** The absolute URL of a file of the manifest. */
  url(name) {
    if (!this.has(name)) throw new Error(`${name} is not in this site's manifest; build the site again`);
    return new URL(this.manifest[name].url).href;
  }

  /** Puts files into the totals of their stages before their first byte. */
  expect(...names) {
    for (const name of names) this.#expect(this.url(name));
  }

  /** Ends a stage: what was expected and not asked for was not needed. */
  complete(stage) {
    const totals = this.#stages.get(stage);
    totals.total = totals.done;
    this.#say(stage);
  }

  /** The namespace of a JavaScript module of the manifest. */
  async module(name) {
    try {
      const namespace = await this.#watched(name, false, () => import(this.url(name)));
      this.came(name); // `import` shows no bytes on the way
      return namespace;
    } catch (error) {
      throw this.#failed(error);
    }
  }

  /** The bytes of a file of the manifest. */
  async bytes(name) {
    const url = this.url(name);
    const bytes = new Uint8Array(this.manifest[name].bytes);
    await this.#whole(name, true, async (response) => {
      const reader = response.body.getReader();
      this.#counted.add(url);
      for (let at = 0; ; ) {
        const { done, value } = await reader.read();
        if (done && at === bytes.length) return;
        if (done || at + value.length > bytes.length) throw new Error("it is of another length than the manifest says");
        bytes.set(value, at);
        at += value.length;
        this.#add(url, value.length);
      }
    });
    return bytes;
  }

  /**
   * A compiled WebAssembly module of the manifest. The browser gets the response itself, nothing counts along:
   * only so it finds the machine code that it kept from an earlier visit.
   */
  async compiled(name) {
    const module = await this.#whole(name, false, WebAssembly.compileStreaming);
    this.came(name);
    return module;
  }

  /** What `promise` resolves to: this file, which somebody else is asking for. */
  elsewhere(name, promise) {
    return this.#watched(name, false, () => promise);
  }

  /** Counts a file as a whole. */
  came(name) {
    const url = this.url(name);
    if (!this.#counted.has(url)) this.#add(url, this.manifest[name].bytes);
    this.#counted.add(url);
  }

  /** What `take` makes of the answer to a request for the file. */
  #whole(name, seen, take) {
    return this.#watched(name, seen, async () => {
      const response = await this.#fetchPlain(this.url(name), { signal: this.#watch.signal });
      if (!response.ok) throw new Error(`the server answered ${response.status}`);
      return take(response);
    });
  }

  /** What `work` resolves to; throws DownloadError if it fails, or if all downloads stand still. */
  async #watched(name, seen, work) {
    try {
      return await this.#watch.watch(work, seen);
    } catch ({ message }) {
      const error = new DownloadError(name, this.url(name), message);
      if (this.stalled) this.#stall(this.#failed(error));
      throw error;
    }
  }

  /** What `work` returns, with every fetch of a known file counted meanwhile. */
  async counting(work) {
    const original = self.fetch;
    self.fetch = (input, options) => {
      const url = new URL(input instanceof Request ? input.url : input, self.location.href).href;
      return this.#files.has(url) ? this.#fetch(url, options) : this.#fetchPlain(input, options);
    };
    try {
      return await work();
    } finally {
      self.fetch = original;
    }
  }

  /**
   * What `promise` resolves to; rejects with the first download that fails before. Pyodide only prints that
   * its runtime did not come, and then waits for ever.
   */
  unbroken(promise) {
    return Promise.race([this.#broken, promise]);
  }

  /** Whether downloads stood still, so that none can be had any more. */
  get stalled() {
    return this.#watch.signal.aborted;
  }

  /** What `promise` resolves to; rejects when downloads stand still before. Other failures are left to who asked. */
  flowing(promise) {
    return Promise.race([this.#still, promise]);
  }

  async #fetch(url, options) {
    const { name } = this.#files.get(url);
    const { signal } = this.#watch;
    try {
      const response = await this.#watched(name, true, () => this.#fetchPlain(url, { ...options, signal }));
      if (!response.ok) throw new DownloadError(name, url, `the server answered ${response.status}`);
      if (!this.#counted.has(url) && response.body) {
        this.#counted.add(url);
        const { body } = response.clone();
        this.#watched(name, true, () => this.#count(url, body)).catch(() => {}); // the reader of the original sees it
      }
      return response;
    } catch (error) {
      throw this.#failed(error);
    }
  }

  #failed(error) {
    this.#break(error);
    return error;
  }

  async #count(url, body) {
    const reader = body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      this.#add(url, value.byteLength);
    }
  }

  /** The stage of a file, which counts in its total from now on; undefined if it has none. */
  #expect(url) {
    const { name, bytes } = this.#files.get(url);
    const stage = STAGES[name.split("/")[0]];
    if (!stage || this.#expected.has(url)) return stage;
    this.#expected.add(url);
    const totals = this.#stages.get(stage) ?? { done: 0, total: 0 };
    this.#stages.set(stage, totals);
    totals.total += bytes;
    this.#say(stage);
    return stage;
  }

  #add(url, bytes) {
    this.#watch.moved();
    const stage = this.#expect(url);
    if (!stage) return;
    const totals = this.#stages.get(stage);
    totals.done = Math.min(totals.done + bytes, totals.total);
    this.#say(stage);
  }

  #say(stage) {
    this.#report({ stage, ...this.#stages.get(stage), unit: "bytes" });
  }
}
