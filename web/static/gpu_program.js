// Programs of recorded dispatches on a device: buffers and bind groups made once, replayed by range with one
// encoder, one pass and one submit; results come back through a ring of staging buffers. Knows no operator.

import { timed } from "./gpu_timing.js";
import { settled } from "./gpu_wait.js";

const LOSS_GRACE_MS = 100; // a failed map may be reported before the loss that caused it

const delay = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Calls `use` with the bytes of a typed array or of a Python buffer, which is read in place. */
function withBytes(source, use) {
  const view = source.getBuffer?.("u8");
  try {
    use(view ? view.data : source);
  } finally {
    view?.release();
  }
}

export class Program {
  constructor(device, label) {
    this.device = device;
    this.label = label;
    this.buffers = [];
    this.steps = [];
    this.readings = new Map();
    this.proven = false;
  }

  create({ buffers, dispatches }, uniforms) {
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    const gpu = this.device.gpu;
    this.buffers = buffers.map((size) => gpu.createBuffer({ label: this.label, size, usage }));
    withBytes(uniforms, (bytes) => {
      const size = Math.max(16, bytes.length);
      const uniform = gpu.createBuffer({ size, usage: GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST });
      if (bytes.length) gpu.queue.writeBuffer(uniform, 0, bytes);
      this.buffers.push(uniform);
    });
    this.steps = dispatches.map(({ label, pipeline, bindings, groups }) => {
      const made = this.device.pipelines[pipeline];
      const entries = bindings.map(([buffer, offset, size], binding) => ({
        binding,
        resource: { buffer: this.buffers[buffer], offset, size },
      }));
      return { pipeline: made.pipeline, group: gpu.createBindGroup({ label, layout: made.layout, entries }), groups };
    });
  }

  /** Copies bytes to the start of a buffer, ordered before the next run. */
  write(buffer, source) {
    this.device.check();
    withBytes(source, (bytes) => {
      const whole = bytes.length & ~3;
      const queue = this.device.gpu.queue;
      if (whole) queue.writeBuffer(this.buffers[buffer], 0, bytes, 0, whole);
      if (whole === bytes.length) return;
      const tail = new Uint8Array(4);
      tail.set(bytes.subarray(whole));
      queue.writeBuffer(this.buffers[buffer], whole, tail);
    });
  }

  encode(encoder, first, count, repeats = 1, options = null) {
    const pass = encoder.beginComputePass(options ?? {});
    let current = null;
    for (let round = 0; round < repeats; round++) {
      for (let i = first; i < first + count; i++) {
        const { pipeline, group, groups } = this.steps[i];
        if (pipeline !== current) pass.setPipeline((current = pipeline));
        pass.setBindGroup(0, group);
        pass.dispatchWorkgroups(groups[0], groups[1], groups[2]);
      }
    }
    pass.end();
  }

  /** Where JSON [[buffer, offset, nbytes], …] goes in a staging buffer, and that buffer's ring. */
  reading(json) {
    let found = this.readings.get(json);
    if (!found) {
      let total = 0;
      const copies = JSON.parse(json).map(([buffer, offset, nbytes]) => {
        const at = total;
        total += Math.ceil(nbytes / 16) * 16;
        return { buffer, offset, size: Math.ceil(nbytes / 4) * 4, at };
      });
      found = { copies, total, free: [], made: 0, waiting: [] };
      this.readings.set(json, found);
    }
    return found;
  }

  async takeStaging(reading) {
    if (reading.free.length) return reading.free.pop();
    if (reading.made >= this.device.ring) return new Promise((resolve) => reading.waiting.push(resolve));
    reading.made++;
    const usage = GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST;
    return this.device.scoped(() => this.device.gpu.createBuffer({ size: Math.max(16, reading.total), usage }));
  }

  submit(first, count, reading, staging) {
    const encoder = this.device.gpu.createCommandEncoder();
    if (count) this.encode(encoder, first, count);
    for (const { buffer, offset, size, at } of reading.copies) {
      if (size) encoder.copyBufferToBuffer(this.buffers[buffer], offset, staging, at, size);
    }
    this.device.gpu.queue.submit([encoder.finish()]);
  }

  /** Submits a range; the bytes that `reads` names, each at a multiple of 16. Never resolves after a loss. */
  async run(first, count, reads) {
    this.device.check();
    const reading = this.reading(reads);
    const staging = await this.takeStaging(reading);
    try {
      if (this.proven) this.submit(first, count, reading, staging);
      else await this.device.scoped(() => this.submit(first, count, reading, staging));
      const mapped = staging.mapAsync(GPUMapMode.READ);
      const waiting = this.device.patient ? mapped : settled(this.device.gpu.queue, mapped);
      await Promise.race([waiting, this.device.whenLost]);
      this.device.check();
      await mapped;
      this.proven = true;
      const bytes = new Uint8Array(staging.getMappedRange()).slice();
      staging.unmap();
      this.device.raiseUncaptured();
      return bytes;
    } catch (error) {
      await Promise.race([this.device.whenLost, delay(LOSS_GRACE_MS)]);
      this.device.check();
      this.device.raiseUncaptured();
      throw this.device.failure(error.name === "Error" ? "Refused" : error.name, error.message);
    } finally {
      const next = reading.waiting.shift();
      if (next) next(staging);
      else reading.free.push(staging);
    }
  }

  /** Milliseconds of one pass over a range, averaged over the repeats of one submit. */
  time(first, count, repeats) {
    return timed(this, first, count, repeats);
  }

  /** Lets buffers go that only the first `dispatches` dispatches used. */
  free(json, dispatches) {
    this.steps.fill(null, 0, dispatches);
    for (const buffer of JSON.parse(json)) this.buffers[buffer].destroy();
  }

  close() {
    for (const buffer of this.buffers) buffer.destroy();
    for (const { free } of this.readings.values()) for (const staging of free) staging.destroy();
    this.buffers = [];
    this.steps = [];
    this.readings.clear();
  }
}
