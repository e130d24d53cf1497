// MLOperand, MLTensor and MLGraph: what builders and contexts hand out. Their insides are for webnn_builder.js and webnn_context.js.

import { asInterface } from "./webnn_idl.js";

const KEY = Symbol("made by webnn.js");

/** Nothing, if `key` is KEY: nobody else makes these objects. */
function only(key) {
  if (key !== KEY) throw new TypeError("Illegal constructor");
}

export class MLOperand {
  #inside;

  constructor(...given) {
    only(given[0]);
    this.#inside = given[1];
  }

  get dataType() {
    return this.#inside.dataType;
  }

  get shape() {
    return this.#inside.shape;
  }

  /** The operand's key in Python; throws a TypeError for what is not an operand. */
  static key(value, name = "operand") {
    if (typeof value !== "object" || value === null || !(#inside in value)) throw new TypeError(`${name} is not an MLOperand`);
    return value.#inside.key;
  }
}

export class MLTensor {
  #inside;

  constructor(...given) {
    only(given[0]);
    this.#inside = given[1];
  }

  get dataType() {
    return this.#inside.dataType;
  }

  get shape() {
    return this.#inside.shape;
  }

  get readable() {
    return this.#inside.readable;
  }

  get writable() {
    return this.#inside.writable;
  }

  get constant() {
    return this.#inside.constant;
  }

  get exportableToGPU() {
    return this.#inside.exportable;
  }

  destroy() {
    this.#inside.destroy();
  }

  static inside(value, name = "tensor") {
    if (!isTensor(value)) throw new TypeError(`${name} is not an MLTensor`);
    return value.#inside;
  }

  static is(value) {
    return typeof value === "object" && value !== null && #inside in value;
  }
}

export class MLGraph {
  #inside;

  constructor(...given) {
    only(given[0]);
    this.#inside = given[1];
  }

  destroy() {
    this.#inside.destroy();
  }

  static inside(value, name = "graph") {
    if (typeof value !== "object" || value === null || !(#inside in value)) throw new TypeError(`${name} is not an MLGraph`);
    return value.#inside;
  }
}

// What only this file's neighbours call does not show.
export const operandKey = MLOperand.key;
export const tensorInside = MLTensor.inside;
export const isTensor = MLTensor.is;
export const graphInside = MLGraph.inside;
for (const type of [MLOperand, MLTensor, MLGraph]) for (const name of ["key", "inside", "is"]) delete type[name];
asInterface(MLOperand, "MLOperand");
asInterface(MLTensor, "MLTensor");
asInterface(MLGraph, "MLGraph");

export const newOperand = ([key, dataType, shape]) => new MLOperand(KEY, { key, dataType, shape: Object.freeze(shape) });
export const newTensor = (inside) => new MLTensor(KEY, inside);
export const newGraph = (inside) => new MLGraph(KEY, inside);
