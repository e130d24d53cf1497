// A package's plan on the processor: an instance of the package's own kernels, one call per inference.
// With threads, workers walk the same program (web/static/engine/thread_worker.js).

import { PlayerError, formed, whole } from "./errors.js";
import { MAX_BYTES, checkOpenWasm, checkWasm } from "./checks.js";
import { part } from "./package_file.js";
import { SizedWords, regimeFor } from "./sizes.js";
import { tensorsOf } from "./tensors.js";
import { startWorker } from "./workers.js";

const PAGE = 65536;
const LIMITS = [MAX_BYTES, 2 ** 31]; // of a memory, the first that the browser grants
const SHARED_LIMITS = [...LIMITS, 2 ** 30, 2 ** 29]; // some devices refuse much
const DEADLINE_MS = 10_000; // without an answer from a thread
const START_MS = 10_000;
const PICTURE = "u8_picture_to_f32";
const PICTURE_ARGUMENTS = 20; // in packages of before it took pairs of rows

/** Why the plan for threads cannot be used here; "" where it can. */
export function whyOneThread() {
  if (!globalThis.crossOriginIsolated) return "the page is not cross-origin isolated";
  return globalThis.WorkerGlobalScope ? "" : "a page's main thread must not wait";
}

/** The package's plan on as many threads as asked for and can be had. */
export async function openKernels(file, header, threads, starters, tensors = tensorsOf(header)) {
  if (!globalThis.WebAssembly) throw new PlayerError("unavailable", "this browser runs no WebAssembly");
  const many = threads > 1 && !whyOneThread();
  const rows = formed(() => (header.wasm ?? []).filter((row) => row.threads > 1 === many));
  let problem = new PlayerError("unavailable", header.wasm ? "the package has no kernels for this browser" : "the package is not for wasm");
  for (const row of rows) {
    let module;
    const parts = Promise.all([file.json(row.section), file.section("weights"), file.section(`${row.section}/programs`)]);
    parts.catch(() => {}); // awaited below, unless the kernels do not run here
    try {
      module = await WebAssembly.compile(await file.section(`${row.section}/kernels`));
    } catch (error) {
      if (error instanceof PlayerError) throw error;
      const policy = /content security policy|unsafe-eval/i.test(error.message);
      const why = policy ? "the page's security policy refuses WebAssembly: it needs script-src 'wasm-unsafe-eval'" : `the package's ${row.isa} kernels do not run in this browser`;
      problem = new PlayerError("unavailable", why, error);
      continue;
    }
    const [plan, ...sources] = await parts;
    const kernels = new Kernels(row, plan, module);
    formed(() => (plan.regimes ? checkOpenWasm : checkWasm)(plan, tensors, sources, kernels.facts(row)));
    if (many) await kernels.startThreads(Math.min(threads, row.threads), starters);
    formed(() => kernels.fill(sources));
    if (plan.regimes) formed(() => kernels.open(header, tensors));
    return kernels;
  }
  if (many && rows.length === 0) return openKernels(file, header, 1, starters);
  throw problem;
}

class Kernels {
  backend = "wasm";
  lost = "";

  constructor(row, plan, module) {
    this.isa = row.isa;
    this.threads = 1;
    this.plan = plan;
    this.module = module;
    this.workers = [];
    this.pictures = formed(() => WebAssembly.Module.exports(module).some(({ name }) => name === PICTURE));
    const pages = formed(() => Math.ceil(whole(plan.top) / PAGE));
    this.memory = newMemory(pages, row.threads > 1);
    this.exports = formed(() => new WebAssembly.Instance(module, { env: { memory: this.memory } }).exports);
  }

  /** What a plan is checked against. */
  facts({ threads }) {
    return { heap: this.exports.__heap_base.value, abi: this.exports.abi && this.exports.abi() >>> 0, threads };
  }

  /** Writes weights and programs, and runs what runs once. */
  fill(sources) {
    for (const [address, source, at, nbytes] of this.plan.writes) {
      new Uint8Array(this.memory.buffer).set(part(sources[source], at, nbytes), whole(address));
    }
    for (const prepare of this.plan.prepares ?? [this.plan.prepare]) if (prepare) this.call(...prepare.map(whole), 1);
  }

  /** Takes the plans for kinds of sizes; until `bind` none is in use. */
  open({ name }, tensors) {
    const { plan } = this;
    this.name = name;
    this.rows = tensors;
    this.base = Math.ceil(plan.top / 16) * 16; // of the arena, behind all that is written
    this.regimes = plan.regimes.map((facts) => new SizedWords(facts, tensors, plan.spare));
    for (const regime of this.regimes) regime.text = new Uint32Array(this.bytes(regime.first, 4 * regime.count).slice().buffer);
  }

