// The page "Device lab": this browser becomes a device when its user agrees, and what the lab measured is shown.

import { byId, download, el, say } from "../../ui/dom.js";
import { paced } from "../../ui/paced.js";
import { showWork, startEngine } from "../../engine/engine_page.js";
import { LabDevice } from "./lab_device.js";
import { asked, showDevices, showResults } from "./lab_results.js";

const EVERY_MS = 3000; // the lab is looked at
const GOING_MS = 200; // until the lab knows that a device left
const SHOWN = 12; // questions
const DRAWN_MS = 250; // between two times that they are drawn: a run of 5 ms is drawn in as many
const KEPT = "webinfer device name";
const root = document.documentElement;
const token = new URLSearchParams(location.hash.slice(1)).get("token") ?? "";

const { calls, troubles, site, begin, arrive } = await startEngine({ started, lost });
const titles = Object.fromEntries(site.page.backends.slice(1).map(({ name, title }) => [name, title]));
let agreed = false;
let running = null; // what the engine says that it can, once it runs
let device = null;
let questions = []; // {what, said}, the newest first
let step = null; // {done, total} of the one that the engine works at
let seen = ""; // of the results, as they are shown
let screenLock = null;

const fail = (error) => troubles.show({ code: error.code ?? "page", message: error.message });

// ----- this browser as a device

const browserName = () => navigator.userAgentData?.brands?.findLast(({ brand }) => !/not/i.test(brand))?.brand ?? /(Firefox|Version)\/[\d.]+/.exec(navigator.userAgent)?.[0] ?? "a browser";
const systemName = () => navigator.userAgentData?.platform || navigator.platform || "unknown system";

function about() {
  const gpu = running.find(({ name }) => /webgpu/i.test(name));
  const cores = navigator.hardwareConcurrency;
  const facts = { browser: `${browserName()}, ${systemName()}`, cores, gpu: gpu?.present ? gpu.value || "present" : "none", engine: site.engine };
  return { ...facts, models: Object.keys(site.page.models).length, capabilities: running.map(({ name, present, value }) => ({ name, present, value })) };
}

function agree() {
  if (byId("agree").getAttribute("aria-disabled") === "true") return;
  if (!byId("name").reportValidity() || !byId("name").value) return byId("name").focus();
  localStorage.setItem(KEPT, byId("name").value);
  troubles.forget();
  agreed = true;
  showState();
  if (running) join();
  else begin();
}

function started(capabilities) {
  running = capabilities;
  if (agreed) join();
}

function lost(error) {
  running = null;
  calls.drop(error);
  device?.stop();
  device = null;
  showState();
}

function join() {
  say(byId("status"), "Connecting to the lab …");
  device = new LabDevice(calls, { token, name: byId("name").value, about: about() }, {
    here: (name) => {
      say(byId("status"), `Connected as “${name}”. No program is controlling this device.`);
      root.dataset.webinferDevice = JSON.stringify({ name });
      look();
    },
    driven: (by) => {
      say(byId("status"), by === null ? "No program is controlling this device." : `A program at ${by} is controlling this device.`);
      root.dataset.webinferDriven = JSON.stringify({ by });
    },
    asked: (action, fields) => {
      const what = [action.replaceAll("_", " "), fields.name ?? Object.keys(fields.files ?? {})[0] ?? fields.backend ?? ""].join(" ").trim();
      questions = [{ what, said: "…" }, ...questions].slice(0, SHOWN);
      step = { done: 0, total: 0 };
      drawSoon();
    },
    step: ({ done, total }) => {
      step = { done, total };
      drawSoon();
    },
    answered: (error) => {
      const open = questions.findLast(({ said }) => said === "…");
      if (open) open.said = error ? error.message.slice(0, 120) : "done";
      drawSoon();
      if (!calls.busy) lookSoon();
    },
    gone: (error) => {
      leave();
      fail(error);
    },
  });
  showState();
}

/** Shows what was asked, and how far the engine is with it. */
const drawSoon = paced(DRAWN_MS, () => {
  byId("asked").replaceChildren(...questions.map(({ what, said }) => el("li", {}, el("span", { text: what }), " ", el("em", { text: said }))));
  showWork(agreed && calls.busy ? step : null);
});

/** Is no device any more; the engine stays for the next time. */
function leave() {
  device?.stop();
  device = null;
  agreed = false;
  delete root.dataset.webinferDevice;
  showState();
  say(byId("status"), "This browser is no longer a device.");
  setTimeout(look, GOING_MS);
}

async function showState() {
  byId("agree").hidden = agreed;
  byId("stop").hidden = !agreed;
  byId("name").readOnly = agreed;
  if (!agreed) showWork(null);
  try { // a phone that sleeps computes nothing
    if (agreed) screenLock ??= await navigator.wakeLock?.request("screen");
    else await screenLock?.release();
    if (!agreed) screenLock = null;
  } catch {
    screenLock = null;
  }
}

// ----- what the lab has

async function look() {
  try {
    const [devices, results] = await Promise.all([asked("devices", token), asked("results", token)]);
    showDevices(devices);
    const fresh = JSON.stringify(results.map(({ id }) => id));
    if (fresh !== seen) showResults(results, titles);
    seen = fresh;
    byId("agree").setAttribute("aria-disabled", "false");
  } catch (error) {
    byId("agree").setAttribute("aria-disabled", "true");
    say(byId("devices"), error.code ? error.message : "The lab’s server does not respond.");
    return error.code !== "token";
  }
  return true;
}

/** Looks when an answer is there. Each look reads 500 results, whose 22 ms the server takes from messages under way. */
const lookSoon = paced(EVERY_MS, look);

async function keepLooking() {
  if (!document.hidden && !(await look())) return; // another token needs another address
  setTimeout(keepLooking, EVERY_MS);
}

byId("name").value = localStorage.getItem(KEPT) ?? `${systemName()} ${browserName()}`.replace(/[^A-Za-z0-9 ._-]/g, "").slice(0, 32).trim();
byId("agree").addEventListener("click", agree);
byId("stop").addEventListener("click", leave);
byId("tunings").addEventListener("click", async () => {
  try {
    download("webinfer-tunings.jsonl", [await asked("tunings", token)], "application/x-ndjson");
  } catch (error) {
    fail(error);
  }
});
addEventListener("hashchange", () => location.reload());
new ResizeObserver(() => (seen = "")).observe(byId("chart"));
byId("loading").hidden = true;
arrive(); // its engine waits for consent
keepLooking();
