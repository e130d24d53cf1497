// Generated from page/messages.toml by `python3 -m build_scripts build tables --write`: do not edit.

export const VERSION = 14;

export const TO_ENGINE = {
  runtime: { module: "any?" },
  detect: { id: "number", given: "any", live: "flag", file: "object?" },
  paint: { look: "object?" },
  select: { backend: "text", model: "text", options: "object", files: "object?" },
  plan: {},
  profile: {},
  tune: { budget: "number" },
  exportTuning: {},
  importTuning: { text: "text" },
  ask: { id: "number", action: "text", fields: "object" },
  runCode: { code: "text", foreign: "flag", given: "any?" },
  stop: {},
  ping: {},
  threadFailed: { id: "number", message: "text" },
  close: {},
  start: {
    manifest: "object",
    facts: "object",
    page: "text",
    home: "text",
    task: "text",
    model: "text",
    also: "list",
    options: "object",
    backend: "text",
    debug: "number",
    life: "text",
    stallTimeout: "number",
    idleDelay: "number",
    runtimeComes: "flag?",
  },
};

export const FROM_ENGINE = {
  alive: {},
  kept: { there: "flag" },
  started: { capabilities: "list" },
  progress: { stage: "text", done: "number", total: "number", unit: "text" },
  plan: { columns: "list", rows: "list", summary: "text" },
  profiling: { done: "number", total: "number" },
  profile: { report: "object", svg: "text" },
  tuning: { done: "number", total: "number" },
  tuningLog: { text: "text" },
  tuningImported: { taken: "number", skipped: "number" },
  step: { id: "number", stage: "text", done: "number", total: "number" },
  piece: { id: "number", text: "text" },
  answer: { id: "number", answer: "object", buffers: "list" },
  printed: { text: "text" },
  shown: { result: "object", image: "object?", found: "list" },
  ran: { ms: "number", problem: "object?" },
  pong: {},
  thread: { id: "number", url: "text", name: "text", port: "any" },
  endThread: { id: "number" },
  error: { code: "text", message: "text", id: "number?", fatal: "flag?", died: "flag?" },
  ready: {
    backend: "text",
    reason: "text",
    notice: "object?",
    capabilities: "list",
    overlaps: "flag",
    tunable: "flag",
    result: "object",
  },
  settled: { backend: "text", reason: "text", capabilities: "list", overlaps: "flag", tunable: "flag" },
  result: {
    id: "number",
    backend: "text",
    reason: "text",
    image: "object?",
    beside: "object",
    found: "list",
    times: "object",
  },
  tuned: {
    model: "text",
    plan: "text",
    default_ms: "number",
    tuned_ms: "number",
    gain: "number",
    changed: "number",
    kept: "flag",
    timed: "number",
    known: "number",
    shapes: "number",
  },
};

const FITS = {
  text: (value) => typeof value === "string",
  number: (value) => typeof value === "number",
  flag: (value) => typeof value === "boolean",
  list: Array.isArray,
  object: (value) => typeof value === "object" && !Array.isArray(value),
  any: () => true,
};

/** Why a message is none of `declared` (TO_ENGINE or FROM_ENGINE), in a few words; "" if it is one. */
export function complaint(message, declared) {
  const { v, type } = message;
  if (v !== VERSION) return `it has version ${v}`;
  if (!Object.hasOwn(declared, type)) return `there is no “${type}”`;
  for (const [name, rule] of Object.entries(declared[type])) {
    const value = message[name] ?? null;
    const fits = value === null ? rule.endsWith("?") : FITS[rule.replace("?", "")](value);
    if (!fits) return `“${type}” has no ${rule.replace("?", "")} “${name}”`;
  }
  return "";
}
