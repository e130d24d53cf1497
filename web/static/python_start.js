// Starts Python with the engine in it: from the memory snapshot that set-up made, or, where that cannot be
// had or does not fit, the long way, by Pyodide's own start and the engine's wheels.

import { forget, keep, keeps, kept, note } from "./kept_files.js";
import { RuntimeRest } from "./python_rest.js";
import { makeRoom, readSnapshot, restore } from "./python_snapshot.js";

const RUNTIME = "pyodide/pyodide.asm.wasm";
const REST = "pyodide/pyodide.rest.wasm"; // not there if the runtime is one file
const LOADER = "pyodide/pyodide.mjs";
const GLUE = "pyodide/pyodide.asm.mjs";
const STDLIB = "pyodide/python_stdlib.zip";
const LOCK = "python/pyodide-lock.json";
const SNAPSHOT = "snapshot/webinfer.bin";

let early = null; // promise of the bytes of a kept snapshot, or of null
let unkept = null; // the bytes of a snapshot that was downloaded
let rest = null; // of the runtime

/** Begins what needs nothing but these rows of the manifest, by name. Whatever fails is asked for again by `startPython`. */
export function beginEarly(rows) {
  for (const name of [LOADER, GLUE]) if (rows[name]) import(rows[name].url).catch(() => {});
  if (rows[SNAPSHOT]) early = kept(fileOf(rows), rows[SNAPSHOT].bytes);
}

/**
 * Python with the engine imported or ready to be. All downloads begin at once; `foreseen` hears of the snapshot
 * as soon as it has come. `files` are the Downloads, `debug` is the level of the ladder; `given` has promises of the
 * compiled runtime (`module`, may be null) and of whether it is `whole`; or it is null. `memory`: the bytes of the
 * snapshot's memory where they are known before it has come.
 */
export async function startPython(files, debug, foreseen, given, memory) {
  files.expect(RUNTIME, LOADER, GLUE, ...(files.has(SNAPSHOT) ? [SNAPSHOT] : [STDLIB]));
  const runtime = new Runtime(files, given);
  rest = runtime.rest;
  const saved = files.has(SNAPSHOT) ? readSaved(files, foreseen) : null;
  for (const promise of [runtime.came, saved]) promise?.catch(() => {}); // awaited below, when the modules have come
  const [{ loadPyodide }, { default: create }] = await Promise.all([files.module(LOADER), files.module(GLUE)]);
  const load = (options) => loadPyodide({
    indexURL: new URL(".", files.url(LOADER)).href,
    env: { DEBUG: String(debug), HOME: "/home/pyodide" },
    stdout: (text) => console.log(text),
    stderr: (text) => console.warn(text),
    ...options,
  });
  if (!saved) return fromWheels(files, { load, runtime });
  const restored = fromSnapshot(files, { load, create, runtime, saved, memory });
  restored.catch(() => {}); // it may fail after the runtime has
  await runtime.came; // without it there is no other way
  try {
    return await restored;
  } catch (error) {
    if (files.stalled) throw error;
    await runtime.came; // another one by now, if the first was damaged
    if (debug >= 1) console.info(`Python starts the long way, because its snapshot cannot be used: ${error.message}`);
    return fromWheels(files, { load, runtime });
  }
}

