// The throughput page's worker: Python does the work, in a loop as its users would write it.

import { startPython } from "./systems/webinfer.js";

self.addEventListener("message", async ({ data }) => {
  const tell = (key, text) => self.postMessage([key, JSON.parse(text)]);
  try {
    const { python } = await startPython(new URL("throughput_runs.py", import.meta.url));
    const base = new URL("data/", self.location.href).href;
    await python.get("measure")(base, JSON.stringify(data), tell);
  } catch (error) {
    tell("failed", JSON.stringify(String(error.message ?? error).trim().split("\n").at(-1)));
  }
  tell("done", "true");
});
