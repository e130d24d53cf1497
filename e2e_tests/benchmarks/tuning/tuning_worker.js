// The tuning page's worker: Python, and the models one by one.

import { startPython } from "./systems/webinfer.js";

let python = null;

const METHODS = {
  async start() {
    ({ python } = await startPython(new URL("tuning_runs.py", import.meta.url)));
  },
  async tune({ file, dequantize, batch, budget, runs }) {
    const tell = (done, total) => self.postMessage({ progress: { done, total } });
    return JSON.parse(await python.get("tune")(new URL(file, self.location.href).href, dequantize, batch, budget, runs, tell));
  },
};

self.addEventListener("message", async ({ data: { method, options } }) => {
  try {
    self.postMessage({ value: await METHODS[method](options ?? {}) });
  } catch (error) {
    self.postMessage({ error: String(error.message ?? error).trim().split("\n").at(-1) });
  }
});
