// The page of a task: a picture, sound, text or file in, results out. What happens to it is the engine's business.

import * as address from "../../ui/address.js";
import { CodeBox } from "../../ui/code_box.js";
import { byId } from "../../ui/dom.js";
import { EngineClient } from "../../engine/engine_client.js";
import * as panels from "../../ui/panels.js";
import { ProfilePanel } from "../../ui/profile_panel.js";
import { remember } from "../../ui/recent_runs.js";
import { showExamples } from "./examples.js";
import { OwnFiles } from "./own_files.js";
import { showOptions, watchOptions } from "./options.js";
import { asJson, Results } from "./results.js";
import { Stage } from "./stage.js";
import { Troubles } from "../../ui/troubles.js";
import { TuningPanel } from "../../ui/tuning_panel.js";

const root = document.documentElement;

if (!globalThis.started) await new Promise((resolve) => addEventListener("started", resolve, { once: true })); // by first.js
const { settings, take, ...started } = globalThis.started;
const LIVE = ["camera", "video", "microphone"];
const FULL = 4_096; // numbers in one list that the page's machine-readable result has at most
const BRIEF = 64; // of a frame
const TOLD_MS = 2_000; // that a button says what it did
const KEEPER_MS = 3_000; // after the first result, when nobody waits
let count = 0;
let firstMs = null;
let { options } = settings;
let stage = null;
let schema = null; // how results of the page's own task are shown
let runsOn = ""; // the backend that the engine named last
let restarted = null; // what to say once an engine that was replaced runs again

/** Another picture or the camera is shown: what was found in the one before is forgotten. */
function onChanged() {
  results.clear(stage?.current.paper);
  if (stage) address.set("source", stage.current.kind === "camera" ? "camera" : null);
  rate.forget();
}

/** Has the picture that is shown looked at, if the engine has nothing else to do. */
function look() {
  if (engine.idle) stage.detect().catch(() => {}); // a photo that did not come is reported where it is waited for
}

function onResult(result, source) {
  count += 1;
  if (firstMs === null) setTimeout(keepPage, KEEPER_MS);
  firstMs ??= performance.now();
  if (results.name !== schema.name) results.expect(schema); // the user's code may have shown what another task found
  const { backend, reason, image, found, beside, times } = result;
  const live = LIVE.includes(source?.kind);
  const told = { backend, reason, image, about: source?.about, beside: asJson(beside, live ? BRIEF : FULL), times, first_ms: firstMs, count, source: source?.kind };
  root.dataset.webinferResult = JSON.stringify({ ...told, [results.name]: asJson(found, live ? BRIEF : FULL) });
  if (source !== stage.current) return; // of a picture that is no longer shown
  results.show({ ...shown(image, source), beside: { ...source.paper, ...beside }, found, live });
  stage.took?.(found);
  remember(result, live);
  panels.showChoice({ backend, reason }); // another one after the loss of a GPU
  panels.showTimes(times);
  if (live) rate.count(performance.now());
}

/** What it was that something was found in, for Results.show. */
const shown = (image, { element: medium, about }) => ({ picture: image ?? null, mirrored: stage.mirrored, medium, about });

/** What the user's code found in the picture at hand, drawn as its own task's page would. */
async function onShown({ result, image, found }) {
  await results.expect(result);
  results.show({ ...shown(image, stage.current), beside: stage.current.paper, found, live: false });
}

/** Gives the browser the page's icons and examples. From now on the page opens without a network, once its files are kept (offline.js). */
function keepPage() {
  if (!byId("icons")) return; // done
  document.querySelector("link[rel=icon]").replaceWith(byId("icons").content);
  showExamples((file) => stage.showFiles([file]));
  navigator.serviceWorker?.register(settings.keeper, { updateViaCache: "none" }).catch(() => {}); // as good as it was
}

function onReady({ backend, reason, notice, capabilities, tunable, result }) {
  progress.end();
  profile.forget();
  tuning.ready(tunable);
  runsOn = backend;
  schema = result;
  results.expect(result);
  panels.showChoice({ backend, reason });
  panels.showCapabilities(capabilities);
  if (restarted ?? notice) troubles.show(restarted ?? notice, { severe: false });
  restarted = null;
  if (byId("plan-box").open) engine.plan();
  look();
}

/** The engine runs, and waits for a model of the user's; or what was opened was none for this task. */
function onStarted({ capabilities }) {
  progress.end();
  panels.showBackend("No model is open.");
  panels.showCapabilities(capabilities);
  schema ??= JSON.parse(root.dataset.schema);
  results.expect(schema);
  if (restarted) own.renew();
  restarted = null;
  setTimeout(keepPage, KEEPER_MS);
}

/** "Auto" has measured which backend is the fastest. */
function onSettled({ backend, reason, capabilities, tunable }) {
  panels.showChoice({ backend, reason });
  panels.showCapabilities(capabilities);
  if (backend === runsOn) return;
  runsOn = backend;
  profile.forget();
  tuning.ready(tunable);
  if (byId("plan-box").open) engine.plan();
  look();
}

/** Other kernels are in use now. */
function onTuned(message) {
  if (message.type === "tuned") tuning.tuned(message);
  else tuning.imported(message);
  profile.forget();
  if (byId("plan-box").open) engine.plan();
  look();
}

function onError({ code, message, fatal }) {
  profile.forget();
  tuning.failed();
  if (fatal) {
    behind.lost();
    progress.end();
    panels.showBackend("The engine is not running.");
    return troubles.ended({ code, message });
  }
  const lost = code === "device-lost"; // the engine goes on with a new device, after two losses without
  troubles.show({ code, message }, { severe: !lost });
  if (lost) look();
}

