// The page "Your model": a model in, what it is, its graph, runs and checks out. What any of it means is the engine's
// business (webinfer/page/model_controller.py).

import { keepInAddress } from "../../ui/address.js";
import { byId, el } from "../../ui/dom.js";
import { knownModels, startEngine } from "../../engine/engine_page.js";
import { forgetChecks } from "./model_checks.js";
import { showFacts, showPlans } from "./model_facts.js";
import { watchModelFiles } from "./model_files.js";
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
let turn = 0; // of the model that is being opened: an older one's answers are not shown

const workspace = new Workspace(settings.manifest["static/model_layout.js"].url, titles, calls, fail);
const runs = new Runs({ calls, troubles, workspace, titles, model, told: tell });
const shapes = new Shapes((sizes) => compile(sizes).catch(fail));

/** What the page says of itself to scripts. */
function tell(more) {
  const { told, plans } = model;
  const known = Object.fromEntries(Object.entries(plans).map(([name, plan]) => [name, plan.error?.code ?? (plan.open ? "open" : plan.rows.length)]));
  root.dataset.webinferModel = JSON.stringify({ name: told?.name, format: told?.format, plans: known, ...more });
}

function fail(error) {
  if (error.code === "stopped") return;
  troubles.show({ code: error.code ?? "page", message: error.message });
  workspace.wait("");
}

/** Opens a model: {files: {path: ArrayBuffer}} or {name} of one that the site knows. */
async function open(source) {
  const own = ++turn;
  calls.stop();
  troubles.forget();
  byId("known").value = source.name ?? "";
  Object.assign(model, { told: null, plans: {}, shapes: null, source });
  delete root.dataset.webinferModel;
  for (const id of ["facts-box", "members-box", "node-box", "shapes-box", "run-box"]) byId(id).hidden = true;
  forgetChecks();
  forgetOutputs();
  workspace.begin("Reading the file …");
  keepInAddress({ model: source.name ?? null, node: null, search: null });
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
  workspace.take(model, false);
  await compile(null);
}

/** Asks which of several models is meant. */
function chooseMember(source, { name, members }) {
  const links = members.map((member) => el("li", {}, el("button", { type: "button", class: "link", text: member, on: { click: () => open({ ...source, member }).catch(fail) } })));
  byId("members-title").textContent = `Several models are in ${name}`;
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
  if (byId("known").length === 1) byId("known").append(...known.map(({ name, late }) => new Option(`${name.replaceAll("_", " ")}${late ? `, fetched first (${late} MB)` : ""}`, name)));
  const name = parameters.get("model");
  if (model.source) open(model.source).catch(fail); // dropped before the engine ran, or the engine ran anew
  else if (name) open({ name }).catch(fail);
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
watchModelFiles({
  zone: byId("stage"),
  button: byId("pick"),
  input: byId("file"),
  busy: () => troubles.forget(),
  take: (files) => open({ files }).catch(fail),
  refuse: fail,
});
begin();
