// One system, one model, one run: first.html?system=webinfer&model=face_mesh. It shows what a visitor waits for if it is
// opened in a fresh browser each time. Posts ["first", row], then ["done", whether it came to its end].

import { about } from "./adapter.js";
import { open } from "./conductor.js";
import { concluded, report } from "./report.js";

const query = new URL(location.href).searchParams;
const status = document.getElementById("status");

async function run() {
  const { models, entries, backend } = await (await fetch("config.json")).json();
  const model = models.find(({ name }) => name === query.get("model"));
  const threads = query.get("threads");
  const entry = entries.find((one) => one.system === query.get("system") && (threads ?? one.threads) == one.threads);
  if (!model || !entry) throw new Error("this site has no such system or model");
  const row = { model: model.name, ...entry };
  status.textContent = `${row.system}, ${row.model}`;
  try {
    (await open(entry, model, row)).end();
    status.textContent += `: ${row.start_ms.toFixed(0)} + ${row.load_ms.toFixed(0)} + ${row.first_run_ms.toFixed(0)} ms`;
  } catch (error) {
    row.error = error.message;
    status.textContent += `: ${error.message}`;
  }
  await report("about", await about(backend === "webgpu"));
  await report("first", row);
}

concluded(run, (text) => (status.textContent = text));
