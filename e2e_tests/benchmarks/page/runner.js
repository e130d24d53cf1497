// The worker's end of the benchmark: starts a system, loads a model, times runs. The same for every system.
//
// A system module exports  start({threads, backend}) -> system,  system.load(model, files) -> session,
// session.run(inputs) -> [{name, data}], where inputs are typed arrays in the model's order and data is a typed
// array that the caller owns; close(); heapBytes() if it holds memory that is not WebAssembly's.
// A session may bring its own times(inputs, runs) where the timed loop belongs in another language; on a GPU also
// keep(inputs), a run whose outputs stay there, or keptTimes(inputs, runs) for the same reason, prepare() for that, and
// flight(inputs, runs, lanes), overlapping runs.

import { compare, typed } from "./compare.js";
import { wasmBytes, watchMemories } from "./memory_watch.js";

const SYSTEMS = new Set(["webinfer", "litertjs", "ortweb", "tfjs", "player", "auto", "peak"]);

let system = null, session = null, inputs = null;

async function bytesOf(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: HTTP ${response.status}`);
  return response.arrayBuffer();
}

async function tensors(list) {
  return Promise.all(list.map(async (item) => ({ ...item, data: typed(item.dtype, await bytesOf(item.file)) })));
}

/** Loads and runs once. Files are here before the clock starts: the network is not what is measured. */
async function load({ model }) {
  const names = system.files(model);
  const files = Object.fromEntries(await Promise.all(Object.entries(names).map(async ([key, url]) => [key, await bytesOf(url)])));
  const given = await tensors(model.inputs);
  const wanted = await tensors(model.outputs);
  inputs = given.map((item) => item.data);
  const begin = performance.now();
  session = await system.load(model, files);
  const loaded = performance.now();
  const outputs = await session.run(inputs);
  const first = performance.now();
  const difference = wanted.length ? compare(outputs, wanted) : { max_abs_diff: null, max_rel_diff: null };
  return { load_ms: loaded - begin, first_run_ms: first - loaded, ...difference, note: session.note ?? "" };
}

async function times(runs) {
  if (session.times) return session.times(inputs, runs);
  const list = [];
  for (let i = 0; i < runs; i++) {
    const begin = performance.now();
    await session.run(inputs);
    list.push(performance.now() - begin);
  }
  return list;
}

/** Milliseconds of runs whose outputs stay on the GPU, each until the GPU has finished; null if that is not supported. */
async function keptTimes(runs) {
  if (session.keptTimes) return session.keptTimes(inputs, runs);
  if (!session.keep) return null;
  const list = [];
  for (let i = 0; i < runs; i++) {
    const begin = performance.now();
    await session.keep(inputs);
    list.push(performance.now() - begin);
  }
  return list;
}

/** Milliseconds a run while several overlap, outputs read back. */
async function flight(runs, lanes) {
  const begin = performance.now();
  if (session.flight) await session.flight(inputs, runs, lanes);
  else {
    let left = runs;
    const lane = async () => {
      while (left-- > 0) await session.run(inputs);
    };
    await Promise.all(Array.from({ length: lanes }, lane));
  }
  return (performance.now() - begin) / runs;
}

/** One turn: {times} and, where asked for, {kept, flight_ms}. What fails besides `times` is null with its reason. */
async function turn({ runs, lanes }) {
  const result = { times: await times(runs) };
  if (!lanes) return result;
  try {
    await session.prepare?.();
    session.prepare = null;
    result.kept = await keptTimes(runs);
    result.flight_ms = await flight(Math.max(runs, 2 * lanes), lanes);
  } catch (error) {
    result.note = wordsOf(error);
  }
  return result;
}

/** Runs until both bounds are reached, or three times the time bound; `run_ms` is what a warm run costs. */
async function warm({ ms, runs }) {
  const begin = performance.now(), list = [];
  for (;;) {
    list.push(...await times(1));
    const spent = performance.now() - begin;
    if ((list.length < runs || spent < ms) && spent < 3 * ms) continue;
    return { runs: list.length, run_ms: list.slice(list.length >> 1).reduce((a, b) => Math.min(a, b)) };
  }
}

function downloads() {
  const files = new Map();
  for (const entry of performance.getEntriesByType("resource")) files.set(entry.name, entry.decodedBodySize);
  return Object.fromEntries(files);
}

const METHODS = {
  load,
  warm,
  turn,
  measure: (options) => system.measure(options),
  state: () => ({ memory_bytes: wasmBytes() + (system.heapBytes?.() ?? 0), downloads: downloads() }),
  close: () => session?.close(),
};

/** What an error says; of a Python traceback the exception alone. */
function wordsOf(error) {
  const text = String(error?.message ?? error).trim();
  if (!text.startsWith("Traceback")) return text;
  const lines = text.split("\n");
  return lines.slice(lines.findLastIndex((line) => /^\S/.test(line))).join(" ").replace(/\s+/g, " ");
}

/** Answers the conductor's calls for a system whose module comes: {id, method, options} -> {id, value} or {id, error}. */
export async function serve(name, coming) {
  if (!SYSTEMS.has(name)) throw new Error(`the benchmark has no system ${name}`);
  watchMemories();
  performance.setResourceTimingBufferSize(2000);
  const start = async (options) => {
    system = await (await coming).start(options);
    return { version: system.version };
  };
  self.addEventListener("message", async ({ data: { id, method, options } }) => {
    try {
      self.postMessage({ id, value: await { start, ...METHODS }[method](options) });
    } catch (error) {
      self.postMessage({ id, error: wordsOf(error) });
    }
  });
  self.postMessage({ id: 0, value: "ready" });
}
