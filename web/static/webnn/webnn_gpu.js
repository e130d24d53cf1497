// Tensors and graphs on a GPU: a tensor is a GPUBuffer, a graph the recorded dispatches of gpu_program.js on these buffers.
// What is said first is done first: by the queue, or, behind a graph that Python must help with, one after the other.
// Knows no operator.

import { BoundGraph } from "./webnn_bound.js";

// Shaders bind whole quads: 16 bytes, or 32 of elements of 8. An exportable tensor has no bytes more than it must.
const aligned = (nbytes, exportable) => (exportable ? Math.max(16, Math.ceil(nbytes / 4) * 4) : Math.ceil(nbytes / 32) * 32);

const TOGETHER = 16; // graphs in one submit

/** Commands that are said in a row and submitted together, at the latest when the page's own script pauses. */
class Commands {
  #gpu;
  #open = null;
  #count = 0;

  constructor(gpu) {
    this.#gpu = gpu;
  }

  add(record) {
    if (!this.#open) {
      this.#open = this.#gpu.createCommandEncoder();
      queueMicrotask(() => this.submit());
    }
    record(this.#open);
    if (++this.#count === TOGETHER) this.submit();
  }

  /** The encoder for another's commands and submit; undefined where nothing is open. */
  take() {
    const taken = this.#open ?? undefined;
    [this.#open, this.#count] = [null, 0];
    return taken;
  }

  submit() {
    const encoder = this.take();
    if (encoder) this.#gpu.queue.submit([encoder.finish()]);
  }
}

export class Graphics {
  #device; // of gpu_device.js
  #commands;
  #tensors = new Map();
  #graphs = new Map();
  #help; // runs a graph that Python must help with: (graph, names, arrays) -> arrays
  #lost;
  #tail = null; // the last of what waits for Python; null where nothing does

  constructor(device, help, lost) {
    Object.assign(this, { whenLost: device.whenLost });
    [this.#device, this.#help, this.#lost] = [device, help, lost];
    this.#commands = new Commands(device.gpu);
  }

  #then(action) {
    if (!this.#tail) return action();
    const mine = this.#tail.then(action);
    const end = mine.catch((error) => this.#lost(error.message)).then(() => this.#tail === end && (this.#tail = null));
    this.#tail = end;
    return mine;
  }

  /** The same for what must come behind all that was said, in the queue too. */
  #after(action) {
    return this.#then(() => {
      this.#commands.submit();
      return action();
    });
  }

  create(number, nbytes, exportable) {
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    const buffer = this.#device.gpu.createBuffer({ label: "MLTensor", size: aligned(nbytes, exportable), usage });
    this.#tensors.set(number, { number, buffer, nbytes });
  }

  free(number) {
    const { buffer } = this.#tensors.get(number) ?? {};
    this.#tensors.delete(number);
    this.#after(() => {
      for (const graph of this.#graphs.values()) graph.forget?.(number);
      buffer?.destroy();
    });
  }

  /** The buffer of a tensor, when what was said before has been handed to the queue. */
  async buffer(number) {
    await this.#tail;
    this.#commands.submit();
    return this.#tensors.get(number).buffer;
  }

  /** The bytes are the caller's: what must wait keeps a copy. */
  write(number, bytes) {
    const { buffer } = this.#tensors.get(number);
    const kept = this.#tail ? bytes.slice() : bytes;
    this.#after(() => this.#write(buffer, kept));
  }

  #write(buffer, bytes) {
    const whole = bytes.length & ~3;
    const { queue } = this.#device.gpu;
    if (whole) queue.writeBuffer(buffer, 0, bytes, 0, whole);
    if (whole === bytes.length) return;
    const tail = new Uint8Array(4);
    tail.set(bytes.subarray(whole));
    queue.writeBuffer(buffer, whole, tail);
  }

  /** A promise of what `use` makes of a tensor's bytes, which are there during its call. */
  read(number, use) {
    const { buffer, nbytes } = this.#tensors.get(number);
    return this.#then(() => this.#device.read(buffer, nbytes, 0, { use, encoder: this.#commands.take() }));
  }

  async load(number, graph) {
    this.#graphs.set(number, graph.program ? new BoundGraph(graph) : graph);
  }

  unload(number) {
    const graph = this.#graphs.get(number);
    this.#graphs.delete(number);
    if (graph) this.#after(() => graph.close());
  }

  dispatch(number, inputs, outputs) {
    const graph = this.#graphs.get(number);
    const [given, made] = [inputs, outputs].map((named) => (
      new Map(Object.entries(named).map(([name, tensor]) => [name, this.#tensors.get(tensor)]))));
    if (graph.program) this.#then(() => void graph.run(given, made, this.#commands)?.catch((error) => this.#lost(error.message)));
    else {
      this.#tail ??= Promise.resolve();
      this.#after(() => this.#helped(graph, given, made));
    }
  }

  async #helped(graph, given, made) {
    const arrays = await Promise.all([...given.values()].map(({ buffer, nbytes }) => this.#device.read(buffer, nbytes)));
    const results = await this.#help(graph, [...given.keys()], arrays);
    for (const [name, bytes] of results) this.#write(made.get(name).buffer, bytes);
  }

  close() {
    this.#commands.submit();
    for (const { buffer } of this.#tensors.values()) buffer.destroy();
    this.#tensors.clear();
  }
}
