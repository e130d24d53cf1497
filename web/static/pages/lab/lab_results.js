// What the lab has: its devices, and what was measured on them, as a chart and a table.

import { summary } from "../benchmark/benchmark_result.js";
import { chart } from "../benchmark/benchmark_chart.js";
import { byId, el, milliseconds, table } from "../../ui/dom.js";

const SHOWN = 50; // rows of the table
const SAYS = {
  run: ({ ms }) => milliseconds(ms),
  time: ({ times }) => `median ${milliseconds(summary(times).median)} of ${times.length} runs`,
  profile: ({ run_ms: whole, times }) => `${milliseconds(whole)} a run, ${times.length} steps`,
  verify: ({ ok, against, differences }) => `${ok ? "agrees" : "differs"} with ${against} in ${differences.length} tensors`,
  tune: ({ verdict, gain, timed }) => `${timed} shapes timed, ${(100 * gain).toFixed(1)} % saved (${milliseconds(verdict.tuned_ms)} on the GPU)`,
};

/** What is asked of the lab's server: JSON, or a text. Throws an Error with a code. */
export async function asked(what, token) {
  const answer = await fetch(`/api/lab/${what}`, { headers: { Authorization: `Bearer ${token}` } });
  if (answer.ok) return what === "tunings" ? answer.text() : answer.json();
  const { code, title } = await answer.json().catch(() => ({ code: "lab", title: `The lab answers with status ${answer.status}.` }));
  throw Object.assign(new Error(title), { code });
}

/** Shows the devices that are here. */
export function showDevices(devices) {
  const state = ({ busy, doing, model }) => (busy ? `controlled: ${[doing.join(", ") || "waiting", model].filter(Boolean).join(", ")}` : "free");
  const rows = devices.map((device) => [device.name, state(device), device.about.browser ?? "", device.about.gpu ?? ""]);
  byId("devices").replaceChildren(rows.length ? table("Devices of the lab", ["Device", "State", "Browser", "GPU"], rows) : "No devices yet.");
}

/** The latest measurement of each model on each device and backend, as rows of the chart. */
export function measured(results) {
  const rows = new Map();
  for (const { action, device, model, backend, value } of results) {
    const key = JSON.stringify([model, device, backend]);
    if (action === "time" && value.times?.length && !rows.has(key)) rows.set(key, { model, backend, title: `${device}, ${backend}`, ...summary(value.times) });
  }
  return [...rows.values()].sort((one, other) => one.model.localeCompare(other.model) || one.title.localeCompare(other.title));
}

/** Shows what was measured; `titles` of backends, in the order of their colours. */
export function showResults(results, titles) {
  byId("none").hidden = results.length > 0;
  const rows = measured(results);
  byId("figure").hidden = !rows.length;
  if (rows.length) byId("chart").replaceChildren(chart({ rows }, null, titles, Math.max(240, byId("chart").clientWidth)));
  const cells = results.slice(0, SHOWN).map(({ at, device, action, model, backend, value }) => {
    const when = el("time", { datetime: at, text: new Date(at).toLocaleTimeString() });
    return [device, model.replaceAll("_", " "), backend, action, told(action, value), when];
  });
  byId("table").replaceChildren(cells.length ? table("Results of devices", ["Device", "Model", "Backend", "Request", "Result", "Time"], cells) : "");
}

/** An answer in a few words; a device may have answered anything. */
function told(action, value) {
  try {
    return SAYS[action](value);
  } catch {
    return "";
  }
}
