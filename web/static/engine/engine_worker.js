// The engine's worker: starts Pyodide, then hands messages to Python (webinfer.page.worker).
// It decides nothing: what a message means is settled there. The messages are defined in webinfer/page/messages.toml.
// It comes to the browser as one file with all that it imports.

import { closeDoors } from "./closed_doors.js";
import { Downloads } from "../startup/downloads.js";
import { GPU } from "../gpu/gpu.js";
import { lateFiles } from "../startup/late_models.js";
import { complaint, TO_ENGINE, VERSION } from "./messages.js";
import { PageThread } from "../startup/page_thread.js";
import { PaintedFrames } from "./painted_frames.js";
import { Prefetch } from "../startup/prefetch.js";
import { copied, forPython } from "../startup/python_values.js";
import { beginEarly, bringRest, settle, startPython } from "../startup/python_start.js";
import { filesAsked, keeperOf } from "../startup/site_keeper.js";
import { isDue } from "./progress_filter.js";
import "../startup/trusted_types.js";

const WARM_UP_RUNS = 120;
const PAUSE_MS = 5;

let marking = true; // until the first result
let runtimeCame; // resolves `runtime`
const runtime = new Promise((resolve) => (runtimeCame = resolve)); // what the page compiled, or null
let begun; // before the page's first message came
let downloads = null; // Downloads, once it is told to start
let more = () => {}; // makes the files of models part of the downloads
let keep = () => {}; // keeps the site for visits without a network
let idleDelayMs = 0; // before work that only later visits gain from
let engine = null; // the Python object that answers messages
let queue = Promise.resolve(); // one message at a time, but pictures do not wait for pictures
const painted = new PaintedFrames();
const flying = new Set(); // promises of pictures that are looked at

function post(type, fields = {}, transfer = []) {
  self.postMessage({ v: VERSION, type, ...fields }, transfer);
}

/** Tells the page of progress. */
const tellProgress = (progress) => isDue(progress) && post("progress", progress);

const startThread = (url, name) => new PageThread(url, name, post);

/** Tells the page that nothing more will come from this worker. */
function died(message) {
  post("error", { code: "engine-died", message, fatal: true, died: true });
}

/** Shows Python and the platform modules what they find as `globalThis.webinfer`. */
function openBindings(downloads, prefetched) {
  const webnn = async () => { // for who asks for it: `navigator.ml` in this interpreter
    const [{ install }, { copied, openBindings }] = await Promise.all(["webnn", "webnn_engine"].map((name) => downloads.module(`static/${name}.js`)));
    const urls = Object.fromEntries(Object.keys(downloads.manifest).map((name) => [name, downloads.url(name)]));
    await downloads.checked();
    return install(async () => ({ ...openBindings(self.pyodide, urls), copied, worker: "" }));
  };
  self.webinfer = { asset: (name) => downloads.url(name), has: (name) => downloads.has(name), prefetched, gpu: GPU, startThread, webnn, idleDelay: idleDelayMs };
}

/**
 * Passes an answer of Python's on: its buffers as bytes, or what {"array": n} stands for as typed arrays. The first ones
 * are marked in the browser's timeline.
 */
function tell(json, ...views) {
  let message = JSON.parse(json);
  const arrays = views.map((view) => copied(view, message.buffers ? "u8" : undefined));
  if (message.buffers) message.buffers = arrays.map(({ buffer }) => buffer);
  else if (arrays.length) message = JSON.parse(json, (_, value) => arrays[value?.array] ?? value);
  if (marking) {
    const { type, stage, done, total } = message;
    performance.mark(`webinfer ${type === "progress" ? `${stage} ${done === total ? "done" : "started"}` : type}`);
    marking = type !== "result";
  }
  if (message.type === "progress" && !isDue(message)) return;
  if (message.type === "settled") painted.forget();
  self.postMessage(message, arrays.map(({ buffer }) => buffer));
}

const startingPython = (done) => post("progress", { stage: "start Python", done, total: 1, unit: "steps" });

async function start({ manifest, facts, page, home, task, backend, model, also, options, debug, life, stallTimeout, idleDelay, runtimeComes }) {
  performance.mark("webinfer begin");
  navigator.locks?.request(life, () => {
    post("alive");
    return new Promise(() => {}); // the lock is let go when this worker ends, however that is
  });
  idleDelayMs = idleDelay;
  downloads = new Downloads(manifest, stallTimeout, (progress) => {
    tellProgress(progress);
    if (progress.stage === "Python" && progress.done === progress.total && !self.pyodide) startingPython(0);
  }, begun);
  keep = keeperOf(downloads.manifest, page, home); // before models come that the site does not have yet
  more = async (models) => downloads.add(await lateFiles(models, { ...facts, home }, (name) => downloads.has(name), tellProgress));
  const prefetch = new Prefetch(downloads, startThread);
  const needs = facts.foreseen?.needs[backend]; // a lab's own site foresees nothing
  if (model) prefetch.models([model, ...also], facts.models);
  if (model && needs) prefetch.plans([model, ...also], facts.foreseen, needs);
  if (model && needs?.gpu) prefetch.device(facts.foreseen.gpu);
  const there = more([model, ...also]);
  there.catch(() => {}); // awaited below
  await downloads.counting(async () => {
    openBindings(downloads, prefetch.found);
    const ended = (error) => died(`The Python interpreter ended: ${error.message}.`);
    downloads.check("static/engine_worker.js");
    const given = runtimeComes ? runtime : null;
    const { pause } = prefetch;
    const pyodide = await startPython(downloads, { debug, given, memory: facts.foreseen?.memory, pause, onMissing: ended });
    downloads.complete("Python"); // scripts that the browser loads by itself are counted when they are checked
    downloads.complete("Engine");
    startingPython(1);
    self.pyodide = pyodide; // for the console of this worker
    pyodide._api.on_fatal = ended; // no promise would say so
    const { EngineWorker } = pyodide.pyimport("webinfer.page.worker");
    performance.mark("webinfer python");
    engine = EngineWorker(tell);
    await there;
    const urls = Object.fromEntries(Object.entries(downloads.manifest).map(([name, { url }]) => [name, url]));
    await downloads.flowing(engine.start(task, model, backend, JSON.stringify(options), debug, JSON.stringify(urls)));
  });
  const tellKept = (there) => post("kept", { there });
  const settled = async () => downloads.has("snapshot/webinfer.bin") && settle(downloads, tellKept, model ? warmUp : () => {}); // a lab's own site has none
  setTimeout(() => downloads.checked().catch(doubted).then(settled).finally(keep), idleDelayMs);
}

