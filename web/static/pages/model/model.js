// The page "Your model": a model in, what it is, its graph, runs and checks out. What any of it means is the engine's
// business (webinfer/page/model_controller.py).

import { keepInAddress } from "../../ui/address.js";
import { byId, el } from "../../ui/dom.js";
import { knownModels, startEngine } from "../../engine/engine_page.js";
import { addressOf, arrived, fetchFile, withFilesBeside } from "./model_address.js";
import { forgetChecks } from "./model_checks.js";
import { Comparison } from "./model_compare.js";
import { showFacts, showPlans } from "./model_facts.js";
import { watchModelFiles } from "./model_files.js";
import { byTask, titleOf } from "../../ui/model_names.js";
import { forgetOutputs } from "./model_outputs.js";
import { Runs } from "./model_runs.js";
import { Shapes } from "./model_shapes.js";
import { Workspace } from "./model_workspace.js";

const root = document.documentElement;
const parameters = new URLSearchParams(location.search);

const { calls, troubles, settings, site, begin } = await startEngine({ started, lost });
const titles = Object.fromEntries(site.page.backends.map(({ name, title }) => [name, title]));
const backends = [...document.querySelectorAll("#backends input")].map(({ value }) => value);
const model = { told: null, plans: {}, shapes: null, source: null };
let download = null; // AbortController of the model that is being fetched
let coming = null; // {url, files}: a model that the page's address names, on its way before the engine runs
let turn = 0; // of the model that is being opened: an older one's answers are not shown

const layouts = settings.manifest["static/model_layout.js"].url;
const workspace = new Workspace(layouts, titles, calls, fail);
const comparison = new Comparison(layouts);
const runs = new Runs({ calls, troubles, workspace, titles, model, told: tell });
const shapes = new Shapes((sizes) => compile(sizes).catch(fail));

/** What the page says of itself to scripts. */
function tell(more) {
  const { told, plans } = model;
  const known = Object.fromEntries(Object.entries(plans).map(([name, plan]) => [name, plan.error?.code ?? (plan.open ? "open" : plan.rows.length)]));
  root.dataset.webinferModel = JSON.stringify({ name: told?.name, format: told?.format, plans: known, ...more });
}

function fail(error) {
  showArrival(null);
  if (error.code === "stopped") return workspace.wait("");
  troubles.show({ code: error.code ?? "page", message: error.message });
  workspace.wait("");
}

/** Shows how far a download is: {name, done, total}; null takes it away. */
function showArrival(told, place = "arriving") {
  byId(place).hidden = !told;
  if (!told) return;
  if (told.total) byId(`${place}-bar`).value = told.done / told.total;
  else byId(`${place}-bar`).removeAttribute("value");
  byId(`${place}-text`).textContent = arrived(told);
}

/** Begins to fetch the model at an address: {url, files, step}. */
function fetching(text, place) {
  download?.abort();
  download = new AbortController();
  const step = (told) => showArrival(told, place);
  const url = addressOf(text);
  const files = fetchFile(url, download.signal, step);
  files.catch(() => {}); // told by who waits for it
  return { url, files, step, stop: download.signal };
}

/** All files of a model at an address, once the first one is there. */
async function fetched({ url, files, step, stop }, place) {
  const beside = async (own) => (await calls.ask("beside", { files: own })).names;
  const found = await withFilesBeside(await files, url, { beside, stop, step });
  showArrival(null, place);
  return found;
}

/** Opens a model under an address; `begun` is what `fetching` gave. */
async function openAddress(text, begun = fetching(text, "arriving")) {
  troubles.forget();
  byId("address").value = text;
  await open({ files: await fetched(begun, "arriving"), address: text });
}

/** Compares the open model with another one: {files}, {name} or {address}. */
async function compare({ address, ...source }) {
  troubles.forget();
  const own = turn;
  try {
    if (address) source.files = await fetched(fetching(address, "other-arriving"), "other-arriving");
    byId("compare-status").textContent = "Comparing …";
    const found = await calls.ask("compare", source);
    if (own !== turn) return;
    keepInAddress({ with: source.name ?? null, "with-url": address ?? null });
    await comparison.show(model.told, found);
  } catch (error) {
    showArrival(null, "other-arriving");
    comparison.forget();
    fail(error);
  }
}

/** Compares with the model that the page's address names, once. */
function compareAsAsked() {
  const [name, address] = [parameters.get("with"), parameters.get("with-url")];
  parameters.delete("with");
  parameters.delete("with-url");
  if (name || address) compare(address ? { address } : { name });
}

