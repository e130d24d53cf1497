// Programs of recorded dispatches on a device: buffers and bind groups made once, replayed by range with one
// encoder, one pass and one submit; results come back through a ring of staging buffers. Knows no operator.

import { timed } from "./gpu_timing.js";
import { settled } from "./gpu_wait.js";

const LOSS_GRACE_MS = 100; // a failed map may be reported before the loss that caused it

const delay = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Calls `use` with the bytes of a typed array or of a Python buffer, which is read in place. */
export function withBytes(source, use) {
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
    this.incoming = [];
    this.known = new WeakSet(); // buffers of others, and makers of pictures, that were seen to fit
    this.spare = new Map(); // bytes -> buffers for results that stay here
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
    this.steps = dispatches.map(({ label, pipeline, bindings, groups }) => (
      this.bound({ label, made: this.device.pipelines[pipeline], bindings, groups }, new Map())));
  }

  /** A step with other buffers, by their numbers, in the place of the program's own. */
  bound(step, others) {
    const entries = step.bindings.map(([number, offset, size], binding) => ({
      binding,
      resource: { buffer: others.get(number) ?? this.buffers[number], offset, size },
    }));
    return { ...step, group: this.device.gpu.createBindGroup({ label: step.label, layout: step.made.layout, entries }) };
  }

  /** Copies bytes to a buffer, from byte `offset` on, ordered before the next run. */
  write(buffer, source, offset = 0) {
    this.device.check();
    withBytes(source, (bytes) => {
      const whole = bytes.length & ~3;
      const queue = this.device.gpu.queue;
      if (whole) queue.writeBuffer(this.buffers[buffer], offset, bytes, 0, whole);
      if (whole === bytes.length) return;
      const tail = new Uint8Array(4);
      tail.set(bytes.subarray(whole));
      queue.writeBuffer(this.buffers[buffer], offset + whole, tail);
    });
  }

  encode(encoder, first, count, repeats = 1, options = null, steps = this.steps) {
    const pass = encoder.beginComputePass(options ?? {});
    let current = null;
    for (let round = 0; round < repeats; round++) {
      for (let i = first; i < first + count; i++) {
        const { made, group, groups } = steps[i];
        if (made !== current) pass.setPipeline((current = made).pipeline);
        pass.setBindGroup(0, group);
        pass.dispatchWorkgroups(groups[0], groups[1], groups[2]);
      }
    }
    pass.end();
  }

  /** What JSON {copies: [[buffer, offset, nbytes, at], …], total} copies to a staging buffer, and that buffer's ring. */
  reading(json) {
    let found = this.readings.get(json);
    if (!found) {
      const { copies: rows, total } = JSON.parse(json);
      const copies = rows.map(([buffer, offset, nbytes, at]) => ({ buffer, offset, size: Math.ceil(nbytes / 4) * 4, at }));
      found = { copies, total, free: [], made: 0, waiting: [] };
      this.readings.set(json, found);
    }
    return found;
  }

  /** undefined where a staging buffer for JSON `reads` is free, else a promise of one. */
  room(reads) {
    const reading = this.reading(reads);
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
    this.incoming.push({ source, buffer, size: Math.min(source.size, this.buffers[buffer].size) & ~3 });
  }

  /** One encoder, one pass, one submit; `copyOut` adds what happens to the results. */
  submit(first, count, copyOut) {
    const encoder = this.device.gpu.createCommandEncoder();
    for (const { source, buffer, size } of this.incoming.splice(0)) {
      if (source.encode) source.encode(encoder, this.buffers[buffer]);
      else encoder.copyBufferToBuffer(source, 0, this.buffers[buffer], 0, size);
    }
    if (count) this.encode(encoder, first, count);
    copyOut(encoder);
    this.device.gpu.queue.submit([encoder.finish()]);
  }

  /** Submits at once, under error scopes until a run has succeeded; a promise of what they say. */
  submitChecked(first, count, copyOut) {
    this.device.check();
    const strange = this.incoming.map(({ source }) => source.maker ?? source).filter((maker) => !this.known.has(maker));
    for (const maker of strange) this.known.add(maker);
    if (!this.proven || strange.length) return this.device.scoped(() => this.submit(first, count, copyOut));
    this.submit(first, count, copyOut);
    return null;
  }

  /**
   * Submits a range at once, with a staging buffer that `room` found free. Calls `arrived(ticket, bytes, kind,
   * message)` with the staging bytes, where `reads` says each result lies, valid during the call, or with undefined
   * and what went wrong.
   */
  start(first, count, reads, ticket, arrived) {
    const reading = this.reading(reads);
    const staging = reading.free.pop();
    const copyOut = (encoder) => {
      for (const { buffer, offset, size, at } of reading.copies) {
        if (size) encoder.copyBufferToBuffer(this.buffers[buffer], offset, staging, at, size);
      }
    };
    this.finish(this.submitChecked(first, count, copyOut), staging, (bytes) => arrived(ticket, bytes, "", ""))
      .catch((error) => arrived(ticket, undefined, error.name === "Error" ? "Refused" : error.name, error.message))
      .finally(() => {
        reading.free.push(staging);
        reading.waiting.shift()?.();
      });
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
   * Submits a range at once. `buffers`: GPUBuffers of their own with what JSON `reads` names, to be given back with
   * `release`; `checked`: undefined, or a promise of what the error scopes say.
   */
  keep(first, count, reads) {
    const { copies } = this.reading(reads);
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    const made = copies.map(({ size }) => {
      const bytes = Math.max(16, size);
      return this.spare.get(bytes)?.pop() ?? this.device.gpu.createBuffer({ label: `${this.label} result`, size: bytes, usage });
    });
    const checked = this.submitChecked(first, count, (encoder) => {
      copies.forEach(({ buffer, offset, size }, i) => size && encoder.copyBufferToBuffer(this.buffers[buffer], offset, made[i], 0, size));
    });
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
    for (const buffer of this.buffers) buffer.destroy();
    for (const { free } of this.readings.values()) for (const staging of free) staging.destroy();
    for (const list of this.spare.values()) for (const buffer of list) buffer.destroy();
    this.buffers = [];
    this.steps = [];
    this.readings.clear();
    this.spare.clear();
  }
}