/** A script came damaged; or nobody can say, because the network has gone: what runs goes on. */
function doubted(error) {
  if (error.code === "integrity") giveUp(error);
  else console.info(`Scripts of this page were not checked: ${error.message}`);
}

/** Tells the page why this worker, which runs so far, cannot go on, or has not begun to. */
function giveUp(error) {
  post("error", { code: error.code ?? "engine-start", message: String(error.message ?? error), fatal: true, died: error.replaced });
}

/**
 * Lets Python look at empty pictures in the pauses. Browsers keep the machine code of a runtime once enough of
 * it is optimised; the next visit then begins with it.
 */
async function warmUp() {
  for (let i = 0; i < WARM_UP_RUNS; i += 1) {
    queue = queue.then(() => engine.warm_up(new ImageData(128, 128))).catch(() => {}); // nobody asked for it
    await queue;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

const HANDLERS = {
  start,
  detect: async ({ id, given, live, file }) => {
    try {
      const found = live ? await painted.result(engine, given) : null;
      if (found) post("result", { id, ...found }, [found.found[0].painted]);
      else await engine.detect(id, forPython(given), live, file?.width ?? 0, file?.height ?? 0);
    } finally {
      given.close?.();
    }
  },
  paint: ({ look }) => painted.paint(look),
  select: async ({ backend, model, options, files }) => {
    const added = await more([model]);
    if (files) await bringRest(); // readers of other formats
    await downloads.counting(() => downloads.flowing(engine.select(backend, model, JSON.stringify(options), JSON.stringify(added), forPython(files ?? null))));
  },
  plan: () => engine.plan(),
  profile: () => engine.profile(),
  tune: ({ budget }) => engine.tune(budget),
  exportTuning: () => engine.export_tuning(),
  importTuning: ({ text }) => engine.import_tuning(text),
  runCode: async ({ code, given, foreign }) => {
    try {
      await bringRest();
      if (foreign) closeDoors();
      await downloads.counting(() => engine.run_code(code, forPython(given)));
    } finally {
      given?.close?.();
    }
  },
  ask: async ({ id, action, fields }) => {
    try {
      const added = fields.name ? await more([fields.name]) : {};
      const before = filesAsked();
      await bringRest();
      await downloads.counting(() => downloads.flowing(engine.ask(id, action, self.pyodide.toPy(fields), JSON.stringify(added))));
      if (filesAsked() > before) setTimeout(keep, idleDelayMs); // parts of the engine that came late
    } catch (error) {
      if (error.code !== "model-missing") throw error;
      post("error", { code: error.code, message: error.message, id });
    }
  },
  close: async () => {
    await engine?.close();
    self.close();
  },
};

/**
 * Python turns its own exceptions into error messages, so whatever arrives here once it runs is the end of
 * the interpreter.
 */
async function handle(message) {
  const wrong = complaint(message, TO_ENGINE);
  if (wrong) {
    post("error", { code: "protocol", message: `The engine does not understand its page: ${wrong}; reload the page`, fatal: true });
    return;
  }
  try {
    await HANDLERS[message.type](message);
  } catch (error) {
    if (engine && !["download", "integrity", "model-missing"].includes(error.code)) died(`The Python interpreter ended: ${error.message}.`);
    else giveUp(error);
  }
}

/** Begins to look at a picture: the next may be prepared while this one is on the GPU. */
function look(message) {
  const done = handle(message).finally(() => flying.delete(done));
  flying.add(done);
}

self.addEventListener("message", ({ data }) => {
  if (data.type === "ping") post("pong");
  else if (data.type === "runtime") runtimeCame(data.module);
  else if (data.type === "stop") engine?.stop(); // what was asked for is under way
  else if (data.type === "threadFailed") PageThread.failed(data);
  else if (data.type === "detect") queue = queue.then(() => look(data));
  else {
    queue = queue.then(() => Promise.all(flying)).then(() => {
      if (data.type !== "paint") painted.forget(); // what follows may replace the session
      return handle(data);
    });
  }
});

// What the page knew when it made this worker: until the page's first message comes, a tenth of the start has passed.
if (self.location.hash) {
  const { rows, later } = JSON.parse(decodeURIComponent(self.location.hash.slice(1)));
  begun = beginEarly(rows, later);
}