/** Opens a model: {files: {path: ArrayBuffer}}, with the `address` that they came from, or {name} of one that the site knows. */
async function open({ address, ...source }) {
  const own = ++turn;
  calls.stop();
  troubles.forget();
  byId("known").value = source.name ?? "";
  Object.assign(model, { told: null, plans: {}, shapes: null, source });
  delete root.dataset.webinferModel;
  for (const id of ["facts-box", "members-box", "node-box", "shapes-box", "run-box", "compare-box"]) byId(id).hidden = true;
  forgetChecks();
  forgetOutputs();
  comparison.forget();
  workspace.begin("Reading the file …");
  keepInAddress({ model: source.name ?? null, url: address ?? null, node: null, search: null });
  const told = await calls.ask("open", source);
  if (own !== turn) return;
  if (told.members) return chooseMember(source, told);
  model.told = told;
  showFacts(told, (text) => workspace.search(text));
  showPlans({}, titles);
  if (told.error) {
    workspace.end();
    fail(told.error);
    return tell();
  }
  byId("compare-box").hidden = false;
  workspace.take(model, false);
  compareAsAsked();
  await compile(null);
}

/** Asks which of several models is meant. */
function chooseMember(source, { name, members }) {
  const links = members.map((member) => el("li", {}, el("button", { type: "button", class: "link", text: member, on: { click: () => open({ ...source, member }).catch(fail) } })));
  byId("members-title").textContent = `${name} contains several models`;
  byId("members").replaceChildren(...links);
  byId("members-box").hidden = false;
  workspace.wait("");
  links[0].firstChild.focus();
}

/** Compiles the model for each backend, the chosen one first. */
async function compile(sizes) {
  const own = turn;
  model.shapes = sizes;
  model.plans = {};
  forgetChecks();
  const chosen = document.querySelector("#backends input:checked").value;
  for (const backend of [chosen, ...backends.filter((name) => name !== chosen)]) {
    showPlans(model.plans, titles, backend);
    const plan = await calls.ask("plan", { backend, ...(sizes ? { shapes: sizes } : {}) });
    if (own !== turn) return;
    model.plans[backend] = plan;
    showPlans(model.plans, titles);
    planned(plan);
    if (plan.open) break;
  }
  const refused = Object.values(model.plans).every(({ error }) => error);
  if (refused) {
    fail(Object.values(model.plans)[0].error);
    workspace.refused();
  }
  tell();
}

/** One more backend has said what it makes of the model. */
function planned(plan) {
  const first = Object.values(model.plans).filter(({ graph }) => graph).length === 1;
  if (plan.open) shapes.ask(plan.inputs);
  if (plan.graph && first) {
    shapes.keep(plan.inputs);
    runs.ready(plan);
  }
  workspace.take(model, first && Boolean(plan.graph));
}

function started() {
  const known = knownModels(site, settings);
  for (const id of ["known", "compare-known"]) {
    if (byId(id).length > 1) continue;
    const option = ({ name, late }) => new Option(`${titleOf(name)}${late ? `, fetched first (${late} MB)` : ""}`, name);
    byId(id).append(...byTask(known).map(([task, rows]) => el("optgroup", { label: task }, ...rows.map(option))));
  }
  const name = parameters.get("model");
  if (model.source) open(model.source).catch(fail); // dropped before the engine ran, or the engine ran anew
  else if (coming) openAddress(byId("address").value, coming).catch(fail);
  else if (name) open({ name }).catch(fail);
  coming = null;
}

function lost(error) {
  if (calls.busy) model.source = null; // it may be what the engine was lost to
  calls.drop(error);
  workspace.end();
}

const wanted = parameters.get("backend");
if (backends.includes(wanted)) document.querySelector(`#backends [value=${wanted}]`).checked = true;
byId("backends").addEventListener("change", ({ target }) => keepInAddress({ backend: target.value }));
byId("known").addEventListener("change", ({ target }) => target.value && open({ name: target.value }).catch(fail));
byId("compare-known").addEventListener("change", ({ target }) => target.value && compare({ name: target.value }));
for (const [form, field, take] of [["address-form", "address", (address) => openAddress(address)], ["compare-address-form", "compare-address", (address) => compare({ address })]]) {
  byId(form).addEventListener("submit", (event) => {
    event.preventDefault();
    const text = byId(field).value.trim();
    if (text) Promise.resolve(text).then(take).catch(fail);
  });
}
for (const id of ["arriving-stop", "other-arriving-stop"]) byId(id).addEventListener("click", () => download?.abort());
watchModelFiles({ button: byId("compare-pick"), input: byId("compare-file"), busy: () => troubles.forget(), take: (files) => compare({ files }), refuse: fail });
watchModelFiles({
  zone: byId("stage"),
  button: byId("pick"),
  input: byId("file"),
  busy: () => troubles.forget(),
  take: (files) => open({ files }).catch(fail),
  refuse: fail,
});
if (parameters.get("url")) {
  byId("address").value = parameters.get("url");
  try {
    coming = fetching(parameters.get("url"), "arriving");
  } catch (error) {
    fail(error);
  }
}
begin();
