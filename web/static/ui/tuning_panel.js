// The panel "Tuned for this device": asks for a tuning within a budget, shows how far it is and what was gained,
// hands its log out as a file and takes such files in.

import { byId, counted, download } from "./dom.js";

const milliseconds = (ms) => `${ms.toFixed(ms < 10 ? 3 : 1)} ms`;

/** What a tuning gained, in a sentence or two. */
export function sentence({ gain, default_ms, tuned_ms, timed, known, shapes, changed, kept }) {
  const before = known ? `, ${known} known before` : "";
  const rest = shapes - timed - known;
  const more = rest ? ` ${rest} not timed: the budget ran out.` : "";
  const work = `${counted(timed, "shape")} timed${before}.${more}`;
  if (!kept) return `The default kernels stay: together, the others took ${milliseconds(tuned_ms)} instead of ${milliseconds(default_ms)}. ${work}`;
  if (!changed) return `No kernel is faster than the default${rest ? " so far" : ""}: ${milliseconds(default_ms)} on the GPU. ${work}`;
  return `${(100 * gain).toFixed(1)} % saved: ${milliseconds(default_ms)} on the GPU became ${milliseconds(tuned_ms)} with ${counted(changed, "other kernel")}. ${work}`;
}

/** `ask(type, fields)` sends a message to the engine and says whether it could; the answers go to the methods. */
export class TuningPanel {
  #busy = false;
  #tunable = false; // whether something runs that can be tuned

  constructor(ask) {
    const start = (type, fields, text) => {
      if (this.#busy || !this.#tunable || !ask(type, fields)) return;
      this.#working(true);
      byId("tuning-status").textContent = text;
    };
    byId("tune").addEventListener("click", () => {
      start("tune", { budget: Number(byId("tuning-budget").value) * 1000 }, "Preparing …");
      byId("tuning-progress").hidden = !this.#busy;
      byId("tuning-progress").removeAttribute("value");
    });
    byId("tuning-export").addEventListener("click", () => start("exportTuning", {}, "Collecting the details …"));
    byId("tuning-import").addEventListener("click", () => byId("tuning-file").click());
    byId("tuning-file").addEventListener("change", async ({ target }) => {
      const [file] = target.files;
      target.value = ""; // so that the same file can be chosen again
      if (file) start("importTuning", { text: await file.text() }, `Reading ${file.name} …`);
    });
  }

  /** Whether something runs from now on that can be tuned. */
  ready(tunable) {
    this.#tunable = tunable;
    this.#working(false);
    byId("tuning-status").textContent = tunable ? "" : "For WebGPU only: choose it under “Run on”.";
  }

  /** Something failed; the page says what. */
  failed() {
    if (this.#busy) byId("tuning-status").textContent = "";
    this.#working(false);
  }

  /** How far the tuning is. */
  progress({ done, total }) {
    byId("tuning-progress").value = total ? done / total : 1;
    byId("tuning-status").textContent = done < total ? `Timing kernels: shape ${done + 1} of ${total} …` : "Comparing the whole model …";
  }

  /** The tuning has ended. */
  tuned(report) {
    this.#working(false);
    byId("tuning-status").textContent = sentence(report);
  }

  /** Hands the log out as a file. */
  log({ text }) {
    this.#working(false);
    if (!text) {
      byId("tuning-status").textContent = "No tuning data for this device yet. Run tuning first.";
      return;
    }
    download("webinfer-tuning.jsonl", [text], "application/jsonl");
    byId("tuning-status").textContent = `${counted(text.trim().split("\n").length, "line")} saved as webinfer-tuning.jsonl.`;
  }

  /** A log was taken in. */
  imported({ taken, skipped }) {
    this.#working(false);
    const others = skipped ? ` ${counted(skipped, "line")} for other devices or versions left out.` : "";
    byId("tuning-status").textContent = `${counted(taken, "line")} imported and in use.${others}`;
  }

  #working(yes) {
    this.#busy = yes;
    if (!yes) byId("tuning-progress").hidden = true;
    const off = String(yes || !this.#tunable);
    for (const id of ["tune", "tuning-export", "tuning-import"]) byId(id).setAttribute("aria-disabled", off);
  }
}
