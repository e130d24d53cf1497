// How far a system's outputs are from the reference.

const ARRAYS = {
  float32: Float32Array, float16: globalThis.Float16Array ?? Uint16Array, int8: Int8Array, uint8: Uint8Array, int16: Int16Array,
  int32: Int32Array, int64: BigInt64Array, bool: Uint8Array, uint16: Uint16Array, uint32: Uint32Array,
  uint64: BigUint64Array, float64: Float64Array,
};

/** A typed array over a file's bytes. */
export function typed(dtype, buffer) {
  const Type = ARRAYS[dtype];
  if (!Type) throw new Error(`the benchmark has no typed array for ${dtype}`);
  return new Type(buffer);
}

function largestDifference(got, want) {
  let largest = 0;
  for (let i = 0; i < want.length; i++) {
    const difference = Math.abs(Number(got[i]) - Number(want[i]));
    if (!(difference <= largest)) largest = difference; // NaN counts as a difference
    if (Number.isNaN(largest)) return Infinity;
  }
  return largest;
}

/**
 * The largest absolute difference, in the outputs' own units, and the largest relative to an output's range.
 *
 * `got` is [{name, data}], `want` [{name, data, range}]. An output is found by its name, else, as formats
 * rename them, it is the nearest of those with its size that no other output has taken.
 */
export function compare(got, want) {
  const left = new Set(got);
  const pairs = new Map();
  for (const output of want) {
    const named = got.find((item) => item.name === output.name && item.data.length === output.data.length);
    if (named && left.delete(named)) pairs.set(output, named);
  }
  let absolute = 0, relative = 0;
  for (const output of want) {
    const candidates = pairs.has(output) ? [pairs.get(output)] : [...left].filter((item) => item.data.length === output.data.length);
    if (!candidates.length) throw new Error(`no output of ${output.data.length} elements for ${output.name}; got ${got.map((item) => `${item.name} (${item.data.length})`).join(", ")}`);
    const scored = candidates.map((item) => [largestDifference(item.data, output.data), item]).sort((a, b) => a[0] - b[0]);
    left.delete(scored[0][1]);
    absolute = Math.max(absolute, scored[0][0]);
    relative = Math.max(relative, scored[0][0] / (output.range || 1));
  }
  return { max_abs_diff: absolute, max_rel_diff: relative };
}
