// MLGraphBuilder: every method converts its arguments and hands them to Python, which checks them and writes the graph.

import { contextInside } from "./webnn_context.js";
import { answer, asInterface, bytesOf, choice, convert, convertNumber, descriptor, dictionary, record, refuse, sequence } from "./webnn_idl.js";
import { freedUnused } from "./webnn_inside.js";
import { METHODS, TYPES } from "./webnn_methods.js";
import { isTensor, newGraph, newOperand, operandKey, tensorInside } from "./webnn_objects.js";

const OWN = {
  operand: operandKey,
  operands: (value, name) => sequence(value, operandKey, name),
  type: (value, name) => choice(value, TYPES, name),
};
const VIEWS = {
  Float32Array: "float32", Float16Array: "float16", Uint16Array: "float16", Int32Array: "int32", Uint32Array: "uint32",
  BigInt64Array: "int64", BigUint64Array: "uint64", Int8Array: "int8", Uint8Array: "uint8", Uint8ClampedArray: "uint8",
};
const PACKED = ["int4", "uint4"]; // come as bytes, two elements in each
const forgotten = new FinalizationRegistry(({ bindings, number }) => bindings.drop(number));

export class MLGraphBuilder {
  #context;
  #bindings;
  #number;
  #built = false;

  constructor(context) {
    if (!arguments.length) refuse("MLGraphBuilder needs a context");
    this.#context = contextInside(context);
    this.#context.check();
    this.#bindings = this.#context.bindings;
    this.#number = this.#bindings.builder();
    forgotten.register(this, { bindings: this.#bindings, number: this.#number });
  }

  #open() {
    if (this.#built) throw new DOMException("this builder has built its graph", "InvalidStateError");
    this.#context.check();
  }

  input(name, given) {
    if (arguments.length < 2) refuse("input needs a name and a descriptor");
    const label = `${name}`.toWellFormed();
    const { dataType, shape } = descriptor(given);
    this.#open();
    return newOperand(answer(this.#bindings.input(this.#number, label, dataType, shape)));
  }

  constant(first, second) {
    if (isTensor(first)) return this.#constantTensor(first);
    if (arguments.length < 2) refuse("constant needs a descriptor and a buffer, a type and a number, or a tensor");
    if (typeof first !== "object" || first === null) {
      const dataType = choice(first, TYPES, "type");
      const number = JSON.stringify(convertNumber(second));
      this.#open();
      return newOperand(answer(this.#bindings.scalar(this.#number, dataType, number)));
    }
    const { dataType, shape } = descriptor(first);
    const bytes = bytesOf(second, "buffer");
    if (ArrayBuffer.isView(second) && VIEWS[second.constructor.name] !== (PACKED.includes(dataType) ? "uint8" : dataType)) {
      refuse(`a ${second.constructor.name} holds no ${dataType}`);
    }
    this.#open();
    return newOperand(answer(this.#bindings.constant(this.#number, dataType, shape, bytes)));
  }

  #constantTensor(tensor) {
    const { context, constant, dataType, shape, check } = tensorInside(tensor);
    this.#open();
    if (context !== this.#context) refuse("the tensor belongs to another context");
    if (!constant) refuse("the tensor is not constant; see createConstantTensor");
    check();
    return newOperand(answer(this.#bindings.constant(this.#number, dataType, JSON.stringify(shape), constant)));
  }

  async build(outputs) {
    const named = Object.fromEntries(record(outputs, operandKey, "outputs"));
    this.#open();
    const [graph, inputs, results] = answer(this.#bindings.finish(this.#number, JSON.stringify(named)));
    this.#built = true;
    const inside = await this.#context.compiled(graph, inputs, results);
    return freedUnused(newGraph(inside), inside);
  }

  static #operate(builder, name, [args, options], given) {
    if (given.length < args.length) refuse(`${name} needs ${args.length} arguments, has ${given.length}`);
    const found = {};
    args.forEach(([key, kind], i) => (found[key] = convert(given[i], kind, `${name}: ${key}`, OWN)));
    const more = dictionary(given[args.length], `${name}: options`);
    for (const [key, kind] of options) {
      const value = more[key];
      if (value !== undefined) found[key] = convert(value, kind, `${name}: ${key}`, OWN);
    }
    if (more.label !== undefined) found.label = `${more.label}`.toWellFormed();
    builder.#open();
    const [many, ...results] = answer(builder.#bindings.call(builder.#number, name, JSON.stringify(found)));
    return many ? results.map(newOperand) : newOperand(results[0]);
  }

  static {
    for (const [name, declared] of Object.entries(METHODS)) {
      const method = { [name](...given) { return MLGraphBuilder.#operate(this, name, declared, given); } }[name];
      Object.defineProperty(method, "length", { value: declared[0].length, configurable: true });
      Object.defineProperty(this.prototype, name, { value: method, writable: true, configurable: true });
    }
  }
}
asInterface(MLGraphBuilder, "MLGraphBuilder", 1);