/** The compiled runtime: what the page was given, until that is found damaged, or what is fetched here. */
class Runtime {
  #files;
  #whole;
  #fail;
  failed = new Promise((_, reject) => (this.#fail = reject)); // rejects if one that was given was damaged, and no other can be had

  constructor(files, given) {
    this.#files = files;
    this.rest = new RuntimeRest(files.manifest[REST], fetchedNow);
    this.#whole = given?.whole;
    this.came = this.#compiled(given?.module); // the module; rejects if it cannot be had
    this.failed.catch(() => {});
  }

  async #compiled(given) {
    const own = given && (await this.#files.elsewhere(RUNTIME, given));
    if (!own) this.#whole = null; // what is fetched here is checked here
    const module = own || (await this.#files.compiled(RUNTIME));
    this.#files.came(RUNTIME);
    performance.mark("webinfer runtime");
    return module;
  }

  /** A module and an instance of it. The check of the bytes goes on meanwhile; no function is called before it ends. */
  async instantiate(imports) {
    const module = await this.came;
    const instance = await WebAssembly.instantiate(module, imports);
    const whole = !this.#whole || (await this.#files.elsewhere(RUNTIME, this.#whole));
    if (whole) {
      this.rest.join(instance, imports);
      return { module, instance };
    }
    this.came = this.#compiled(null);
    this.came.catch(this.#fail);
    return this.instantiate(imports);
  }
}

async function readSaved(files, foreseen) {
  const own = await (early ?? kept(fileOf(files.manifest), files.manifest[SNAPSHOT].bytes));
  early = null;
  const bytes = own ?? (await files.bytes(SNAPSHOT));
  const snapshot = readSnapshot(bytes);
  if (own) files.came(SNAPSHOT);
  else unkept = bytes;
  performance.mark("webinfer snapshot");
  foreseen(snapshot);
  return snapshot;
}

/** The name under which the snapshot is kept; it holds the snapshot's hash. */
const fileOf = (rows) => rows[SNAPSHOT].url.split("/").at(-1);

/** For when nobody waits: brings the rest of the runtime. */
export const bringRest = () => rest.bring();

/** For when nobody waits: keeps a snapshot that was downloaded, and warms up once for each that is kept. */
export async function settle(files, warmUp) {
  bringRest();
  if (unkept) {
    await forget().catch(() => {}); // of a browser that keeps nothing
    await keep(fileOf(files.manifest), unkept);
    unkept = null;
  }
  const warm = `${fileOf(files.manifest)}.warm`;
  if (!(await keeps(fileOf(files.manifest))) || (await keeps(warm))) return;
  await warmUp();
  await note(warm);
}

/** A promise that is settled only if this one is rejected. */
const failing = (promise) => promise.then(() => new Promise(() => {}));

/** Begins before the runtime and the snapshot have come: the glue code alone takes long to compile. */
async function fromSnapshot(files, { load, create, runtime, saved, memory }) {
  const present = saved.catch(() => new Promise(() => {}));
  const room = async (instance) => makeRoom(memory ?? (await present).memory, instance.exports.memory);
  const work = () => load({
    lockFileContents: present.then(({ lock }) => lock),
    packageBaseUrl: new URL(".", files.url(LOCK)).href,
    _loadSnapshot: new Uint8Array(1), // only says that there is one: what is restored, and how, is our own
    async createPyodideModule(settings) {
      const [module, snapshot] = await Promise.all([create(settings), present]);
      if (module.API.config.BUILD_ID !== snapshot.build) throw new Error("it belongs to another build of Pyodide");
      if (module.HEAPU8.length < snapshot.memory) throw new Error("it is larger than the site says");
      performance.mark("webinfer instance");
      module.API.restoreSnapshot = () => restore(snapshot, module.HEAPU8);
      return module;
    },
  });
  const nothing = [files.url(RUNTIME), files.url(STDLIB)];
  const pyodide = await handing({ runtime, nothing, room }, () => Promise.race([work(), failing(saved), runtime.failed]));
  const { archives, packages } = await saved;
  fetchArchivesWhenRead(pyodide, archives, files);
  Object.assign(pyodide.loadedPackages, packages);
  pyodide.pyimport("webinfer.page.snapshot").after_restore(() => runtime.rest.bringNow());
  return pyodide;
}

async function fromWheels(files, { load, runtime }) {
  const options = { lockFileURL: files.url(LOCK), packages: ["webinfer"] };
  const pyodide = await files.unbroken(handing({ runtime, nothing: [files.url(RUNTIME)] }, () => load(options)));
  if (!pyodide.loadedPackages.webinfer) throw new Error("Python started, but the engine's wheel did not load");
  return pyodide;
}

/**
 * What `work` returns. Meanwhile Pyodide gets instances of the `runtime`, which are passed to `room` first,
 * and nothing from the addresses in `nothing`. It wraps hundreds of functions of JavaScript in modules that
 * differ by signature only: each of these is compiled once.
 */
async function handing({ runtime, nothing, room = () => {} }, work) {
  const { fetch } = self;
  const { instantiateStreaming, Module } = WebAssembly;
  const wrappers = new Map();
  self.fetch = (input, options) => (nothing.includes(String(input)) ? Promise.resolve(new Response("")) : fetch(input, options));
  WebAssembly.instantiateStreaming = async (_, imports) => {
    const made = await runtime.instantiate(imports);
    await room(made.instance);
    return made;
  };
  WebAssembly.Module = new Proxy(Module, {
    construct(target, [bytes]) {
      const key = bytes.length < 200 ? bytes.join() : bytes;
      if (!wrappers.has(key)) wrappers.set(key, new target(bytes));
      return wrappers.get(key);
    },
  });
  try {
    return await work();
  } finally {
    self.fetch = fetch;
    Object.assign(WebAssembly, { instantiateStreaming, Module });
  }
}

/** The files that the restored modules came from: fetched if Python ever reads one, for sources or further modules. */
function fetchArchivesWhenRead({ FS }, archives, files) {
  for (const [path, name] of Object.entries(archives)) {
    FS.mkdirTree(path.slice(0, path.lastIndexOf("/")));
    if (FS.analyzePath(path).exists) FS.unlink(path);
    lateFile(FS, path, files.url(name), files.manifest[name].bytes);
  }
}

/** A file that is fetched as a whole by whoever first reads it: what is kept for visits without a network are whole files. */
function lateFile(FS, path, url, bytes) {
  FS.writeFile(path, "");
  let contents = null;
  Object.defineProperties(FS.lookupPath(path).node, {
    contents: { get: () => (contents ??= fetchedNow(url)), set: (value) => (contents = value) },
    usedBytes: { get: () => bytes, set: () => {} },
  });
}

/**
 * The bytes of a file, while everything waits; `anew`: past what the browser has kept. In a page a synchronous request
 * gives text, where bytes from 0x80 on come as U+F780 and so on.
 */
function fetchedNow(url, anew = false) {
  const request = new XMLHttpRequest();
  request.open("GET", url, false);
  if (anew) request.setRequestHeader("Cache-Control", "no-cache");
  if (self.window) request.overrideMimeType("text/plain; charset=x-user-defined");
  else request.responseType = "arraybuffer";
  request.send();
  if (request.status !== 200) throw new Error(`${url} cannot be fetched: the server answered ${request.status}`);
  return self.window ? Uint8Array.from(request.responseText, (letter) => letter.charCodeAt(0)) : new Uint8Array(request.response);
}
