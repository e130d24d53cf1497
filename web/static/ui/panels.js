// The panels beside the picture: progress, message, times, capabilities, plan. Text only, never HTML:
// names in a model or a file are shown as they are.

import { byId, el, say } from "./dom.js";

const megabytes = (bytes) => (bytes / 1e6).toFixed(1).replace(/\B(?=(\d{3})+\.)/g, ","); // as toLocaleString, which takes long to start

const FIRST_MS = 300; // before the first painting of the bar: later visits have their result by then
const RATE_MS = 2_000; // over which frames are counted
const PAUSE_MS = 100; // between two paintings of the bar: each takes time of which the engine's start needs all

const named = (stage) => stage.charAt(0).toUpperCase() + stage.slice(1);

/** Bytes and stages while Python, kernels and model load. */
export class Progress {
  #stages = new Map(); // name -> {done, total, unit, row}
  #last = ""; // the stage that moved last
  #timer = 0;

  /** Shows an empty bar. */
  begin(title) {
    this.#stages.clear();
    byId("stages").replaceChildren();
    byId("progress").value = 0;
    byId("loading-title").textContent = title;
    byId("loading").hidden = false;
    byId("progress-text").textContent = "Waiting for the first byte";
    this.#timer ||= setTimeout(() => this.#paint(), FIRST_MS);
  }

  /** Takes over how far a stage is; it is seen soon. */
  show({ stage, done, total, unit }) {
    const row = this.#stages.get(stage)?.row ?? el("li", { text: named(stage) });
    this.#stages.set(stage, { done, total, unit, row });
    this.#last = stage;
    this.#timer ||= setTimeout(() => this.#paint(), PAUSE_MS);
  }

  /** Takes the bar away. */
  end() {
    byId("loading").hidden = true;
    this.#paint();
  }

  #paint() {
    this.#timer = clearTimeout(this.#timer) ?? 0;
    if (!this.#stages.size) return; // begun anew meanwhile
    byId("stages").append(...Array.from(this.#stages.values(), ({ row }) => row).filter((row) => !row.isConnected));
    for (const { row, done, total } of this.#stages.values()) row.classList.toggle("done", total > 0 && done >= total);
    byId("progress").value = this.#fraction();
    byId("progress-text").textContent = this.#text(this.#last, this.#stages.get(this.#last));
  }

  /** Downloads are nine tenths of the bar, the steps after them the rest. */
  #fraction() {
    const sums = { bytes: [0, 0], steps: [0, 0] };
    for (const { done, total, unit } of this.#stages.values()) {
      const sum = sums[unit] ?? sums.steps;
      sum[0] += done;
      sum[1] += total;
    }
    const part = ([done, total], otherwise) => (total ? done / total : otherwise);
    return 0.9 * part(sums.bytes, 1) + 0.1 * part(sums.steps, 0);
  }

  #text(stage, { done, total, unit }) {
    if (unit === "bytes") return `${named(stage)}: ${megabytes(done)}${total >= done ? ` of ${megabytes(total)}` : ""} MB`; // what it will be is not always known
    return total > 1 ? `${named(stage)}: ${done} of ${total}` : `${named(stage)} …`;
  }
}

/** The one place for messages; `retry` and `close` show the buttons. Where nothing has the focus, the first of them gets it. */
export function showMessage({ title, text, retry = false, close = true, severe = true }) {
  byId("message").classList.toggle("mild", !severe);
  say(byId("message-title"), title);
  say(byId("message-text"), text);
  byId("retry").hidden = !retry;
  byId("dismiss").hidden = !close;
  byId("message").hidden = false;
  if (retry && severe && [document.body, byId("loading")].includes(document.activeElement)) byId("retry").focus();
}

/** Takes the message away. */
export function hideMessage() {
  byId("message").hidden = true;
}

/** Milliseconds of the newest picture. */
export function showTimes({ prepare_ms, infer_ms, decode_ms }) {
  byId("prepare").textContent = prepare_ms.toFixed(1);
  byId("infer").textContent = infer_ms.toFixed(1);
  byId("model-time").textContent = infer_ms.toFixed(1);
  byId("decode").textContent = decode_ms.toFixed(1);
}

/** Frames per second of the camera or a film over the last seconds; not shown while a single picture is. */
export class Rate {
  #times = [];

  /** Counts a frame at this time, in milliseconds. */
  count(now) {
    if (!byId("rate")) return; // of a page for sounds
    this.#times = [...this.#times.filter((time) => now - time < RATE_MS), now];
    const span = now - this.#times[0];
    byId("rate").hidden = false;
    byId("fps").textContent = span > 0 ? (((this.#times.length - 1) * 1000) / span).toFixed(1) : "–";
  }

  /** Begins anew. */
  forget() {
    this.#times = [];
    if (byId("rate")) byId("rate").hidden = true;
  }
}

/** What the engine runs on, in a sentence. */
export function showBackend(text) {
  say(byId("backend"), text);
}

/** What it runs on and why: a session's reason begins with the backend that "auto" chose, which is said already. */
export const showChoice = ({ backend, reason }) => showBackend(`Runs on ${backend}: ${reason.replace(`auto chose ${backend}: `, "")}`);

const TITLES = { wasm: "WebAssembly", isolated: "Cross-origin isolation", threads: "Threads", jspi: "Promise integration (JSPI)", webgpu: "WebGPU", webnn: "WebNN" };

/** Capabilities, {name, present, value, reason, fix}, in a list. */
export function showCapabilities(capabilities, list = byId("capabilities")) {
  const rows = capabilities.map(({ name, present, value, reason, fix }) => el("li", { class: present ? "present" : "absent" },
    el("strong", { text: TITLES[name] ?? name }), el("span", { class: "value", text: present ? value || "yes" : "no" }),
    reason ? el("p", { text: reason }) : null, fix ? el("p", { class: "quiet", text: fix }) : null));
  list.replaceChildren(...rows);
}

/** A plan as a table: {columns: [name], rows: [[cell]], summary}. */
export function showPlan({ columns, rows, summary }) {
  byId("plan-summary").textContent = summary;
  const head = el("tr", {}, columns.map((text) => el("th", { scope: "col", text })));
  const body = rows.map((cells) => el("tr", {}, cells.map((cell) => el("td", { text: String(cell) }))));
  byId("plan").replaceChildren(el("table", {}, el("thead", {}, head), el("tbody", {}, body)));
}
