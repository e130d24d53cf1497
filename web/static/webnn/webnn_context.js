// ML and MLContext: arguments are checked here, what happens then is in webnn_inside.js.

import { asInterface, bytesOf, choice, dictionary, refuse } from "./webnn_idl.js";
import { Inside, wrongState } from "./webnn_inside.js";
import { graphInside, tensorInside } from "./webnn_objects.js";

const KEY = Symbol("made by webnn.js");
const WORDS = {
  powerPreference: ["default", "high-performance", "low-power"],
  deviceType: ["cpu", "gpu", "npu"],
};
const engine = { start: null, started: null }; // how Python starts; the promise of it

/** Python starts with the first context, by this function. */
export function startsWith(start) {
  engine.start = start;
}

const numbersOf = (named) => Object.fromEntries(Object.entries(named).map(([name, { number }]) => [name, number]));

export class MLContext {
  #inside;

  constructor(...given) {
    if (given[0] !== KEY) throw new TypeError("Illegal constructor");
    this.#inside = given[1];
  }

  get accelerated() {
    return this.#inside.kind === "gpu";
  }

  get lost() {
    return #inside in this ? this.#inside.lost : Promise.reject(new TypeError("this is not an MLContext"));
  }

  opSupportLimits() {
    return JSON.parse(this.#inside.bindings.limits(this.#inside.kind));
  }

  async createTensor(given) {
    return this.#inside.tensor(given, {}, null);
  }

  async createConstantTensor(given, data) {
    const bytes = bytesOf(data, "data").slice();
    return this.#inside.tensor({ ...given, readable: false, writable: false }, {}, bytes);
  }

  async createExportableTensor(given, device) {
    const inside = this.#inside;
    inside.check();
    if (inside.kind !== "gpu" || inside.gpu !== device) refuse("the tensors of a context can be exported to its own GPUDevice; see createContext(device)");
    return inside.tensor(given, { exportable: true }, null);
  }

  async exportToGPU(given) {
    const inside = this.#inside;
    inside.check();
    const tensor = tensorInside(given);
    if (tensor.context !== inside) refuse("the tensor belongs to another context");
    if (!tensor.exportable) refuse("the tensor is not exportable; see createExportableTensor");
    tensor.check();
    tensor.exported = true;
    const buffer = await inside.pending(inside.timeline.buffer(tensor.number), tensor.waiting);
    buffer.destroy = () => { // gives it back; the buffer itself is the tensor's
      delete buffer.destroy;
      tensor.exported = false;
    };
    return buffer;
  }

  async readTensor(given, ...more) {
    const inside = this.#inside;
    const tensor = tensorInside(given);
    const into = more[0] === undefined ? null : bytesOf(more[0], "outputData");
    if (tensor.context !== inside) refuse("the tensor belongs to another context");
    inside.check();
    tensor.check();
    if (!tensor.readable) refuse("the tensor is not readable");
    if (into && into.length < tensor.nbytes) refuse(`outputData has ${into.length} bytes, the tensor ${tensor.nbytes}`);
    const use = (bytes, transferred) => {
      if (!into) return transferred ? bytes.buffer : bytes.slice().buffer;
      const target = bytesOf(more[0], "outputData"); // it may have been detached meanwhile
      if (target.length < tensor.nbytes) refuse("outputData was detached or shrunk");
      inside.check();
      if (!tensor.destroyed) target.set(bytes);
      return undefined;
    };
    return inside.pending(inside.timeline.read(tensor.number, use), tensor.waiting);
  }

  writeTensor(given, data) {
    const inside = this.#inside;
    const tensor = tensorInside(given);
    const bytes = bytesOf(data, "inputData");
    if (tensor.context !== inside) refuse("the tensor belongs to another context");
    inside.check();
    tensor.check();
    if (!tensor.writable) refuse("the tensor is not writable");
    if (bytes.length !== tensor.nbytes) refuse(`inputData has ${bytes.length} bytes, the tensor ${tensor.nbytes}`);
    inside.timeline.write(tensor.number, bytes);
  }

  dispatch(given, inputs, outputs) {
    const inside = this.#inside;
    const graph = graphInside(given);
    inside.check();
    if (graph.context !== inside) refuse("the graph belongs to another context");
    if (graph.destroyed) throw wrongState("the graph was destroyed");
    const fed = inside.named(inputs, graph.inputs, "inputs", new Set());
    const seen = new Set(Object.values(fed));
    const made = inside.named(outputs, graph.outputs, "outputs", seen);
    if (new Set(Object.values(made)).size < Object.keys(made).length) refuse("a tensor is given for two outputs");
    inside.timeline.dispatch(graph.number, numbersOf(fed), numbersOf(made));
  }

  destroy() {
    this.#inside.end("the context was destroyed");
  }

  static inside(value) {
    if (typeof value !== "object" || value === null || !(#inside in value)) throw new TypeError("context is not an MLContext");
    return value.#inside;
  }
}
export const contextInside = MLContext.inside;
delete MLContext.inside;
asInterface(MLContext, "MLContext");

/** The bytes of tensors where nothing must be waited for; else nothing, and `arrived(number, arrays, problem)` is called with them. */
export function reading(context, tensors, number, arrived) {
  const inside = contextInside(context);
  let within = true; // then the caller uses the bytes before anybody changes them
  const found = tensors.map((given) => {
    const tensor = tensorInside(given);
    inside.check();
    tensor.check();
    return inside.timeline.read(tensor.number, (bytes) => (within ? bytes : bytes.slice()));
  });
  within = false;
  if (!found.some((one) => one instanceof Promise)) return found;
  inside.pending(Promise.all(found)).then((arrays) => arrived(number, arrays, ""), (error) => arrived(number, undefined, error.message));
  return undefined;
}

export class ML {
  constructor(...given) {
    if (given[0] !== KEY) throw new TypeError("Illegal constructor");
  }

  async createContext(...given) {
    if (!(this instanceof ML)) throw new TypeError("Illegal invocation");
    const isDevice = typeof GPUDevice !== "undefined" && given[0] instanceof GPUDevice;
    const options = isDevice ? {} : dictionary(given[0], "options");
    const asked = {};
    for (const [key, words] of Object.entries(WORDS)) if (options[key] !== undefined) asked[key] = choice(options[key], words, key);
    if (options.accelerated !== undefined) asked.accelerated = Boolean(options.accelerated);
    const python = await (engine.started ??= engine.start());
    const opened = await python.bindings.context(JSON.stringify(asked), isDevice ? given[0] : undefined);
    const made = new Inside(python, ...opened);
    opened.destroy();
    return new MLContext(KEY, made);
  }
}
asInterface(ML, "ML");

export const newML = () => new ML(KEY);
