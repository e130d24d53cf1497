// What Python will ask for, asked for as soon as it is known and long before Python runs. Python finds it in `found`
// (webinfer/host/prefetch.py); what failed it asks for again, and reports.

import { GPU } from "../gpu/gpu.js";

const OFFER = "gpu offer";

/** The promises of what Python will ask for. */
export class Prefetch {
  found = new Map(); // URL -> promise of bytes, of a compiled module, of a worker; "gpu", OFFER -> of a device, of JSON
  pause = () => {}; // lets what comes meanwhile be looked at: a GPU's adapter, of which the device is asked then
  #downloads;
  #startThread;

  /** `startThread(url, name)` starts a worker of kernels. */
  constructor(downloads, startThread) {
    this.#downloads = downloads;
    this.#startThread = startThread;
  }

  /** The GPU's device and, until it is there, what it will be. */
  device(wishes) {
    const device = GPU.gpu_device.openDevice(wishes, GPU.gpu_program.Program);
    device.then(() => this.found.delete(OFFER), () => {}); // Python asks again and reports the failure
    const offer = offerOf(wishes);
    offer.catch(() => {});
    this.found.set("gpu", device).set(OFFER, offer);
    this.pause = () => new Promise((resolve) => setTimeout(resolve));
  }

  /** The models of these names; `files` are those of each. */
  models(names, files) {
    for (const [file] of names.map((name) => files[name] ?? [""])) this.#begin(file, () => this.#downloads.bytes(file));
  }

  /** The plans that were stored for these models, and what runs them: what the site foresees of both. */
  plans(models, { plans, probes }, { kernels, suffix }) {
    const stored = models.filter((model) => plans[model] && self.caches).map((model) => plans[model] + suffix);
    for (const plan of stored) this.found.set(plan, caches.match(plan).catch(() => {}));
    if (!kernels) return;
    const downloads = this.#downloads;
    const build = Object.keys(probes).find((isa) => WebAssembly.validate(Uint8Array.from(probes[isa]))) ?? "scalar";
    const compile = (name) => downloads.compiled(name);
    const alone = () => this.#begin(`kernels/webinfer-${build}.wasm`, compile);
    if (!self.crossOriginIsolated || !self.SharedArrayBuffer || navigator.hardwareConcurrency < 2) return alone();
    const found = Promise.all(stored.map((plan) => this.found.get(plan)));
    found.then((plans) => (plans.length && plans.every(Boolean)) || alone()); // where threads are yet to prove faster
    this.#begin(`kernels/webinfer-${build}-threads.wasm`, compile);
    this.#begin("static/thread_worker.js", async (name) => {
      downloads.check(name);
      return this.#startThread(downloads.url(name), "kernels 1");
    });
  }

  #begin(name, ask) {
    if (!this.#downloads.has(name)) return;
    const promise = ask(name);
    promise.catch(() => {});
    this.found.set(this.#downloads.url(name), promise);
  }
}

/** What a device will have of these wishes, from its adapter: JSON of the fields of Device.describe (gpu_device.js). */
async function offerOf(wishes) {
  const asked = JSON.parse(wishes);
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
  const { vendor, architecture, device, description, isFallbackAdapter } = adapter.info;
  const features = [...asked.features.filter((name) => adapter.features.has(name)), ...(navigator.gpu.wgslLanguageFeatures ?? [])];
  const limits = Object.fromEntries(asked.limits.map((name) => [name, adapter.limits[name]]));
  return JSON.stringify({ vendor, architecture, device, description, isFallbackAdapter, features, limits });
}
