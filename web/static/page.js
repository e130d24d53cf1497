// The demo page: pictures in, results out. What happens to a picture is the engine's business.

import { Camera, grab } from "./camera.js";
import { EngineClient } from "./engine_client.js";
import * as panels from "./panels.js";
import { ProfilePanel } from "./profile_panel.js";
import { Results } from "./results.js";
import { TuningPanel } from "./tuning_panel.js";
import { bitmapOf, openPicture, watchDropsAndPastes } from "./picture.js";

const byId = (id) => document.getElementById(id);
const root = document.documentElement;
const TITLES = {
  "backend-unavailable": "This backend cannot run here",
  "bad-image": "That is not a picture",
  "camera-busy": "The camera is not available",
  "camera-denied": "The camera is not allowed",
  "no-camera": "There is no camera",
  closed: "The model was closed",
  "device-lost": "The graphics processor was lost",
  download: "A part of the engine could not be loaded",
  "engine-died": "The engine stopped",
  "engine-silent": "The engine does not answer",
  "engine-start": "The engine could not start",
  gpu: "The graphics processor refused the work",
  input: "That cannot be worked on",
  integrity: "A file is not the one that was published",
  internal: "The engine made a mistake",
  isolation: "This page cannot have threads",
  kernel: "The engine’s kernels failed",
  limit: "That is too large",
  "model-format": "The model cannot be read",
  "model-unknown": "There is no such model",
  "out-of-memory": "There is not enough memory",
  protocol: "Page and engine do not belong together",
  shape: "The model does not fit together",
  "unsupported-op": "The model needs what the engine lacks",
  worker: "The engine could not start",
};

const { settings, ...started } = globalThis.started; // by first.js
let current = null; // what the stage shows: {kind: "sample" | "picture" | "camera", image: () => Promise}
let opened = 0; // counts pictures asked for: only the last one may appear
let count = 0;
let firstMs = null;
let frameTimes = [];
let restarted = null; // what to say once an engine that was replaced runs again

function fail({ code = "page", message }, { retry = false, severe = true } = {}) {
  root.dataset.webinferError = JSON.stringify({ code, message });
  panels.showMessage({ title: TITLES[code] ?? "Something went wrong", text: message, retry, severe });
}

function forgetError() {
  delete root.dataset.webinferError;
  panels.hideMessage();
}

/** Shows one of the three media and forgets what was found in the one before. */
function showMedium(id, source) {
  for (const other of ["sample", "picture", "video"]) byId(other).hidden = other !== id;
  current = source;
  results.clear();
  if (source.kind !== "camera") camera.stop();
  byId("camera").setAttribute("aria-pressed", String(source.kind === "camera"));
  byId("camera").textContent = source.kind === "camera" ? "Stop the camera" : "Start the camera";
  frameTimes = [];
  panels.showRate(null);
}

async function detectCurrent() {
  const source = current;
  if (source.kind === "camera") return;
  const image = await source.image();
  if (source === current) engine.detect(image, source);
  else image.close();
}

async function showSample() {
  opened += 1;
  const sample = byId("sample");
  showMedium("sample", { kind: "sample", image: () => bitmapOf(sample) });
  try {
    await sample.decode();
    await detectCurrent();
  } catch {
    fail({ code: "download", message: `The sample photo could not be loaded from ${sample.src}. Choose a picture of your own.` });
  }
}

async function showFile(file) {
  const turn = ++opened;
  let bitmap;
  try {
    bitmap = await openPicture(file);
  } catch (error) {
    if (turn === opened) fail(error);
    return;
  }
  if (turn !== opened) return bitmap.close();
  forgetError();
  const canvas = byId("picture");
  canvas.width = bitmap.width;
  canvas.height = bitmap.height;
  canvas.getContext("2d").drawImage(bitmap, 0, 0);
  bitmap.close();
  canvas.setAttribute("aria-label", file.name ? `Your picture ${file.name}` : "Your picture");
  showMedium("picture", { kind: "picture", image: () => bitmapOf(canvas) });
  await detectCurrent();
}

async function toggleCamera() {
  opened += 1;
  if (camera.running) return showSample();
  try {
    const source = { kind: "camera" };
    if (!(await camera.start())) return;
    forgetError();
    showMedium("video", source);
    byId("video").classList.toggle("back", !camera.mirrored);
    engine.drop();
  } catch (error) {
    fail(error);
  }
}

