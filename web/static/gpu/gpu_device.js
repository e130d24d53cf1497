// A GPU device and its pipelines, created from plain data under error scopes. Knows no operator: Python says
// what is made (host/gpu_browser.py). Errors carry their kind in `name`. Programs: gpu_program.js.

import { Uploads } from "./gpu_inputs.js";
import { settled } from "./gpu_wait.js";

const STAGING_BYTES = 2 ** 25; // that `read` keeps
const SCOPES = ["internal", "out-of-memory", "validation"];
const BINDINGS = {
  read: { buffer: { type: "read-only-storage" } },
  write: { buffer: { type: "storage" } },
  uniform: { buffer: { type: "uniform" } },
  texture: { texture: {} },
  external: { externalTexture: {} },
  canvas: { storageTexture: { access: "write-only", format: "rgba8unorm" } },
};

function failure(kind, message) {
  const error = new Error(message);
  error.name = kind;
  return error;
}

/** Calls `arrived(ticket, undefined, kind, message)` with what an error says. */
export function tellFailure({ name, message }, ticket, arrived) {
  arrived(ticket, undefined, name === "Error" ? "Refused" : name, message);
}

/** A device that the page opened, for programs beside its own work. It stays the page's: it is never destroyed. */
export function adoptDevice(gpu, wishes, Program) {
  if (!(gpu instanceof GPUDevice)) throw failure("Refused", "not a GPUDevice");
  const device = new Device({ info: gpu.adapterInfo }, gpu, JSON.parse(wishes).ring, Program);
  device.close = () => {};
  return device;
}

/**
 * The adapter's device. `wishes`: JSON {features, limits, ring, power}; what the adapter lacks is left out.
 * `Program` is the class of gpu_program.js.
 */
export async function openDevice(wishes, Program) {
  const { features, limits, ring, power = "high-performance" } = JSON.parse(wishes);
  const gpu = globalThis.navigator?.gpu;
  const plain = globalThis.isSecureContext === false; // where even browsers that have WebGPU do not show it
  const why = plain ? "this address is plain http from another machine, where browsers have no WebGPU: serve it by https" : "this browser has no WebGPU (navigator.gpu is missing)";
  if (!gpu) throw failure("Unavailable", why);
  const adapter = await gpu.requestAdapter(power ? { powerPreference: power } : {});
  if (!adapter) throw failure("Unavailable", "the browser has WebGPU but offers no adapter");
  const requiredFeatures = features.filter((name) => adapter.features.has(name));
  const requiredLimits = {};
  for (const name of limits) if (adapter.limits[name] !== undefined) requiredLimits[name] = adapter.limits[name];
  let device;
  try {
    device = await adapter.requestDevice({ label: "webinfer", requiredFeatures, requiredLimits });
  } catch (error) {
    throw failure("Unavailable", `the adapter gives no device: ${error.message}`);
  }
  return new Device(adapter, device, ring, Program);
}

class Device {
  constructor(adapter, device, ring, Program) {
    this.Program = Program;
    this.gpu = device;
    this.ring = ring;
    this.uploads = new Uploads(device);
    this.software = false; // the adapter computes on the CPU: what waits for it does not ask, which costs a core
    this.lost = "";
    this.waiting = new Set(); // what a loss refuses
    this.errors = [];
    this.shared = new Map(); // buffers of several programs: how many more than one
    this.staging = []; // buffers of `read` for the next one, the newest last
    this.readable = new WeakSet(); // buffers that `read` has read
    this.pipelines = [];
    this.layouts = new Map();
    this.adapterInfo = adapter.info ?? {};
    this.whenLost = device.lost.then((info) => {
      this.lost = `${info.reason || "unknown"}: ${info.message || "no message"}`;
      for (const refuse of this.waiting) refuse(failure("DeviceLost", this.lost));
    });
    device.addEventListener("uncapturederror", (event) => this.errors.push(event.error.message));
  }

