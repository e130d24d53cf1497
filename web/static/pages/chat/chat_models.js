// How the chat's models are opened, and what is said of the weights that the browser keeps.

const STAGES = { model: "its file", weights: "its weights go to the engine", elsewhere: "another tab is downloading its file; this tab waits for it" };
const FINAL = ["device-lost", "engine-died", "engine-silent", "out-of-memory", "stopped"]; // which fetched weights would not help
const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;

/** How far the opening is. */
export const stageOf = ({ stage }) => `Opening the model: ${STAGES[stage] ?? stage}`;

/** What the engine says of the model that it opened: with kept weights if they are whole (`kept`), else with fetched ones. */
export async function openModel(calls, source, { backend, kept }, step) {
  if (!source.name || !kept) return calls.ask("chat_open", { ...source, backend }, step);
  return calls.ask("chat_open", { kept: source.name, backend }, step).catch((error) => {
    if (FINAL.includes(error.code)) throw error;
    return calls.ask("chat_open", { ...source, backend }, step);
  });
}

/** What the browser keeps. */
export function storedText({ complete, bytes }) {
  const whole = complete ? "The weights are stored in this browser" : "Some of the weights are stored in this browser; the rest is downloaded when you open the model";
  return `${whole}: ${megabytes(bytes)}.`;
}

/** What this device can hold, as far as its browser says. */
export async function roomText() {
  const { quota } = (await navigator.storage?.estimate?.()) ?? {};
  const memory = navigator.deviceMemory ? ` This browser reports ${navigator.deviceMemory} GB of memory.` : ""; // Chromium's; rounded, and capped for privacy
  return `WebAssembly can address 4 GB, for a model and its cache together.${memory}${quota ? ` It can store ${(quota / 1e9).toFixed(1)} GB of weights.` : ""}`;
}

/** What was freed, and what was not. */
export function freedText(freed, { bytes }, model) {
  const left = bytes ? ` ${megabytes(bytes)} remain: another tab is using them. Close it, then delete them.` : "";
  return `${megabytes(freed)} were freed.${left}${model ? " The open model stays in memory until you leave." : ""}`;
}
