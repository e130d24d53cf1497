// Starts Python with the engine in it for WebNN, in this page or worker, when the first context is asked for.

import { Downloads } from "../startup/downloads.js";
import * as gpu_device from "../gpu/gpu_device.js";
import * as gpu_program from "../gpu/gpu_program.js";
import * as gpu_runs from "../gpu/gpu_runs.js";
import * as gpu_timing from "../gpu/gpu_timing.js";
import { bringRest, startPython } from "../startup/python_start.js";

const STALL_TIMEOUT_MS = 60_000;
const SETTLED_MS = 3000; // after the start

/** {bindings, copied}: Python's bindings, and a function that copies what Python shows as a buffer. */
export async function startEngine(manifest) {
  const response = await fetch(manifest);
  if (!response.ok) throw new Error(`${manifest}: HTTP ${response.status}`);
  const { assets } = await response.json();
  for (const file of Object.values(assets)) file.url = new URL(file.url.replace(/^\//, ""), manifest).href; // the site may lie below the root
  const downloads = new Downloads(assets, STALL_TIMEOUT_MS, () => {});
  const gpu = { gpu_device, gpu_program, gpu_runs, gpu_timing };
  self.webinfer ??= { asset: (name) => downloads.url(name), has: (name) => downloads.has(name), prefetched: new Map(), gpu };
  const python = await downloads.counting(() => startPython(downloads, {}));
  setTimeout(bringRest, SETTLED_MS);
  return openBindings(python, Object.fromEntries(Object.entries(assets).map(([name, { url }]) => [name, url])));
}

/** The same in an interpreter that has the engine already; `urls` are the site's files by name. */
export function openBindings(python, urls) {
  python.pyimport("webinfer").configure(python.toPy(urls)); // so that the bindings, a late part, is found
  const bindings = python.pyimport("webinfer.webnn.bindings").open_bindings();
  return { bindings, worker: new URL("webnn_worker.js", import.meta.url).href };
}

/** A copy of the bytes that Python shows as a buffer. */
export function copied(proxy) {
  const view = proxy.getBuffer("u8");
  try {
    return view.data.slice();
  } finally {
    view.release();
    proxy.destroy();
  }
}
