// What is inside of a context: where its tensors and graphs are, and when they may be used. What runs them: webnn_cpu.js
// and webnn_gpu.js.

import { Processor, RemoteProcessor } from "./webnn_cpu.js";
import { Graphics } from "./webnn_gpu.js";
import { answer, descriptor, record, refuse } from "./webnn_idl.js";
import { newTensor, tensorInside } from "./webnn_objects.js";

const unused = new FinalizationRegistry((free) => free());

/** The object itself, whose inside is destroyed when nobody holds it any more. */
export function freedUnused(object, { destroy }) {
  unused.register(object, destroy);
  return object;
}

let numbers = 0;

export const wrongState = (message) => new DOMException(message, "InvalidStateError");
const lastLine = (error) => String(error.message ?? error).trim().split("\n").at(-1);

/** What a context is made of. Everything that happens to it goes in order to its `timeline`. */
export class Inside {
  #gone = "";
  #tell;
  #waiting = new Set(); // what is rejected when the context ends
  lost = new Promise((resolve) => (this.#tell = resolve));

  constructor(python, kind, device, number) {
    Object.assign(this, { bindings: python.bindings, kind, python, number, gpu: device?.gpu });
    const lost = (message) => this.end(message);
    if (kind === "gpu") this.timeline = new Graphics(device, (...job) => this.#help(...job), lost);
    else this.timeline = python.worker ? new RemoteProcessor(python.worker, lost) : new Processor();
    this.target = kind === "gpu" || python.worker ? kind : "here"; // this thread has Python: its kernels have threads
    device?.whenLost.then(() => lost(`the GPU was lost: ${device.lost}`));
  }

  check() {
    if (this.#gone) throw wrongState(this.#gone);
  }

  end(message) {
    if (this.#gone) return;
    this.#gone = message;
    for (const reject of this.#waiting) reject(wrongState(message));
    this.timeline.close?.();
    this.bindings.leave(this.number);
    this.#tell({ message });
  }

  /** Settles as `promise` does, or at once with what is none, or is rejected when the context or one of these ends before. */
  pending(promise, ...others) {
    return new Promise((resolve, reject) => {
      const sets = [this.#waiting, ...others];
      for (const set of sets) set.add(reject);
      Promise.resolve(promise).then(resolve, reject).finally(() => sets.forEach((set) => set.delete(reject)));
    });
  }

  /** A graph of Python's, ready to run. */
  async compiled(number, inputs, outputs) {
    const { bindings, timeline } = this;
    const found = await this.pending(bindings.compile(number, this.target, this.number).catch((error) => { throw new DOMException(lastLine(error), "OperationError"); }));
    const close = () => (bindings.close(found), found.destroy());
    const graph = { facts: JSON.parse(bindings.facts(found)), program: found.program, close, found };
    if (graph.facts.kind === "here" && graph.facts.threads > 1) graph.run = () => bindings.run_here(found);
    if (graph.facts.kind === "cpu") {
      await this.pending(timeline.load(number, { module: found.program, facts: graph.facts, fixed: this.python.copied(found.fixed) }));
      graph.close();
    } else await timeline.load(number, graph);
    const inside = { context: this, number, inputs, outputs, destroyed: false };
    inside.destroy = () => {
      if (!inside.destroyed) timeline.unload(number);
      inside.destroyed = true;
    };
    return inside;
  }

  async #help({ found }, names, arrays) {
    const results = await this.bindings.run(found, JSON.stringify(names), ...arrays);
    try {
      return JSON.parse(this.bindings.names(found)).map((name, i) => [name, this.python.copied(results.get(i))]);
    } finally {
      results.destroy();
    }
  }

  tensor(given, options, constant) {
    this.check();
    const { dataType, shape } = descriptor(given);
    const nbytes = answer(this.bindings.tensor_bytes(dataType, shape, Boolean(constant)));
    if (constant && constant.length !== nbytes) refuse(`the buffer has ${constant.length} bytes, the tensor ${nbytes}`);
    const number = ++numbers;
    const free = () => this.timeline.free(number);
    const inside = {
      context: this, number, dataType, shape: Object.freeze(JSON.parse(shape)), nbytes, constant: constant ?? false,
      readable: Boolean(given.readable), writable: Boolean(given.writable), ...options, destroyed: false, exported: false, waiting: new Set(),
    };
    inside.check = () => {
      if (inside.destroyed) throw wrongState("the tensor was destroyed");
      if (inside.exported) throw wrongState("the tensor is exported; destroy() of its buffer gives it back");
    };
    inside.destroy = () => {
      if (inside.destroyed) return;
      inside.destroyed = true;
      for (const reject of inside.waiting) reject(wrongState("the tensor was destroyed"));
      if (!constant) free();
    };
    if (!constant) this.timeline.create(number, nbytes, inside.exportable);
    return freedUnused(newTensor(inside), inside);
  }

  /** The tensors of a dispatch, numbers by name; throws unless they are those that the graph needs. */
  named(given, needed, what, seen) {
    const pairs = record(given, (value, name) => tensorInside(value, `${what} "${name}"`), what);
    if (pairs.length !== Object.keys(needed).length) refuse(`${pairs.length} ${what} are given, the graph has ${Object.keys(needed).length}`);
    return Object.fromEntries(pairs.map(([name, tensor]) => {
      if (!Object.hasOwn(needed, name)) refuse(`the graph has no ${what} "${name}"`);
      const [dataType, shape] = needed[name];
      if (tensor.context !== this) refuse(`${what} "${name}" belongs to another context`);
      if (tensor.dataType !== dataType || tensor.shape.join() !== shape.join()) {
        refuse(`${what} "${name}" is ${tensor.dataType} [${tensor.shape}], the graph needs ${dataType} [${shape}]`);
      }
      if (tensor.constant || seen.has(tensor)) refuse(`${what} "${name}" is constant, or given twice`);
      tensor.check();
      return [name, tensor];
    }));
  }
}
