// The engine's worker: starts Pyodide, then hands messages to Python (webinfer.host.worker).
// It decides nothing: what a message means is settled there. The messages: see engine_client.js.

import { Downloads } from "./downloads.js";

const VERSION = 1;
const MODULES = /^static\/((gpu|kernels)_\w+)\.js$/;

let engine = null; // the Python object that answers messages
let queue = Promise.resolve(); // one message at a time

function post(type, fields = {}) {
  self.postMessage({ v: VERSION, type, ...fields });
}

/** Tells the page that nothing more will come from this worker. */
function died(message) {
  post("error", { code: "engine-died", message, fatal: true, died: true });
}

/** What Python and the platform modules find as `globalThis.webinfer`. */
async function openDoor(downloads) {
  const door = { asset: (name) => downloads.url(name), has: (name) => downloads.has(name), gpu: {}, kernels: {} };
  const names = Object.keys(downloads.manifest).filter((name) => MODULES.test(name));
  await Promise.all(names.map(async (name) => {
    const [, stem, room] = MODULES.exec(name);
    door[room][stem] = await downloads.module(name);
  }));
  self.webinfer = door;
}

async function loadPython(downloads, debug) {
  downloads.module("pyodide/pyodide.asm.mjs").catch(() => {}); // Pyodide imports it too and reports the failure
  const { loadPyodide } = await downloads.module("pyodide/pyodide.mjs");
  return loadPyodide({
    indexURL: new URL(".", downloads.url("pyodide/pyodide.mjs")).href,
    lockFileURL: downloads.url("python/pyodide-lock.json"),
    packages: ["webinfer"],
    env: { DEBUG: String(debug), HOME: "/home/pyodide" },
    stdout: (text) => console.log(text),
    stderr: (text) => console.warn(text),
  });
}

const startingPython = (done) => post("progress", { stage: "start Python", done, total: 1, unit: "steps" });

async function start({ manifest, backend, model, debug }) {
  const downloads = new Downloads(manifest, (progress) => {
    post("progress", progress);
    if (progress.stage === "Python" && progress.done === progress.total) startingPython(0);
  });
  downloads.expect("Python", "Engine");
  await openDoor(downloads);
  await downloads.counting(async () => {
    const pyodide = await downloads.unbroken(loadPython(downloads, debug));
    startingPython(1);
    if (!pyodide.loadedPackages.webinfer) throw new Error("Python started, but the engine's wheel did not load");
    downloads.complete("Engine");
    self.pyodide = pyodide; // for the console of this worker
    pyodide._api.on_fatal = (error) => died(`The Python interpreter ended: ${error.message}.`); // no promise would say so
    const { EngineWorker } = pyodide.pyimport("webinfer.host.worker");
    const { FaceDetector } = pyodide.pyimport("webinfer.tasks");
    const answer = (json) => self.postMessage(JSON.parse(json));
    engine = EngineWorker(FaceDetector, answer);
    const urls = Object.fromEntries(Object.entries(manifest).map(([name, { url }]) => [name, url]));
    await engine.start(model, backend, debug, JSON.stringify(urls));
  });
}

const HANDLERS = {
  start,
  detect: async ({ id, image }) => {
    try {
      await engine.detect(id, image);
    } finally {
      image.close?.();
    }
  },
  select: ({ backend }) => engine.select(backend),
  plan: () => engine.plan(),
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
  if (message.v !== VERSION || !Object.hasOwn(HANDLERS, message.type)) {
    const text = `the page speaks version ${message.v} (“${message.type}”), the engine ${VERSION}; reload the page`;
    post("error", { code: "protocol", message: text, fatal: true });
    return;
  }
  try {
    await HANDLERS[message.type](message);
  } catch (error) {
    if (engine) died(`The Python interpreter ended: ${error.message}.`);
    else post("error", { code: error.code ?? "engine-start", message: String(error.message ?? error), fatal: true });
  }
}

self.addEventListener("message", ({ data }) => {
  if (data.type === "ping") post("pong");
  else queue = queue.then(() => handle(data));
});
