// The page "Benchmark": the models of this site on this device, and another's numbers beside them.

import { keepInAddress } from "../../ui/address.js";
import { chart, numbers } from "./benchmark_chart.js";
import { fromLink, fromText, resultOf, toLink } from "./benchmark_result.js";
import { readRivals } from "./benchmark_rivals.js";
import { Measurement } from "./benchmark_runs.js";
import { byId, bytes, download, el, say } from "../../ui/dom.js";
import { knownModels, showWork, startEngine } from "../../engine/engine_page.js";
import { byTask, titleOf } from "../../ui/model_names.js";

const KEPT = "webinfer benchmark"; // the last result of this browser
const root = document.documentElement;
const parameters = new URLSearchParams(location.search);

const { calls, troubles, settings, site, begin } = await startEngine({ started, lost });
const titles = Object.fromEntries(site.page.backends.slice(1).map(({ name, title }) => [name, title]));
const rivals = await readRivals(root.dataset.rivals).catch((error) => fail(error) ?? null);
Object.assign(titles, rivals?.titles(titles));
const shown = { own: kept(), other: null };
let measurement = null;
let device = "";

function kept() {
  try {
    return fromText(localStorage.getItem(KEPT) ?? "");
  } catch {
    return null; // nothing was kept, or by another version
  }
}

const ticked = (selector) => [...document.querySelectorAll(`${selector} input:checked`)].map(({ value }) => value);
function fail(error) {
  troubles.show({ code: error.code ?? "page", message: error.message });
}

// ----- what to measure

function offerModels() {
  const asked = parameters.get("models")?.split(",");
  const row = ({ name, late, bytes: size }) => {
    const box = el("input", { type: "checkbox", value: name, checked: asked ? asked.includes(name) : !late });
    const note = late ? el("small", { text: `fetched first (${late} MB)` }) : el("small", { class: "size", text: bytes(size) });
    return el("label", {}, box, el("span", {}, titleOf(name), " ", note));
  };
  const groups = byTask(knownModels(site, settings)).map(([task, rows]) =>
    el("div", { role: "group", "aria-label": task }, el("p", { class: "task", text: task }), ...rows.map(row)));
  byId("models").replaceChildren(...groups);
  const backends = parameters.get("backends")?.split(",");
  if (backends) for (const box of document.querySelectorAll("#backends input")) box.checked = backends.includes(box.value);
  rivals?.offer(parameters.get("rivals")?.split(","));
  const rounds = [...byId("rounds").options].find(({ value }) => value === parameters.get("rounds"));
  if (rounds) rounds.selected = true;
}

function keepChoice() {
  const all = (selector) => document.querySelectorAll(`${selector} input`).length;
  const own = (selector) => (ticked(selector).length === all(selector) ? null : ticked(selector).join(","));
  keepInAddress({ models: ticked("#models").join(","), backends: own("#backends"), rivals: own("#rivals"), rounds: byId("rounds").value === "15" ? null : byId("rounds").value });
}

// ----- the measurement

async function measure() {
  const [models, backends, rounds] = [ticked("#models"), ticked("#backends"), Number(byId("rounds").value)];
  if (measurement || byId("start").getAttribute("aria-disabled") === "true") return;
  if (!models.length || !backends.length) return fail({ code: "input", message: "Choose at least one model and one backend." });
  troubles.forget();
  const rows = new Map();
  delete root.dataset.webinferBenchmark;
  const on = {
    step: ({ done, total, text }) => showWork({ done, total }, text),
    row: (row) => {
      rows.set(`${row.model} ${row.backend}`, row);
      shown.own = resultOf(site.engine, device, [...rows.values()]);
      show();
    },
  };
  const beside = (model) => rivals?.on(model, ticked("#rivals"), backends) ?? [];
  measurement = new Measurement(calls, on, beside);
  busy(true);
  try {
    const whole = await measurement.run(models, backends, rounds);
    say(byId("status"), whole ? "Done." : "Stopped; what was measured so far is shown.");
    if (rows.size) localStorage.setItem(KEPT, JSON.stringify(shown.own));
    root.dataset.webinferBenchmark = JSON.stringify({ whole, rows: [...rows.values()] });
  } catch (error) {
    say(byId("status"), "");
    fail(error);
  } finally {
    measurement = null;
    busy(false);
  }
}

