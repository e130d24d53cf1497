// Starts Python with the engine in it: from the memory snapshot that set-up made, or, where that cannot be
// had or does not fit, the long way, by Pyodide's own start and the engine's wheels.

import { forget, forgetDamaged, keep, keeps, kept, note, WARM } from "./kept_files.js";
import { ask } from "./integrity.js";
import { fetchArchivesWhenRead, fetchedNow } from "./python_archives.js";
import { RuntimeRest } from "./python_rest.js";
import { inMemory, makeRoom, readData, readSnapshot, restore } from "./python_snapshot.js";

const WHOLE = "pyodide/pyodide.asm.wasm"; // Python's runtime, as Pyodide's loader asks for it
const FIRST = "pyodide/pyodide.first.wasm"; // of the runtime; not there, like REST and DATA, if it is one file
const REST = "pyodide/pyodide.rest.wasm";
const DATA = "pyodide/pyodide.data.bin"; // what its memory begins with
const LOADER = "pyodide/pyodide.mjs";
const GLUE = "pyodide/pyodide.asm.mjs";
const STDLIB = "pyodide/python_stdlib.zip";
const LOCK = "python/pyodide-lock.json";
const SNAPSHOT = "snapshot/webinfer.bin";
const KEPT = [DATA, SNAPSHOT]; // where the browser can

const early = new Map(); // of KEPT: name -> promise of the file that was kept, or of null
const held = new Map(); // name -> bytes of files of KEPT that were fetched, until nobody waits
let rest = null; // of the runtime

/**
 * Begins what needs nothing but these rows of the manifest, by name, after a visit that kept what is needed or without
 * one. Whatever fails is asked for again by `startPython`. Promises of what was asked for, by name, for Downloads.
 */
export function beginEarly(rows, later) {
  const begun = new Map();
  for (const [name, row] of KEPT.map((name) => [name, rows[name]]).filter(([, row]) => row)) {
    if (later) early.set(name, keptOf(name, row));
    else begun.set(name, ask(self.fetch.bind(self), row.url, row, { priority: "high" }));
  }
  for (const promise of begun.values()) promise.catch(() => {}); // the code that awaits it gets the error
  for (const name of [LOADER, GLUE]) if (rows[name]) import(rows[name].url).catch(() => {});
  return begun;
}

/**
 * Python with the engine imported or ready to be. All downloads begin at once; `onMissing` hears why Python ends if a part
 * of the runtime could not be downloaded. `files` are the Downloads, `debug` is the level of the ladder; `given` is a promise of the
 * compiled runtime, or of null. `memory`: the bytes of the snapshot's memory where they are known before it has come;
 * `pause` is awaited between long parts of the work.
 */
export async function startPython(files, { debug = 0, given = null, memory = 0, pause = () => {}, onMissing = () => {} }) {
  files.expect(runtimeOf(files), LOADER, GLUE, ...(files.has(DATA) ? [DATA] : []), files.has(SNAPSHOT) ? SNAPSHOT : STDLIB);
  const runtime = new Runtime(files, given, onMissing);
  rest = runtime.rest;
  const saved = files.has(SNAPSHOT) ? readSaved(files) : null;
  for (const promise of [runtime.came, saved]) promise?.catch(() => {}); // awaited below, when the modules have come
  const close = () => [saved, runtime.data].forEach((promise) => promise?.then(({ file }) => file.close(), () => {}));
  return startWith(files, { runtime, saved, memory, debug, pause }).finally(close);
}

async function startWith(files, { runtime, saved, memory, debug, pause }) {
  const [{ loadPyodide }, { default: create }] = await Promise.all([files.module(LOADER), files.module(GLUE)]);
  const load = (options) => loadPyodide({
    indexURL: new URL(".", files.url(LOADER)).href,
    env: { DEBUG: String(debug), HOME: "/home/pyodide" },
    stdout: (text) => console.log(text),
    stderr: (text) => console.warn(text),
    ...options,
  });
  if (!saved) return fromWheels(files, { load, runtime });
  const restored = fromSnapshot(files, { load, create, runtime, saved, memory, pause });
  restored.catch(() => {}); // it may fail after the runtime has
  await runtime.came; // without it there is no other way
  try {
    return await restored;
  } catch (error) {
    if (files.stalled) throw error;
    const { file } = await saved.catch(() => ({}));
    if (error.damaged && file?.name) return startWith(files, { runtime, saved: savedAnew(files, file), memory, debug, pause });
    if (debug >= 1) console.info(`Python starts the long way, because its snapshot cannot be used: ${error.message}`);
    return fromWheels(files, { load, runtime });
  }
}

/** The compiled runtime, which the page was given or which is fetched here, and what its memory begins with. */
class Runtime {
  constructor(files, given, onMissing) {
    this.rest = new RuntimeRest(files.manifest[REST], fetchedNow, onMissing);
    this.data = files.has(DATA) ? keptOrFetched(files, DATA).then(readData) : null;
    this.came = Promise.all([compiledRuntime(files, given), this.data]); // rejects if one could not be downloaded
  }

