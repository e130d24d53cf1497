// The page: reads config.json, runs every model, shows what comes, posts it to /log.

import { about } from "./adapter.js";
import { measureModel, measurePeak } from "./conductor.js";
import { setLimit } from "./remote.js";
import { concluded, report } from "./report.js";

const status = document.getElementById("status");
const progress = document.getElementById("progress");
const table = document.getElementById("results");

function tell(text) {
  status.textContent = text;
}

const NAMES = { litertjs: "LiteRT.js", ortweb: "ORT-web", tfjs: "TF.js", native: "native LiteRT" };

const threads = ({ threads }) => (threads ? `${threads} thread${threads > 1 ? "s" : ""}` : "");

function headCell(row, ...lines) {
  const cell = document.createElement("th");
  cell.scope = "col";
  for (const line of lines) cell.append(line, document.createElement("br"));
  row.append(cell);
}

function head(entries) {
  const row = table.createTHead().insertRow();
  headCell(row, "model");
  for (const entry of entries) headCell(row, NAMES[entry.system] ?? entry.system, entry.backend, threads(entry));
}

function show(model, rows) {
  const line = table.tBodies[0].insertRow();
  const name = document.createElement("th");
  name.scope = "row";
  name.textContent = model.name;
  line.append(name);
  const best = (count) => Math.min(...rows.filter((row) => row.threads === count && row.system !== "native").map((row) => row.median_ms ?? Infinity));
  for (const row of rows) {
    const cell = line.insertCell();
    cell.textContent = row.error ? "–" : row.median_ms.toFixed(row.median_ms < 10 ? 2 : 1);
    cell.title = row.error ?? `min ${row.min_ms.toFixed(2)} ms, first ${row.first_ms.toFixed(0)} ms, difference ${row.max_abs_diff}`;
    cell.className = row.error ? "missing" : row.median_ms === best(row.threads) ? "best" : "";
  }
}

/** ?models=a,b&systems=x,y&rounds=3 narrow what config.json asks for. */
function narrowed(config) {
  const asked = new URL(location.href).searchParams;
  const list = (name) => asked.get(name)?.split(",");
  const models = list("models"), systems = list("systems");
  return {
    ...config,
    rounds: Number(asked.get("rounds") ?? config.rounds),
    models: config.models.filter((model) => !models || models.includes(model.name)),
    entries: config.entries.filter((entry) => !systems || systems.includes(entry.system)),
  };
}

async function run() {
  const config = narrowed(await (await fetch("config.json")).json());
  const needsGpu = config.entries.some((entry) => entry.backend === "webgpu");
  await report("about", await about(needsGpu));
  head(config.entries);
  tell("measuring what a core can do");
  await report("wasm_peak_gflops", await measurePeak(40));
  setLimit(config.limit_ms);
  progress.max = config.models.length;
  for (const [i, model] of config.models.entries()) {
    progress.value = i;
    const rows = await measureModel(model, config, tell, report);
    show(model, rows);
    await report("model", { name: model.name, quantised: model.quantised, flops: model.flops });
    for (const row of rows) await report("row", row);
  }
  await report("wasm_peak_gflops", await measurePeak(40)); // once more: the machine may have changed its clock
  progress.value = config.models.length;
  tell(`done: ${config.models.length} models`);
}

concluded(run, tell);
