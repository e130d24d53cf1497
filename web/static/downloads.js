// Downloads that report bytes as they come, one request each.
//
// Pyodide and Python fetch some files themselves. While `counting` runs, the worker's `fetch` is wrapped:
// the response is passed on untouched and a clone of it is counted, so nothing is downloaded twice.

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
  #report;
  #fetchPlain = self.fetch.bind(self);

  constructor(manifest, report) {
    this.#report = report;
    this.manifest = manifest;
    this.#broken = new Promise((_, reject) => (this.#break = reject));
    this.#broken.catch(() => {}); // whoever asked for the file hears of it too
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
    const url = this.url(name);
    try {
      const namespace = await import(url);
      this.came(name); // `import` shows no bytes on the way
      return namespace;
    } catch (error) {
      throw this.#failed(new DownloadError(name, url, error.message));
    }
  }

  /** The bytes of a file of the manifest. */
  async bytes(name) {
    const response = await this.#ask(name);
    const url = this.url(name);
    const bytes = new Uint8Array(this.manifest[name].bytes);
    const reader = response.body.getReader();
    this.#counted.add(url);
    for (let at = 0; ; ) {
      const { done, value } = await reader.read();
      if (done && at === bytes.length) return bytes;
      if (done || at + value.length > bytes.length) throw new DownloadError(name, url, "it is of another length than the manifest says");
      bytes.set(value, at);
      at += value.length;
      this.#add(url, value.length);
    }
  }

  /**
   * A compiled WebAssembly module of the manifest. The browser gets the response itself, nothing counts along:
   * only so it finds the machine code that it kept from an earlier visit.
   */
  async compiled(name) {
    const response = await this.#ask(name);
    try {
      const module = await WebAssembly.compileStreaming(response);
      this.came(name);
      return module;
    } catch (error) {
      throw new DownloadError(name, this.url(name), error.message);
    }
  }

  /** Counts a file as a whole. */
  came(name) {
    const url = this.url(name);
    if (!this.#counted.has(url)) this.#add(url, this.manifest[name].bytes);
    this.#counted.add(url);
  }

  async #ask(name) {
    const url = this.url(name);
    const response = await this.#fetchPlain(url).catch((error) => { throw new DownloadError(name, url, error.message); });
    if (!response.ok) throw new DownloadError(name, url, `the server answered ${response.status}`);
    return response;
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

  async #fetch(url, options) {
    const { name } = this.#files.get(url);
    let response;
    try {
      response = await this.#fetchPlain(url, options);
    } catch (error) {
      throw this.#failed(new DownloadError(name, url, error.message));
    }
    if (!response.ok) throw this.#failed(new DownloadError(name, url, `the server answered ${response.status}`));
    if (!this.#counted.has(url) && response.body) {
      this.#counted.add(url);
      this.#count(url, response.clone().body).catch(() => {}); // the reader of the original sees the error
    }
    return response;
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