function busy(yes) {
  byId("start").setAttribute("aria-disabled", String(yes));
  byId("stop").hidden = !yes;
  if (yes) showWork({ done: 0, total: 1 }, "Starting …");
  else showWork(null);
}

// ----- the result

const told = ({ device: where, engine, when }) => `${where}; webinfer ${engine}, ${when.slice(0, 10)}`;

function show() {
  const { own, other } = shown;
  byId("result-box").hidden = !own && !other;
  byId("forget").hidden = !other;
  byId("copy").hidden = byId("save").hidden = !own;
  if (!own && !other) return;
  say(byId("device"), own ? `This device: ${told(own)}` : "Nothing has been measured on this device yet.");
  byId("other-device").hidden = !other;
  say(byId("other-device"), other ? `The other: ${told(other)}` : "");
  draw();
  say(byId("chart-caption"), `Medians; the line is the middle half of all runs. Shorter is faster. Each model has its own scale.${other ? " The other’s bars are hatched." : ""}`);
  byId("table").replaceChildren(own ? numbers(own, other, titles) : numbers(other, null, titles));
}

function draw() {
  if (byId("result-box").hidden) return;
  byId("chart").replaceChildren(chart(shown.own, shown.other, titles, Math.max(240, byId("chart").clientWidth)));
}

async function copy() {
  const address = new URL(location.href);
  address.hash = await toLink(shown.own);
  try {
    await navigator.clipboard.writeText(address.href);
    say(byId("status"), "The link is in the clipboard. The link itself contains the numbers; nothing was uploaded.");
  } catch {
    location.hash = address.hash;
    say(byId("status"), "The link is in the address bar now: copy it from there.");
  }
}

async function readLink() {
  try {
    const found = await fromLink(location.hash);
    if (!found) return;
    shown.other = found;
    show();
  } catch (error) {
    fail(error);
  }
}

// ----- the page

function started(capabilities) {
  if (rivals) rivals.threads = Number(capabilities.find(({ name }) => name === "threads")?.value) || 1;
  const gpu = capabilities.find(({ name }) => /webgpu/i.test(name));
  const system = navigator.userAgentData?.platform || navigator.platform || "unknown system";
  const browser = navigator.userAgentData?.brands?.findLast(({ brand }) => !/not/i.test(brand))?.brand ?? /(Firefox|Version)\/[\d.]+/.exec(navigator.userAgent)?.[0] ?? "a browser";
  device = `${system}, ${browser}, ${navigator.hardwareConcurrency} cores, ${gpu?.present ? `GPU ${gpu.value || "present"}` : "no GPU"}`.slice(0, 200);
  byId("start").setAttribute("aria-disabled", "false");
}

function lost(error) {
  byId("start").setAttribute("aria-disabled", "true");
  calls.drop(error);
}

offerModels();
byId("start").addEventListener("click", measure);
byId("stop").addEventListener("click", () => measurement?.stop());
for (const id of ["models", "backends", "rivals", "rounds"]) byId(id)?.addEventListener("change", keepChoice);
byId("copy").addEventListener("click", copy);
byId("save").addEventListener("click", () => download("webinfer-benchmark.json", [JSON.stringify(shown.own, null, 1)], "application/json"));
byId("open").addEventListener("click", () => byId("file").click());
byId("file").addEventListener("change", async ({ target }) => {
  const [file] = target.files;
  target.value = ""; // so that the same file can be chosen again
  if (!file) return;
  try {
    shown.other = fromText(await file.text());
    troubles.forget();
    show();
  } catch (error) {
    fail(error);
  }
});
byId("forget").addEventListener("click", () => {
  shown.other = null;
  history.replaceState(null, "", location.pathname + location.search);
  show();
  byId("open").focus();
});
new ResizeObserver(draw).observe(byId("chart"));
addEventListener("hashchange", readLink);
show();
readLink();
begin();