/** A camera frame: looked at if the engine has nothing to do, else let go, so that no queue grows. */
async function onFrame(video) {
  const source = current;
  if (source?.kind !== "camera" || !engine.idle) return;
  const image = await grab(video);
  if (source === current && engine.idle) engine.detect(image, source);
  else image.close();
}

function rate(now) {
  frameTimes = [...frameTimes.filter((time) => now - time < 2000), now];
  const span = now - frameTimes[0];
  return span > 0 ? ((frameTimes.length - 1) * 1000) / span : null;
}

function onResult(result, source) {
  count += 1;
  firstMs ??= performance.now();
  const { backend, reason, image, found, times } = result;
  const told = { backend, reason, image, [results.name]: found, times, first_ms: firstMs, count, source: source?.kind };
  root.dataset.webinferResult = JSON.stringify(told);
  if (source !== current) return; // of a picture that is no longer shown
  results.show({ picture: image, found, mirrored: source.kind === "camera" && camera.mirrored });
  panels.showBackend(`Runs on ${backend}: ${reason}`); // another one after the loss of a GPU
  panels.showTimes(times);
  if (source.kind === "camera") panels.showRate(rate(performance.now()));
}

function onReady({ backend, reason, notice, capabilities, tunable, result }) {
  progress.end();
  profile.forget();
  tuning.ready(tunable);
  results.expect(result).catch(({ message }) => fail({ code: "download", message }));
  panels.showBackend(`Runs on ${backend}: ${reason}`);
  panels.showCapabilities(capabilities);
  if (restarted ?? notice) fail(restarted ?? notice, { severe: false });
  restarted = null;
  if (byId("plan-box").open) engine.plan();
  if (engine.idle) detectCurrent().catch(fail); // else a picture is on its way already
}

/** Other kernels are in use now. */
function onTuned(message) {
  if (message.type === "tuned") tuning.tuned(message);
  else tuning.imported(message);
  profile.forget();
  if (byId("plan-box").open) engine.plan();
  if (engine.idle) detectCurrent().catch(fail);
}

function onError({ code, message, fatal }) {
  profile.forget();
  tuning.failed();
  if (fatal) {
    progress.end();
    panels.showBackend("The engine is not running.");
  }
  const lost = code === "device-lost"; // the engine goes on with a new device, after two losses without
  fail({ code, message }, { retry: Boolean(fatal), severe: !lost });
  if (lost && current.kind !== "camera") detectCurrent().catch(fail);
}

function onRestarting({ code, message }) {
  profile.forget();
  tuning.ready(false);
  progress.begin("Starting the engine again");
  panels.showBackend("The engine is being started again.");
  restarted = { code, message: `${message} It was started again.` };
  fail({ code, message: `${message} It is being started again.` }, { severe: false });
}

const progress = new panels.Progress();
const engine = new EngineClient(settings, started, {
  progress: (message) => progress.show(message),
  ready: onReady,
  result: onResult,
  plan: panels.showPlan,
  profiling: (message) => profile.progress(message),
  profile: (message) => profile.show(message),
  tuning: (message) => tuning.progress(message),
  tuned: onTuned,
  tuningLog: (message) => tuning.log(message),
  tuningImported: onTuned,
  error: onError,
  restarting: onRestarting,
});
const results = new Results(settings.manifest, byId("overlay"));
const profile = new ProfilePanel(() => engine.profile());
const tuning = new TuningPanel((type, fields) => engine.ask(type, fields));
const camera = new Camera(byId("video"), (video) => onFrame(video).catch((error) => fail(error)), (error) => {
  fail(error);
  showSample();
});

byId("pick").addEventListener("click", () => byId("file").click());
byId("file").addEventListener("change", ({ target }) => {
  const [file] = target.files;
  target.value = ""; // so that the same file can be chosen again
  if (file) showFile(file);
});
byId("camera").addEventListener("click", toggleCamera);
byId("use-sample").addEventListener("click", () => {
  forgetError();
  showSample();
});
byId("dismiss").addEventListener("click", forgetError);
byId("retry").addEventListener("click", () => {
  forgetError();
  progress.begin("Starting the engine");
  engine.restart();
});
byId("plan-box").addEventListener("toggle", ({ target }) => target.open && engine.plan());
byId("backends").addEventListener("change", ({ target }) => {
  forgetError();
  panels.showBackend(`Changing to ${target.value} …`);
  engine.select(target.value);
});
byId("backends").querySelector(`[value=${settings.backend}]`).checked = true;
watchDropsAndPastes(byId("stage"), showFile, fail);
new ResizeObserver(() => results.redraw()).observe(byId("stage"));

progress.begin("Starting the engine");
engine.start();
showSample();