  /** A module and an instance of it. */
  async instantiate(imports) {
    const [module, data] = await this.came;
    const instance = await WebAssembly.instantiate(module, imports);
    if (data) restore(data, new Uint8Array(instance.exports.memory.buffer));
    return { module, instance: { exports: this.rest.join(instance, imports) } };
  }
}

const runtimeOf = (files) => (files.has(FIRST) ? FIRST : WHOLE);

async function compiledRuntime(files, given) {
  const name = runtimeOf(files);
  const module = (given && (await files.elsewhere(name, given))) || (await files.compiled(name));
  files.came(name);
  performance.mark("webinfer runtime");
  return module;
}

async function readSaved(files) {
  const file = await keptOrFetched(files, SNAPSHOT);
  try {
    const snapshot = readSnapshot(file);
    performance.mark("webinfer snapshot");
    return snapshot;
  } catch (error) {
    if (file.name) return savedAnew(files, file);
    throw error;
  }
}

/** The same, fetched, after this file, which was kept (that alone has a name), has proved to be damaged. */
async function savedAnew(files, file) {
  await forgetDamaged(file);
  early.set(SNAPSHOT, Promise.resolve(null));
  return readSaved(files);
}

/** A file of KEPT. */
async function keptOrFetched(files, name) {
  const row = files.manifest[name];
  const own = files.asked(name) ? null : await (early.get(name) ?? keptOf(name, row));
  early.delete(name);
  if (own) {
    files.came(name);
    return own;
  }
  const bytes = await files.bytes(name);
  held.set(name, bytes);
  return inMemory(bytes);
}

/** The name under which a file is kept; it holds the file's hash. */
const fileOf = ({ url }) => url.split("/").at(-1);

/** A file of KEPT that was kept, or null. The data is checked first: nobody could go back once it is used; the snapshot while it is restored. */
const keptOf = (name, row) => kept(fileOf(row), row.bytes, name === DATA);

/** For when nobody waits, and before what is unlike all that pages do: brings the rest of the runtime. */
export const bringRest = () => rest.bring();

/** For when nobody waits: keeps what was downloaded, tells whether later visits will find it, and warms up once for each that is kept. */
export async function settle(files, tell, warmUp) {
  bringRest();
  const names = new Map(KEPT.filter((name) => files.has(name)).map((name) => [name, fileOf(files.manifest[name])]));
  const warm = `${names.get(SNAPSHOT)}${WARM}`;
  await forget(...names.values(), warm).catch(() => {}); // of a browser that keeps nothing
  for (const [name, bytes] of held) if (!(await keeps(names.get(name)))) await keep(names.get(name), bytes);
  held.clear();
  const there = (await Promise.all([...names.values()].map(keeps))).every(Boolean);
  tell(there);
  if (!there || (await keeps(warm))) return;
  await warmUp();
  await note(warm);
}

/** A promise that is settled only if this one is rejected. */
const failing = (promise) => promise.then(() => new Promise(() => {}));

/** Begins before the runtime and the snapshot have come: the glue code alone takes long to compile. */
async function fromSnapshot(files, { load, create, runtime, saved, memory, pause }) {
  const present = saved.catch(() => new Promise(() => {}));
  const room = async (instance) => makeRoom(memory || (await present).memory, instance.exports.memory);
  const work = () => load({
    lockFileContents: present.then(({ lock }) => lock),
    packageBaseUrl: new URL(".", files.url(LOCK)).href,
    _loadSnapshot: new Uint8Array(1), // only says that there is one: what is restored, and how, is our own
    async createPyodideModule(settings) {
      const [module, snapshot] = await Promise.all([create(settings), present]);
      if (module.API.config.BUILD_ID !== snapshot.build) throw new Error("it belongs to another build of Pyodide");
      if (module.HEAPU8.length < snapshot.memory) throw new Error("it is larger than the site says");
      performance.mark("webinfer instance");
      await pause();
      module.API.restoreSnapshot = () => {
        try {
          restore(snapshot, module.HEAPU8);
        } catch (error) {
          throw Object.assign(error, { damaged: true });
        }
        return snapshot.hiwire; // the objects of JavaScript that Python held
      };
      return module;
    },
  });
  const nothing = [files.url(WHOLE), files.url(STDLIB)];
  const pyodide = await handing({ runtime, nothing, room }, () => Promise.race([work(), failing(saved)]));
  await pause();
  const { archives, packages } = await saved;
  fetchArchivesWhenRead(pyodide, archives, files);
  Object.assign(pyodide.loadedPackages, packages);
  pyodide.pyimport("webinfer.page.snapshot").after_restore();
  return pyodide;
}

async function fromWheels(files, { load, runtime }) {
  const options = { lockFileURL: files.url(LOCK), packages: ["webinfer"] };
  const pyodide = await files.untilBroken(handing({ runtime, nothing: [files.url(WHOLE)] }, () => load(options)));
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
