// Times recorded kernels on this machine's GPU: kernels.html?only=matmul,interop&cases=1024&variants=tiled&samples=9
// For each case one report [label, {variant: {ms, median_ms, tflops, first_ms, difference}}], at the end ["done", …].
// `difference`: the largest |a - b| from the first variant's output, over that output's largest magnitude.

const query = new URLSearchParams(location.search);
const GROUPS = [
  "matmul",
  "interop",
  "sums",
  "fused",
  "whole",
  "blazeface_short_range",
  "pose_landmarks_lite",
  "mobilenet_v2_100_224_quant",
];
const wanted = query.get("only")?.split(",") ?? GROUPS;
const SAMPLES = Number(query.get("samples") ?? 9);
const LABELS = new RegExp(query.get("cases") ?? "."); // of a group
const NAMES = new RegExp(query.get("variants") ?? "."); // of variants
const MIN_SAMPLE_MS = Number(query.get("least") ?? 5); // GPU time of one sample
const lines = document.getElementById("lines");

async function report(key, value) {
  const body = JSON.stringify([key, value]);
  lines.textContent += `\n${body}`;
  await fetch("/log", { method: "POST", body }).catch(() => {});
}

async function open() {
  const adapter = await navigator.gpu?.requestAdapter({ powerPreference: "high-performance" });
  if (!adapter) throw new Error("no GPU adapter");
  const requiredLimits = {};
  for (const name of [
    "maxBufferSize",
    "maxStorageBufferBindingSize",
    "maxComputeWorkgroupStorageSize",
    "maxComputeInvocationsPerWorkgroup",
    "maxComputeWorkgroupSizeX",
  ]) {
    requiredLimits[name] = adapter.limits[name];
  }
  const requiredFeatures = ["timestamp-query", "subgroups"].filter((name) => adapter.features.has(name));
  const device = await adapter.requestDevice({ requiredLimits, requiredFeatures });
  const { vendor, architecture, description } = adapter.info;
  await report("adapter", { vendor, architecture, description, ...requiredLimits, requiredFeatures });
  return device;
}

/** Repeatable random numbers of both signs, 0.125 to 0.5 large; finite too where it is read as float16 numbers. */
function randomNumbers(count) {
  const words = new Uint32Array(count);
  let state = 12345;
  for (let i = 0; i < count; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    words[i] = (state & 0x80ff3bff) | 0x3e000000;
  }
  return words;
}

class Replay {
  constructor(device, shaders, record) {
    Object.assign(this, { device, shaders, record });
  }

  async load() {
    const { device, record } = this;
    const start = performance.now();
    const kinds = { read: "read-only-storage", write: "storage", uniform: "uniform" };
    const pipelines = await Promise.all(
      record.pipelines.map(async ([shader, bindings]) => {
        const entries = bindings.map((kind, binding) => ({
          binding,
          visibility: GPUShaderStage.COMPUTE,
          buffer: { type: kinds[kind] },
        }));
        const group = device.createBindGroupLayout({ entries });
        const layout = device.createPipelineLayout({ bindGroupLayouts: [group] });
        const module = device.createShaderModule({ code: this.shaders[shader] });
        const pipeline = await device.createComputePipelineAsync({ layout, compute: { module } });
        return { pipeline, group };
      }),
    );
    this.firstMs = performance.now() - start;
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    this.buffers = record.buffers.map((size) => device.createBuffer({ size, usage }));
    for (const number of record.filled) {
      device.queue.writeBuffer(this.buffers[number], 0, randomNumbers(record.buffers[number] / 4));
    }
    const bytes = Uint8Array.from(record.uniforms.match(/../g) ?? [], (hex) => parseInt(hex, 16));
    const flags = GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST;
    const uniforms = device.createBuffer({ size: Math.max(16, bytes.length), usage: flags });
    if (bytes.length) device.queue.writeBuffer(uniforms, 0, bytes);
    this.buffers.push(uniforms);
    this.steps = record.dispatches.map(([number, spans, groups]) => {
      const entries = spans.map(([buffer, offset, size], binding) => ({
        binding,
        resource: { buffer: this.buffers[buffer], offset, size },
      }));
      const { pipeline, group } = pipelines[number];
      return { pipeline, groups, bound: device.createBindGroup({ layout: group, entries }) };
    });
    this.submit(0, record.prepare, 1);
    this.submit(record.prepare, this.steps.length, 1);
    await device.queue.onSubmittedWorkDone();
  }

