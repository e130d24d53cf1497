// Tensors of a model: element types, sizes, and what may be given for them.

import { PlayerError, whole } from "./errors.js";

const ARRAYS = {
  float32: Float32Array, float16: globalThis.Float16Array ?? Uint16Array, int8: Int8Array, uint8: Uint8Array, int16: Int16Array,
  uint16: Uint16Array, int32: Int32Array, uint32: Uint32Array, int64: BigInt64Array, uint64: BigUint64Array, bool: Uint8Array,
};

/** {name, dtype, shape, length, nbytes} of a row of a package's header; the two last are not known where sizes are open. */
export function tensorOf([name, dtype, shape]) {
  if (!Object.hasOwn(ARRAYS, dtype)) throw new PlayerError("package", `tensor ${name} has elements of type ${dtype}`);
  if (shape.some((size) => typeof size === "string")) return { name, dtype, shape, open: true };
  const length = shape.reduce((product, size) => product * whole(size), 1);
  return { name, dtype, shape, length, nbytes: whole(length * ARRAYS[dtype].BYTES_PER_ELEMENT) };
}

/** Tensors whose sizes were open with those that `shapesOf` gives for "inputs" and "outputs". */
export function boundTensors(tensors, shapesOf) {
  return Object.fromEntries(["inputs", "outputs"].map((key) => [
    key, shapesOf(key).map((shape, i) => tensorOf([tensors[key][i].name, tensors[key][i].dtype, shape])),
  ]));
}

/** The tensors that a package's header names. */
export const tensorsOf = ({ inputs, outputs }) => ({ inputs: inputs.map(tensorOf), outputs: outputs.map(tensorOf) });

/** The bytes that were given for an input. */
export function bytesOf(given, { name, dtype, shape, length, nbytes }) {
  const wanted = `${dtype} [${shape.join(", ")}]: a ${ARRAYS[dtype].name} of ${length}, or ${nbytes} bytes`;
  const value = given?.data ?? given; // a tensor that a run gave
  const array = Array.isArray(value) ? ARRAYS[dtype].from(value) : value;
  const view = array instanceof ArrayBuffer ? new Uint8Array(array) : array;
  const fitting = view instanceof ARRAYS[dtype] || view instanceof Uint8Array || view instanceof Uint8ClampedArray;
  if (!fitting || view.byteLength !== nbytes) {
    const found = view === undefined ? "nothing" : `a ${view?.constructor?.name} of ${view?.length ?? "?"}`;
    throw new PlayerError("input", `${name} was given ${found}, needs ${wanted}`);
  }
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
}

/** An output: its elements, shape and type. */
export function outputOf(bytes, { dtype, shape }) {
  const { buffer, byteOffset, byteLength } = bytes.byteOffset ? bytes.slice() : bytes;
  const made = ARRAYS[dtype];
  return { data: new made(buffer, byteOffset, byteLength / made.BYTES_PER_ELEMENT), shape, dtype };
}
