// Downloads that report bytes as they come. Each file is checked against the manifest before anybody gets it; one that
// is damaged is asked for once more, past the browser's cache.
//
// Pyodide and Python fetch some files themselves: while `counting` runs, the worker's `fetch` is wrapped.

import { ask, bytesOf, complaintOf, IntegrityError, vouched } from "./integrity.js";
import { compiled } from "./wasm_modules.js";
import { StallWatch } from "./stall_watch.js";

const STAGES = { pyodide: "Python", python: "Engine", snapshot: "Engine", kernels: "Kernels" }; // folder -> stage

/** A file that could not be downloaded; `code` is "download". */
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
  #begun;
  #unchecked = new Set(); // names of scripts
  #broken;
  #break; // rejects #broken
  #still;
  #stall; // rejects #still
  #report;
  #watch;
  #fetchPlain = self.fetch.bind(self);

  /**
   * `stallTimeoutMs`: how long nothing may come while anything is missing. `begun`: what has been asked for before by `ask` of
   * integrity.js, name -> promise.
   */
  constructor(manifest, stallTimeoutMs, report, begun = new Map()) {
    this.#begun = begun;
    this.#report = report;
    const [{ url }] = Object.values(manifest);
    const asking = { method: "HEAD", cache: "no-store", priority: "high" };
    this.#watch = new StallWatch(stallTimeoutMs, (signal) => this.#fetchPlain(url, { ...asking, signal }));
    this.manifest = manifest;
    this.#broken = new Promise((_, reject) => (this.#break = reject));
    this.#still = new Promise((_, reject) => (this.#stall = reject));
    for (const promise of [this.#broken, this.#still]) promise.catch(() => {}); // the caller that asked for the file gets the error too
    for (const [name, file] of Object.entries(manifest)) this.#files.set(this.url(name), { name, bytes: file.bytes });
  }

  /** Whether the manifest has the file. */
  has = (name) => Object.hasOwn(this.manifest, name);

  /** Takes more files in, rows {url, bytes, sha256} by name; their absolute URLs by name. */
  add(rows) {
    const urls = Object.fromEntries(Object.entries(rows).map(([name, { url }]) => [name, new URL(url, self.location.href).href]));
    for (const [name, url] of Object.entries(urls)) {
      this.manifest = { ...this.manifest, [name]: { ...rows[name], url } };
      this.#files.set(url, { name, bytes: rows[name].bytes });
    }
    return urls;
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

  /** The namespace of a JavaScript module of the manifest, which `check` checks later, or now if it cannot be imported. */
  async module(name) {
    this.check(name);
    try {
      return await this.#watched(name, false, () => import(this.url(name)));
    } catch (error) {
      throw this.#failed(await this.checked().then(() => error, (reason) => reason));
    }
  }

  /** Puts a script that the browser loads by itself on the list of those that are to be checked. */
  check(name) {
    this.#unchecked.add(name);
  }

  /** Checks all scripts on that list: by requests of their own, which the browser answers from its cache and which would hold up a start. */
  async checked() {
    const names = [...this.#unchecked];
    this.#unchecked.clear();
    await Promise.all(names.map((name) => this.#script(name)));
  }

  /** Checks a script that the browser loads, or has loaded, by itself. What it ran cannot be taken back. */
  async #script(name) {
    const ask = () => vouched(this.#fetchPlain, this.manifest[name], { signal: this.#watch.signal });
    if (await this.#watch.watch(ask, false).catch(() => false)) return this.came(name); // else it is asked for here
    const { wrong } = await this.#intact(name);
    if (!wrong) console.warn(`${name} came damaged, or not, at first: which it was the browser does not say`);
    throw new IntegrityError(name, this.url(name), wrong || "the browser did not find it whole at first", true);
  }

  /** The bytes of a file of the manifest. */
  async bytes(name) {
    return (await this.#intact(name)).bytes;
  }

  /** A compiled WebAssembly module. The browser gets the response itself: only so it finds the machine code it kept. */
  async compiled(name) {
    return (await this.#intact(name, compiled)).made;
  }

  /** Whether this file was requested before these Downloads existed. */
  asked = (name) => this.#begun.has(name);

  /** What `promise` resolves to: this file, which other code is downloading. */
  elsewhere(name, promise) {
    return this.#watched(name, false, () => promise);
  }

  /** Counts a file as a whole. */
  came(name) {
    const url = this.url(name);
    if (!this.#counted.has(url)) this.#add(url, this.manifest[name].bytes);
    this.#counted.add(url);
  }

  /**
   * A file's `bytes`, what `make` has `made` of the response, and what was `wrong` with the browser's own copy, if
   * that is not the one.
   */
  #intact(name, make) {
    return this.#watched(name, !make, async () => {
      let wrong = "";
      for (const cache of ["default", "reload"]) {
        const { bytes, making, found } = await this.#answer(name, cache, make);
        if (!found) return { bytes, made: await making, wrong };
        wrong = found;
        console.warn(`${name} came damaged, ${wrong}${cache === "default" ? "; it is asked for again" : ""}`);
      }
      throw new IntegrityError(name, this.url(name), wrong);
    });
  }

  /** The bytes of one answer, what is being made of it, and what was found wrong with it. */
  async #answer(name, cache, make) {
    const asked = this.#begun.get(name);
    this.#begun.delete(name);
    const response = await (asked ?? ask(this.#fetchPlain, this.url(name), this.manifest[name], { cache, signal: this.#watch.signal }));
    if (!response) return { found: "the browser found another SHA-256 than the published one" };
    const copy = make ? response.clone() : response;
    const making = make?.(response);
    making?.catch(() => {}); // of damaged bytes
    const url = this.url(name);
    this.#counted.add(url);
    const bytes = await bytesOf(copy, this.manifest[name].bytes, (more) => this.#add(url, more));
    return { bytes, making, found: await complaintOf(bytes, this.manifest[name]) };
  }

  /** What `work` resolves to; throws DownloadError if it fails, or if all downloads stand still. */
  async #watched(name, seen, work) {
    try {
      return await this.#watch.watch(work, seen);
    } catch (error) {
      if (error instanceof IntegrityError) throw error;
      const failure = new DownloadError(name, this.url(name), error.message);
      if (this.stalled) this.#stall(this.#failed(failure));
      throw failure;
    }
  }

  /** What `work` returns, with every fetch of a known file counted meanwhile. */
  async counting(work) {
    const original = self.fetch;
    self.fetch = (input, options) => {
      const url = new URL(input instanceof Request ? input.url : input, self.location.href).href;
      const whole = this.#files.has(url) && !options?.headers?.Range; // who asks for a part checks it
      return whole ? this.#fetch(url) : this.#fetchPlain(input, options);
    };
    try {
      return await work();
    } finally {
      self.fetch = original;
    }
  }

  /** What `promise` resolves to; rejects with the first download that fails before, for which Pyodide waits for ever. */
  untilBroken(promise) {
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

  #fetch(url) {
    return this.bytes(this.#files.get(url).name).then((bytes) => new Response(bytes), (error) => Promise.reject(this.#failed(error)));
  }

  #failed(error) {
    this.#break(error);
    return error;
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