function onRestarting({ code, message }) {
  behind.lost();
  profile.forget();
  tuning.ready(false);
  progress.begin("Starting the engine again");
  panels.showBackend("The engine is being started again.");
  restarted = { code, message: `${message} It was started again.` };
  troubles.slow(null);
  troubles.show({ code, message: `${message} It is being started again.` }, { severe: false });
}

/** Tries again with nothing that may be broken: another engine, and all that did not come is asked for anew. */
function tryAgain() {
  const { stuck } = troubles;
  troubles.forgetAll();
  if (stuck) {
    progress.begin("Starting the engine");
    panels.showBackend("The engine is being started.");
    engine.restart();
  }
  results.renew();
  stage.renew();
  reloadIfRenewed();
  byId(stuck ? "loading" : "controls").focus();
}

/** Loads the page anew if the site has other files now: those that this page knows may be gone. */
async function reloadIfRenewed() {
  try {
    const answer = await fetch(`${settings.home}api/manifest`, { cache: "no-store", signal: AbortSignal.timeout(settings.stallTimeout) });
    const { assets } = await answer.json();
    if (Object.entries(assets).some(([name, { sha256 }]) => settings.manifest[name]?.sha256 !== sha256)) location.reload();
  } catch {} // nobody answers, or no list is published: what this page knows has to do
}

/** Runs something else from now on: {backend}, {model} or {options}, which the address says as `name`. */
function select(wanted, name, value = wanted[name]) {
  troubles.forgetAll();
  panels.showBackend("Changing …");
  if (!engine.exists) progress.begin("Starting the engine");
  address.set(name, value);
  engine.select(wanted);
}

const rate = new panels.Rate();
const progress = new panels.Progress();
const troubles = new Troubles();
const engine = new EngineClient(settings, started, {
  progress: (message) => progress.show(message),
  ready: onReady,
  started: onStarted,
  settled: onSettled,
  result: onResult,
  plan: panels.showPlan,
  profiling: (message) => profile.progress(message),
  profile: (message) => profile.show(message),
  tuning: (message) => tuning.progress(message),
  tuned: onTuned,
  tuningLog: (message) => tuning.log(message),
  tuningImported: onTuned,
  printed: (message) => behind.hear(message),
  shown: onShown,
  ran: (message) => behind.hear(message),
  error: onError,
  restarting: onRestarting,
  quiet: (seconds) => troubles.slow(seconds),
  moving: () => troubles.slow(null),
});
const results = new Results(settings.manifest, byId("overlay"), {
  refuse: (error) => troubles.show(error, { retry: true }),
  changed: address.set,
  paint: (look) => engine.paint(look),
  rows: () => stage.rows ?? null,
});
const Source = root.dataset.source === "picture" ? Stage : (await import(settings.manifest[`static/sources/${root.dataset.source}.js`].url)).Source;
stage = new Source({ engine, troubles, settings, progress, changed: onChanged, redraw: () => results.redraw() });
const profile = new ProfilePanel(() => engine.profile());
const tuning = new TuningPanel((type, fields) => engine.ask(type, fields));
const behind = new CodeBox(settings.manifest, { engine, still: () => stage.still() }, (error) => troubles.show(error));

const own = new OwnFiles({
  settings,
  report: (message) => progress.show(message),
  refuse: (error) => troubles.show(error),
  open: ({ files, options: more }) => {
    const told = byId("model");
    if (told && !told.querySelector("[value='']")) told.add(new Option("Your file", ""));
    if (told) told.value = "";
    options = { ...options, ...more };
    select({ files, options, model: "" }, "model", null);
  },
});

byId("pick").addEventListener("click", () => byId("file").click());
byId("file").addEventListener("change", ({ target }) => {
  const files = [...target.files];
  target.value = ""; // so that the same file can be chosen again
  if (files.length) stage.showFiles(files);
});
document.querySelector("[data-live]")?.addEventListener("click", () => stage.toggleLive());
byId("use-sample").addEventListener("click", () => {
  troubles.forget();
  stage.showSample();
});
byId("dismiss").addEventListener("click", () => {
  troubles.forget();
  byId("controls").focus();
});
byId("retry").addEventListener("click", tryAgain);
byId("plan-box").addEventListener("toggle", ({ target }) => target.open && (root.dataset.model || runsOn) && engine.plan()); // a page without a model has none yet
byId("copy-link").addEventListener("click", async ({ target }) => {
  const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
  target.textContent = copied ? "Link copied" : "Copy the address above";
  setTimeout(() => (target.textContent = "Copy link"), TOLD_MS);
});
byId("backends").addEventListener("change", ({ target }) => {
  select({ backend: target.value }, "backend");
});
byId("model")?.addEventListener("change", ({ target }) => (target.value ? select({ model: target.value, files: null }, "model") : own.renew()));
watchOptions((name, value) => {
  options = { ...options, [name]: value };
  select({ options }, name, value);
});
byId("tools").open = address.get("tools") === "open";
byId("tools").addEventListener("toggle", ({ target }) => address.set("tools", target.open ? "open" : null));
byId("backends").querySelector(`[value=${settings.backend}]`).checked = true;
new ResizeObserver(() => results.redraw()).observe(byId("stage"));

take();
progress.begin("Starting the engine");
engine.start();
if (byId("model")) byId("model").value = settings.model;
showOptions(options);
stage.showSample();
if (address.get("source") === "camera") stage.toggleLive();