  /** JSON of what Python may know. */
  describe() {
    const { vendor, architecture, device, description, isFallbackAdapter } = this.adapterInfo;
    const limits = {};
    for (const name in this.gpu.limits) limits[name] = Number(this.gpu.limits[name]);
    const features = [...this.gpu.features, ...(navigator.gpu.wgslLanguageFeatures ?? [])];
    if (this.multipliesMatrices()) features.push("subgroup matrices of 16x16 float16"); // host.gpu.MATRICES
    return JSON.stringify({ vendor, architecture, device, description, isFallbackAdapter, limits, features });
  }

  /** Whether subgroups of 32 multiply matrices of 16x16 in float16 and sum them up in float32. */
  multipliesMatrices() {
    const { subgroupMinSize, subgroupMaxSize, subgroupMatrixConfigs = [] } = this.adapterInfo;
    const wanted = ["shader-f16", "subgroups", "chromium-experimental-subgroup-matrix"];
    if (!wanted.every((name) => this.gpu.features.has(name)) || subgroupMinSize !== 32 || subgroupMaxSize !== 32) return false;
    return [...subgroupMatrixConfigs].some(
      (one) => one.componentType === "f16" && one.resultComponentType === "f32" && one.M === 16 && one.N === 16 && one.K === 16,
    );
  }

  failure(kind, message) {
    return failure(kind, message);
  }

  check() {
    if (this.lost) throw failure("DeviceLost", this.lost);
  }

  /** Settles as `promise` does, or is refused when the device is lost: then some promises never settle. */
  unlessLost(promise) {
    return new Promise((resolve, reject) => {
      this.waiting.add(reject);
      promise.then(resolve, reject).finally(() => this.waiting.delete(reject));
    });
  }

  /** One program less needs a buffer. */
  release(buffer) {
    const more = this.shared.get(buffer) ?? 0;
    this.shared.delete(buffer);
    if (more > 1) this.shared.set(buffer, more - 1);
    else if (!more) buffer.destroy();
  }

  raiseUncaptured() {
    if (this.errors.length) throw failure("Refused", this.errors.splice(0).join("; "));
  }

  /** Runs `action` inside error scopes of every kind; throws what they caught. */
  async scoped(action) {
    this.check();
    for (const scope of SCOPES) this.gpu.pushErrorScope(scope);
    let value, problem;
    try {
      value = action();
    } catch (error) {
      problem = error;
    }
    const caught = await Promise.all(SCOPES.map(() => this.gpu.popErrorScope().catch(() => null)));
    const error = caught.find(Boolean);
    this.check();
    if (error instanceof GPUOutOfMemoryError) throw failure("OutOfMemory", error.message);
    if (error || problem) throw failure("Refused", (error ?? problem).message);
    return value;
  }

  layout(bindings) {
    const key = bindings.join();
    if (!this.layouts.has(key)) {
      const entries = bindings.map((kind, binding) => ({
        binding,
        visibility: GPUShaderStage.COMPUTE,
        ...BINDINGS[kind],
      }));
      this.layouts.set(key, this.gpu.createBindGroupLayout({ entries }));
    }
    return this.layouts.get(key);
  }

  /** Starts to create the pipelines of [{label, code, bindings}], or JSON of it, in parallel; the number of the first. */
  startPipelines(given) {
    this.check();
    const specs = typeof given === "string" ? JSON.parse(given) : given;
    const made = specs.map(() => ({ layout: null, pipeline: null, done: null }));
    const order = [...specs.keys()].sort((a, b) => specs[b].code.length - specs[a].code.length); // long code compiles longest
    const done = this.scoped(() => Promise.allSettled(order.map((i) => this.fill(made[i], specs[i])))).then((settled) => {
      const failed = settled.findIndex((result) => result.status === "rejected");
      if (failed >= 0) throw failure("Refused", `shader ${specs[order[failed]].label}: ${settled[failed].reason.message}`);
    });
    done.catch(() => {}); // `pipelinesReady` tells
    for (const one of made) one.done = done;
    this.gpu.queue.submit([]); // what was said leaves now, not when the caller has nothing more to do
    return this.pipelines.push(...made) - made.length;
  }

