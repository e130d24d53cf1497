// Programs of recorded dispatches on a device: buffers and bind groups made once, replayed by range in one go; results
// come back through a ring of staging buffers. Knows no operator.

import { Inputs, withBytes, writeBytes } from "./gpu_inputs.js";
import { tellFailure } from "./gpu_device.js";
import { MANY, PassesAhead } from "./gpu_passes.js";
import { timed } from "./gpu_timing.js";
import { settled } from "./gpu_wait.js";

const LOSS_GRACE_MS = 100; // a failed map may be reported before the loss that caused it

const delay = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export class Program {
  constructor(device, label) {
    this.device = device;
    this.label = label;
    this.buffers = [];
    this.steps = [];
    this.readings = []; // results that are read together, and their ring of staging buffers
    this.inputs = new Inputs(this);
    this.ahead = new PassesAhead(this);
    this.spare = new Map(); // bytes -> buffers for results that stay here
    this.proven = false;
  }

  /** `others`: for each null of `buffers` another program, and the number of its buffer that is taken. */
  create({ buffers, dispatches }, uniforms, others = []) {
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    const gpu = this.device.gpu;
    this.buffers = buffers.map((size) => (size === null ? this.taken(others) : gpu.createBuffer({ label: this.label, size, usage })));
    withBytes(uniforms, (bytes) => {
      const size = Math.max(16, bytes.length);
      const uniform = gpu.createBuffer({ size, usage: GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST });
      if (bytes.length) gpu.queue.writeBuffer(uniform, 0, bytes);
      this.buffers.push(uniform);
    });
    this.steps = dispatches.map(({ label, pipeline, bindings, groups }) => (
      this.bound({ label, made: this.device.pipelines[pipeline], bindings, groups }, new Map())));
  }

  /** The first of `others`, a program and the number of its buffer and so on, which is taken off: that buffer. */
  taken(others) {
    const { shared } = this.device, [program, number] = others.splice(0, 2), buffer = program.buffers[number];
    shared.set(buffer, (shared.get(buffer) ?? 0) + 1);
    return buffer;
  }

  /** A step with other buffers, by their numbers, in the place of the program's own. */
  bound(step, others) {
    const entries = step.bindings.map(([number, offset, size], binding) => ({
      binding,
      resource: { buffer: others.get(number) ?? this.buffers[number], offset, size },
    }));
    return { ...step, group: this.device.gpu.createBindGroup({ label: step.label, layout: step.made.layout, entries }) };
  }

  /**
   * Goes on with other sizes, JSON {sizes: [[buffer, bytes], …], steps: [[number, bindings or null, groups], …]}: buffers
   * that are made anew, the bytes of all parameters, and steps with other bindings or workgroups. No run is under way.
   * `others`: for each null of the bytes another program, and the number of its buffer that is taken.
   */
  async rebind(json, uniforms, ...others) {
    const { sizes, steps } = JSON.parse(json);
    const change = () => {
      for (const [number, size] of sizes) {
        const before = this.buffers[number], { usage } = before;
        this.buffers[number] = size === null ? this.taken(others) : this.device.gpu.createBuffer({ label: this.label, size, usage });
        this.device.release(before);
      }
      this.write(this.buffers.length - 1, uniforms);
      for (const [number, bindings, groups] of steps) {
        const step = { ...this.steps[number], groups };
        this.steps[number] = bindings ? this.bound({ ...step, bindings }, new Map()) : step;
      }
      for (const { free } of this.readings.splice(0)) for (const staging of free) staging.destroy();
      this.ahead.clear();
    };
    await (sizes.length ? this.device.scoped(change) : change());
  }

  /** Copies bytes to a buffer, from byte `offset` on, ordered before the next run. */
  write(buffer, source, offset = 0) {
    this.device.check();
    withBytes(source, (bytes) => writeBytes(this.device.gpu.queue, this.buffers[buffer], bytes, offset));
  }

  encode(encoder, first, count, repeats = 1, options = null, steps = this.steps) {
    const pass = encoder.beginComputePass(options ?? {});
    let current = null;
    for (let round = 0; round < repeats; round++) {
      for (let i = first; i < first + count; i++) {
        const { made, group, groups } = steps[i];
        if (!groups[0]) continue;
        if (made !== current) pass.setPipeline((current = made).pipeline);
        pass.setBindGroup(0, group);
        pass.dispatchWorkgroups(groups[0], groups[1], groups[2]);
      }
    }
    pass.end();
  }

  /**
   * A number for what JSON {copies: [[buffer, offset, nbytes, at], …], total} copies to a staging buffer of a ring. A
   * copy may go on with a count and a stride: so many equal parts, which lie one behind the other in the result.
   */
  reading(json) {
    const { copies: rows, total } = JSON.parse(json);
    const copies = rows.map(([buffer, offset, nbytes, at, count = 1, stride = 0]) => (
      { buffer, offset, size: Math.ceil(nbytes / 4) * 4, at, count, stride }));
    return this.readings.push({ copies, total, free: [], made: 0, waiting: [] }) - 1;
  }

  copyOut(encoder, { buffer, offset, size, count, stride }, target, at) {
    const part = size / count;
    for (let i = 0; i < (size ? count : 0); i++) {
      encoder.copyBufferToBuffer(this.buffers[buffer], offset + i * stride, target, at + i * part, part);
    }
  }

  /** undefined where a staging buffer for the `reads`-th reading is free, else a promise of one. */
  room(reads) {
    const reading = this.readings[reads];
    if (reading.free.length) return undefined;
    if (reading.made >= this.device.ring) {
      return this.device.unlessLost(new Promise((resolve) => reading.waiting.push(resolve)));
    }
    reading.made++;
    const usage = GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST;
    return this.device
      .scoped(() => this.device.gpu.createBuffer({ size: Math.max(16, reading.total), usage }))
      .then((staging) => void reading.free.push(staging), (error) => {
        reading.made--;
        throw error;
      });
  }

  /** The next submit fills a buffer first: from a GPUBuffer, or as a picture of gpu_picture.js says. */
  take(buffer, source) {
    this.inputs.take(buffer, source);
  }

  /** Submits a range; `copyOut` adds what happens to the results. */
  submit(first, count, copyOut) {
    const { gpu } = this.device, commands = [];
    let encoder = gpu.createCommandEncoder();
    const copied = this.inputs.encode(encoder);
    if (count >= MANY) {
      if (copied) commands.push(encoder.finish());
      this.ahead.take(first, count).forEach((pass, i) => {
        if (i) gpu.queue.submit(commands.splice(0));
        commands.push(pass);
      });
      encoder = gpu.createCommandEncoder();
    } else if (count) this.encode(encoder, first, count);
    copyOut(encoder);
    gpu.queue.submit([...commands, encoder.finish()]);
    copied?.();
  }

  /** Encodes a range for a later run, while the GPU computes: for many dispatches that takes as long as they do. */
  prepare(first, count) {
    if (this.proven) this.ahead.prepare(first, count);
  }

  /** Submits at once, under error scopes until a run has succeeded; a promise of what they say. */
  submitChecked(first, count, copyOut) {
    this.device.check();
    if (this.inputs.strange() || !this.proven) return this.device.scoped(() => this.submit(first, count, copyOut));
    this.submit(first, count, copyOut);
    return null;
  }

  /**
   * Submits a range at once with its inputs, `given`: number of a buffer, source, and so on. Returns undefined, or a
   * promise after which to call again where too many runs are under way. Calls `arrived(ticket, bytes)` with the
   * staging bytes, where the `reads`-th reading says each result lies, valid during the call, or
   * `arrived(ticket, undefined, kind, message)` with what went wrong.
   */
  start(first, count, reads, ticket, arrived, ...given) {
    const full = this.room(reads);
    if (full) return full;
    this.inputs.give(given);
    const reading = this.readings[reads];
    const staging = reading.free.pop();
    const copyOut = (encoder) => {
      for (const copy of reading.copies) this.copyOut(encoder, copy, staging, copy.at);
    };
    this.finish(this.submitChecked(first, count, copyOut), staging, (bytes) => arrived(ticket, bytes))
      .catch((error) => tellFailure(error, ticket, arrived))
      .finally(() => {
        reading.free.push(staging);
        reading.waiting.shift()?.();
      });
    this.prepare(first, count);
    return undefined;
  }

  /** Waits for a staging buffer and shows its bytes. */
  async finish(checked, staging, show) {
    const { device } = this;
    try {
      const mapped = staging.mapAsync(GPUMapMode.READ);
      mapped.catch(() => {}); // what was checked says more
      if (checked) await checked;
      await device.unlessLost(device.software ? mapped : settled(device.gpu.queue, mapped));
      this.proven = true;
    } catch (error) {
      await Promise.race([device.whenLost, delay(LOSS_GRACE_MS)]);
      device.check();
      device.raiseUncaptured();
      throw error;
    }
    try {
      device.raiseUncaptured();
      show(new Uint8Array(staging.getMappedRange()));
    } finally {
      staging.unmap();
    }
  }

  /**
   * Submits a range at once with its inputs, as `start`. `buffers`: GPUBuffers of their own with what the `reads`-th
   * reading names, to be given back with `release`; `checked`: undefined, or a promise of what the error scopes say.
   */
  keep(first, count, reads, ...given) {
    const { copies } = this.readings[reads];
    this.inputs.give(given);
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    const made = copies.map(({ size }) => {
      const bytes = Math.max(16, size);
      return this.spare.get(bytes)?.pop() ?? this.device.gpu.createBuffer({ label: `${this.label} result`, size: bytes, usage });
    });
    const checked = this.submitChecked(first, count, (encoder) => {
      copies.forEach((copy, i) => this.copyOut(encoder, copy, made[i], 0));
    });
    this.prepare(first, count);
    return { buffers: made, checked: checked?.then(() => { this.proven = true; }) };
  }

  /** Takes back a buffer of `keep` for a later run. */
  release(buffer) {
    if (!this.buffers.length) return buffer.destroy();
    if (!this.spare.has(buffer.size)) this.spare.set(buffer.size, []);
    this.spare.get(buffer.size).push(buffer);
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
    for (const buffer of this.buffers) this.device.release(buffer);
    for (const { free } of this.readings) for (const staging of free) staging.destroy();
    for (const list of this.spare.values()) for (const buffer of list) buffer.destroy();
    this.buffers = [];
    this.steps = [];
    this.readings = [];
    this.ahead.clear();
    this.spare.clear();
  }
}