  submit(first, end, repeats, timestampWrites) {
    const encoder = this.device.createCommandEncoder();
    const pass = encoder.beginComputePass(timestampWrites ? { timestampWrites } : {});
    for (let r = 0; r < repeats; r++) {
      for (const { pipeline, groups, bound } of this.steps.slice(first, end)) {
        pass.setPipeline(pipeline);
        pass.setBindGroup(0, bound);
        pass.dispatchWorkgroups(...groups);
      }
    }
    pass.end();
    this.device.queue.submit([encoder.finish()]);
  }

  /** Milliseconds of one run, averaged over `repeats` in one pass. */
  async time(clock, repeats) {
    const { prepare } = this.record;
    return (await clock.measure((writes) => this.submit(prepare, this.steps.length, repeats, writes))) / repeats;
  }

  async output() {
    const [number, nbytes] = this.record.output;
    return new Float32Array(await readBack(this.device, this.buffers[number], nbytes));
  }

  close() {
    for (const buffer of this.buffers ?? []) buffer.destroy();
  }
}

async function readBack(device, buffer, nbytes) {
  const size = Math.ceil(nbytes / 16) * 16;
  const staging = device.createBuffer({ size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(buffer, 0, staging, 0, size);
  device.queue.submit([encoder.finish()]);
  await staging.mapAsync(GPUMapMode.READ);
  const bytes = staging.getMappedRange().slice(0, nbytes);
  staging.destroy();
  return bytes;
}

/** The GPU's own timestamps where it has them, else the time until the queue is empty. */
class Clock {
  constructor(device) {
    this.device = device;
    if (!device.features.has("timestamp-query")) return;
    this.querySet = device.createQuerySet({ type: "timestamp", count: 2 });
    this.resolved = device.createBuffer({ size: 16, usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC });
  }

  async measure(submit) {
    const start = performance.now();
    if (!this.querySet) {
      submit();
      await this.device.queue.onSubmittedWorkDone();
      return performance.now() - start;
    }
    submit({ querySet: this.querySet, beginningOfPassWriteIndex: 0, endOfPassWriteIndex: 1 });
    const encoder = this.device.createCommandEncoder();
    encoder.resolveQuerySet(this.querySet, 0, 2, this.resolved, 0);
    this.device.queue.submit([encoder.finish()]);
    const [from, to] = new BigUint64Array(await readBack(this.device, this.resolved, 16));
    return Number(to - from) / 1e6;
  }
}

async function measureCase(device, clock, shaders, { label, key, flops, variants }) {
  const rows = {};
  const replays = new Map();
  let first = null;
  for (const [name, record] of Object.entries(variants).filter(([name]) => NAMES.test(name))) {
    const replay = new Replay(device, shaders, record);
    try {
      await replay.load();
      const output = await replay.output();
      first ??= output;
      let largest = 0;
      let difference = 0;
      for (let i = 0; i < output.length; i++) {
        largest = Math.max(largest, Math.abs(first[i]));
        difference = Math.max(difference, Math.abs(first[i] - output[i]));
      }
      let repeats = 1;
      await replay.time(clock, 1);
      while (repeats < 4096 && (await replay.time(clock, repeats)) * repeats < MIN_SAMPLE_MS) repeats *= 2;
      replays.set(name, { replay, repeats, times: [] });
      rows[name] = { first_ms: replay.firstMs, difference: difference / largest };
    } catch (error) {
      rows[name] = { error: String(error.message ?? error) };
      replay.close();
    }
  }
  for (let sample = 0; sample < SAMPLES; sample++) {
    for (const { replay, repeats, times } of replays.values()) times.push(await replay.time(clock, repeats));
  }
  for (const [name, { replay, times }] of replays) {
    times.sort((a, b) => a - b);
    const [ms, median_ms] = [times[0], times[times.length >> 1]];
    Object.assign(rows[name], { ms, median_ms, tflops: flops / ms / 1e9 });
    replay.close();
  }
  for (const row of Object.values(rows)) {
    for (const [name, value] of Object.entries(row)) if (Number.isFinite(value)) row[name] = Number(value.toPrecision(4));
  }
  await report(label, { key, variants: rows });
}

try {
  const device = await open();
  const clock = new Clock(device);
  const shaders = await (await fetch("shaders.json")).json();
  for (const group of wanted) {
    const cases = await (await fetch(`${group}.json`)).json();
    for (const one of cases.filter(({ label }) => LABELS.test(label))) await measureCase(device, clock, shaders, one);
  }
  await report("done", {});
} catch (error) {
  await report("done", { error: String(error.message ?? error) });
}
