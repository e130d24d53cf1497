// Python's runtime comes in two modules (build_scripts/site/runtime_split.py): what programs run, and the rest, which
// is brought when nobody waits for it. Whoever calls one of its functions before waits until it has come.

import { browsersOwnCheck } from "./integrity.js";
import { compiled } from "./wasm_modules.js";

const OWN = "webinfer."; // what the names of the first module's exports for the rest begin with
const ALL = "webinfer.all"; // the rest's list of what only other modules ask for, and the function by which these get it
const CALL = [0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 2, 7, 1, 1, 109, 1, 102, 0, 0, 7, 5, 1, 1, 102, 0, 0]; // exports a function of JavaScript
const TRIES = 4;
const PAUSE_MS = 1000; // between them, in which everything waits: without the rest Python ends
const AGAIN_MS = 30_000; // after which a rest that did not come is asked for again
const LATE_MS = 120_000; // nobody waits: slow networks have their time

/** The rest of a runtime. `fetchNow(url, anew)` returns the bytes of a file, past what the browser has kept if asked. */
export class RuntimeRest {
  #row;
  #fetchNow;
  #link = null; // makes an instance of the rest's module; null: the runtime is whole
  #crc = 0; // of the bytes of the rest
  #bringing = null; // promise
  #onMissing;

  /**
   * `row`: what the manifest says of the rest; undefined if the runtime is one file. `onMissing` is told why a function
   * cannot be called: the rest could not be downloaded, and Python ends.
   */
  constructor(row, fetchNow, onMissing) {
    this.#row = row;
    this.#fetchNow = fetchNow;
    this.#onMissing = onMissing;
  }

  /** Prepares an instance of the first module for the rest; its exports, as the glue code has them of the whole runtime. */
  join(instance, imports) {
    const table = instance.exports[`${OWN}table`];
    if (!table) return instance.exports;
    const exports = {};
    const shared = {};
    for (const [name, value] of Object.entries(instance.exports)) {
      if (name.startsWith(OWN)) shared[name.slice(OWN.length)] = value;
      else exports[name] = value;
    }
    const { memory, __c_longjmp, __cpp_exception } = exports;
    let all = null;
    this.#link = (module) => {
      new WebAssembly.Instance(module, { ...imports, webinfer: { ...shared, memory, __c_longjmp, __cpp_exception } }); // its functions are in the shared table now
      this.#link = null;
      all = () => ({ ...exports, ...listed(module, table) });
    };
    const bringAll = () => {
      this.#bringNow();
      return all();
    };
    this.#crc = shared.crc.value;
    const call = new WebAssembly.Instance(new WebAssembly.Module(Uint8Array.from(CALL)), { m: { f: () => this.#bringNow() } });
    table.set(0, call.exports.f);
    return Object.defineProperty(exports, ALL, { value: bringAll });
  }

  /** Brings the rest while everything waits. */
  #bringNow() {
    try {
      this.#link?.(new WebAssembly.Module(this.#intact()));
    } catch (error) {
      this.#onMissing(error);
      throw error;
    }
  }

  /** Brings the rest for when it is called, or for visits without a network; asks again after a while if it does not come. */
  bring() {
    return (this.#bringing ??= this.#bring());
  }

  async #bring() {
    try {
      if (this.#link) await this.#fetched("default").catch(() => this.#fetched("reload")).then((module) => this.#link?.(module));
    } catch (error) {
      console.info(`The rest of Python's runtime did not come and is asked for again: ${error.message}`);
      setTimeout(() => (this.#bringing = this.#bring()), AGAIN_MS);
    }
  }

  #fetched(cache) {
    const options = { ...browsersOwnCheck(this.#row), cache, signal: AbortSignal.timeout(LATE_MS) };
    return fetch(this.#row.url, options).then(compiled);
  }

  /** The bytes of the rest; throws if they could not be downloaded or do not belong to the first module. */
  #intact() {
    let why;
    for (let i = 0; i < TRIES; i += 1) {
      if (i) pause(PAUSE_MS);
      try {
        const bytes = this.#fetchNow(this.#row.url, i > 0);
        if (crcOf(bytes) === this.#crc) return bytes;
        why = "it comes damaged";
      } catch (error) {
        why = error.message;
      }
    }
    throw new Error(`the rest of Python's runtime, which this needs, cannot be fetched: ${why}; check the connection, then try again`);
  }
}

/** The exports of the whole runtime that the first module lacks. */
function listed(module, table) {
  const [list] = WebAssembly.Module.customSections(module, ALL);
  const { functions, constants } = JSON.parse(new TextDecoder().decode(list));
  const found = Object.entries(functions).map(([name, slot]) => [name, table.get(slot)]);
  const fixed = Object.entries(constants).map(([name, value]) => [name, new WebAssembly.Global({ value: "i32" }, value)]);
  return Object.fromEntries([...found, ...fixed]);
}

function pause(ms) {
  for (const end = performance.now() + ms; performance.now() < end; );
}

/** The CRC-32 of bytes, as a signed number. */
function crcOf(bytes) {
  const steps = new Int32Array(256).map((_, i) => {
    for (let bit = 0; bit < 8; bit += 1) i = i & 1 ? (i >>> 1) ^ 0xedb88320 : i >>> 1;
    return i;
  });
  let crc = -1;
  for (let i = 0; i < bytes.length; i += 1) crc = steps[(crc ^ bytes[i]) & 255] ^ (crc >>> 8);
  return ~crc;
}