  /** Brings the plan to these sizes of inputs, axis by axis; inputs and outputs as they are then. */
  bind(sizes) {
    if (this.bound && String(this.bound) === String(sizes)) return this.tensors;
    const regime = regimeFor(this.regimes, sizes, this.name);
    const found = regime.sizes.evaluate(sizes);
    if (regime.outgrown(found)) {
      const end = this.base + regime.layOut(found, this.base);
      if (end > MAX_BYTES) throw new PlayerError("memory", `sizes ${sizes.join(", ")} need ${end} bytes of memory, the player has ${MAX_BYTES}`);
      this.plan = { ...this.plan, top: this.base };
      this.scratch(end - this.base);
      this.end = Math.max(this.end ?? 0, end);
    }
    const words = regime.fill(regime.text.slice(), found);
    this.bytes(regime.first, 4 * regime.count).set(new Uint8Array(words.buffer));
    const ends = Object.fromEntries(["inputs", "outputs"].map((key) => [key, regime.addresses(key, found)]));
    this.plan = { ...this.plan, ...ends, program: regime.program, top: this.end };
    this.tensors = regime.sizes.tensors(this.rows, found);
    this.bound = [...sizes];
    return this.tensors;
  }

  call(program, steps, threads) {
    try {
      if (threads === 1) return this.exports.run(program, 0, steps, 0, 1);
      if (this.exports.thread_pool_run(this.pool, program, 0, steps, threads) === 0) return undefined;
    } catch (error) {
      throw new PlayerError("kernel", `a kernel failed: ${error.message}`, error);
    }
    throw new PlayerError("kernel", "a kernel thread failed or did not answer");
  }

  bytes(address, nbytes) {
    return new Uint8Array(this.memory.buffer, address, nbytes);
  }

  /** Makes room behind the plan; its address. */
  scratch(nbytes) {
    const address = Math.ceil(this.plan.top / 16) * 16;
    const missing = Math.ceil((address + nbytes + 16 - this.memory.buffer.byteLength) / PAGE);
    try {
      if (missing > 0) this.memory.grow(missing);
    } catch (error) {
      throw new PlayerError("memory", `no memory for a picture of ${nbytes} bytes`, error);
    }
    return address;
  }

  /** Lays RGBA pixels into memory at `to`, as `place` of pictures.js says. */
  preparePixels({ data, width, height }, place, to) {
    const image = this.scratch(data.length);
    this.bytes(image, data.length).set(data);
    const { matrix, scale, offset, border, sampling, ow, oh } = place;
    const lay = this.exports[PICTURE];
    const pairs = lay.length > PICTURE_ARGUMENTS ? [0, 0] : [];
    lay(image, to, width, height, 4 * width, 4, 1, ow, border, sampling, ...pairs, ...matrix, scale, offset, 0, oh);
  }

  /** `given`: for each input its bytes, or {pixels, place}. `outputs`: room for the bytes of each. */
  async run(given, outputs) {
    given.forEach((value, i) => {
      const at = this.plan.inputs[i];
      if (value.pixels) this.preparePixels(value.pixels, value.place, at);
      else if (value.length) this.bytes(at, value.length).set(value);
    });
    this.call(...this.plan.program, this.threads);
    outputs.forEach((room, i) => room.set(this.bytes(this.plan.outputs[i], room.length)));
  }

  async startThreads(threads, starters) {
    this.pool = Math.ceil(this.exports.__heap_base.value / 64) * 64;
    const form = formed(() => Object.fromEntries(Object.entries(this.plan.pool).map(([key, value]) => [key, whole(value)])));
    const words = new Int32Array(this.memory.buffer);
    words[this.pool / 4 + form.maxNaps] = DEADLINE_MS / form.napMs;
    const ready = Array.from({ length: threads - 1 }, (_, i) => this.startThread(i + 1, form, starters));
    await Promise.all(ready).catch((error) => {
      this.close();
      throw new PlayerError("unavailable", `kernel threads do not start: ${error.message}`, error);
    });
    this.threads = threads;
  }

  async startThread(thread, form, starters) {
    const worker = await startWorker(starters);
    if (!this.workers) return worker.terminate(); // another thread failed meanwhile
    this.workers.push(worker);
    const { module, memory, pool } = this;
    const stackTop = pool + form.bytes + thread * form.stack;
    let timer;
    await new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) => (data.type === "ready" ? resolve() : reject(new Error(data.message)));
      worker.onerror = ({ message }) => reject(new Error(message || "its script failed"));
      timer = setTimeout(() => reject(new Error("no answer")), START_MS);
      worker.postMessage({ module, memory, pool, poisoned: pool / 4 + form.poisoned, thread, jobs: 0, stackTop });
    }).finally(() => clearTimeout(timer));
  }

  close() {
    for (const worker of this.workers ?? []) worker.terminate();
    this.workers = null;
  }
}

function newMemory(initial, shared) {
  let problem;
  for (const limit of shared ? SHARED_LIMITS : LIMITS) {
    try {
      return new WebAssembly.Memory({ initial, maximum: limit / PAGE, shared });
    } catch (error) {
      problem = error;
    }
  }
  throw new PlayerError("memory", `no memory of ${initial} pages: ${problem.message}`, problem);
}