  /** Ends when the pipelines of these numbers, a JSON list, can run. */
  async pipelinesReady(json) {
    const done = new Set(JSON.parse(json).map((number) => this.pipelines[number].done));
    await this.unlessLost(Promise.all(done));
    this.check();
  }

  /** `startPipelines`, and waits for them. */
  async createPipelines(json) {
    const first = this.startPipelines(json);
    await this.pipelines[first].done;
    return first;
  }

  async fill(made, { label, code, bindings }) {
    made.layout = this.layout(bindings);
    made.pipeline = await this.gpu.createComputePipelineAsync({
      label,
      layout: this.gpu.createPipelineLayout({ bindGroupLayouts: [made.layout] }),
      compute: { module: this.gpu.createShaderModule({ label, code }), entryPoint: "main" },
    });
  }

  /** A program of JSON {label, buffers: sizes, dispatches: [{label, pipeline, bindings, groups}]}. */
  async createProgram(json, uniforms, ...others) {
    const recipe = JSON.parse(json);
    const program = new this.Program(this, recipe.label);
    try {
      await this.scoped(() => program.create(recipe, uniforms, others));
    } catch (error) {
      program.close();
      throw error;
    }
    return program;
  }

  /** Ends when everything submitted so far has been computed. */
  async idle() {
    const done = this.gpu.queue.onSubmittedWorkDone();
    await this.unlessLost(this.software ? done : settled(this.gpu.queue, done));
  }

  /**
   * What `use` makes of `nbytes` bytes of a GPUBuffer from byte `offset` on, which are there during its call; else a copy
   * of them. `encoder` holds commands that are submitted before.
   */
  async read(buffer, nbytes, offset = 0, { use = (bytes) => bytes.slice(), encoder = this.gpu.createCommandEncoder() } = {}) {
    this.check();
    const copied = Math.ceil(nbytes / 4) * 4;
    const size = Math.max(16, copied);
    const at = this.staging.findIndex((kept) => kept.size === size);
    let [staging] = at < 0 ? [null] : this.staging.splice(at, 1);
    const copy = () => {
      staging ??= this.gpu.createBuffer({ label: "read", size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
      encoder.copyBufferToBuffer(buffer, offset, staging, 0, copied);
      this.gpu.queue.submit([encoder.finish()]);
    };
    const checked = staging && this.readable.has(buffer) ? copy() : this.scoped(copy);
    try {
      const mapped = staging ? staging.mapAsync(GPUMapMode.READ) : checked;
      const there = this.unlessLost(this.software ? mapped : settled(this.gpu.queue, mapped));
      there.catch(() => {}); // what was checked says more
      await checked;
      await there;
      this.readable.add(buffer);
      const found = use(new Uint8Array(staging.getMappedRange(), 0, nbytes));
      staging.unmap();
      this.staging.push(staging);
      return found;
    } catch (error) {
      staging?.destroy();
      throw error;
    } finally {
      while (this.staging.reduce((sum, kept) => sum + kept.size, 0) > STAGING_BYTES) this.staging.shift().destroy();
    }
  }

  /** Calls `arrived(ticket)` when the GPU is idle, or `arrived(ticket, undefined, kind, message)` when that fails. */
  tellIdle(ticket, arrived) {
    this.idle().then(() => arrived(ticket), (error) => tellFailure(error, ticket, arrived));
  }

  /** Calls `arrived(ticket, bytes)` with `nbytes` bytes of a buffer, valid during the call; else as `tellIdle`. */
  tellBytes(ticket, arrived, buffer, nbytes, offset = 0) {
    const use = (bytes) => arrived(ticket, bytes);
    this.read(buffer, nbytes, offset, { use }).catch((error) => tellFailure(error, ticket, arrived));
  }

  close() {
    this.gpu.destroy();
  }
}
