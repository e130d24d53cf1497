// NumPy's .npy files: one array with its type and shape, read and written.
// Source: NumPy 2.4, numpy/lib/_format_impl.py

const MAGIC = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59];
const TYPES = {
  "|b1": "bool", "|i1": "int8", "|u1": "uint8", "<i2": "int16", "<u2": "uint16", "<i4": "int32", "<u4": "uint32",
  "<i8": "int64", "<u8": "uint64", "<f2": "float16", "<f4": "float32", "<f8": "float64",
};
const CODES = Object.fromEntries(Object.entries(TYPES).map(([code, name]) => [name, code]));

export const ARRAYS = {
  bool: Uint8Array, int8: Int8Array, uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array, int32: Int32Array,
  uint32: Uint32Array, int64: BigInt64Array, uint64: BigUint64Array, float32: Float32Array, float64: Float64Array,
};

/** A file that is not a .npy array, or one that nothing here can read. */
export class NpyError extends Error {
  code = "input";
}

/** {dtype, shape, data: ArrayBuffer} of a .npy file's bytes. */
export function readNpy(buffer, name) {
  const view = new DataView(buffer);
  if (buffer.byteLength < 12 || MAGIC.some((byte, at) => view.getUint8(at) !== byte)) throw new NpyError(`“${name}” is not a .npy file.`);
  const wide = view.getUint8(6) >= 2;
  const start = wide ? 12 : 10;
  const length = wide ? view.getUint32(8, true) : view.getUint16(8, true);
  if (start + length > buffer.byteLength) throw new NpyError(`“${name}” is cut off: it has ${buffer.byteLength} bytes.`);
  const head = new TextDecoder("latin1").decode(new Uint8Array(buffer, start, length));
  const code = /'descr':\s*'([^']*)'/.exec(head)?.[1] ?? "";
  const sizes = /'shape':\s*\(([\d,\s]*)\)/.exec(head)?.[1];
  const dtype = TYPES[code];
  if (!dtype || sizes === undefined) throw new NpyError(`“${name}” holds “${code || "something else"}”; numbers in little-endian order can be read.`);
  if (/'fortran_order':\s*True/.test(head)) throw new NpyError(`“${name}” is in Fortran's order; save it with numpy.ascontiguousarray.`);
  const shape = sizes.split(",").map((text) => text.trim()).filter(Boolean).map(Number);
  const data = buffer.slice(start + length);
  const width = dtype === "float16" ? 2 : ARRAYS[dtype].BYTES_PER_ELEMENT;
  const needed = shape.reduce((product, size) => product * size, width);
  if (data.byteLength !== needed) throw new NpyError(`“${name}” has ${data.byteLength} bytes of numbers, its shape needs ${needed}.`);
  return { dtype, shape, data };
}

/** The parts of a .npy file. */
export function writeNpy({ dtype, shape, data }) {
  const sizes = shape.length === 1 ? `${shape[0]},` : shape.join(", ");
  const text = `{'descr': '${CODES[dtype]}', 'fortran_order': False, 'shape': (${sizes}), }`;
  const length = Math.ceil((10 + text.length + 1) / 64) * 64 - 10;
  const head = new Uint8Array(10 + length).fill(0x20);
  head.set([...MAGIC, 1, 0, length & 255, length >> 8]);
  head.set(new TextEncoder().encode(text), 10);
  head[head.length - 1] = 0x0a;
  return [head, data];
}

/** The elements of an array as numbers (or big integers), typed. */
export function elementsOf({ dtype, data }) {
  if (dtype !== "float16") return new ARRAYS[dtype](data);
  const words = new Uint16Array(data);
  return Float32Array.from(words, (word) => {
    const [sign, exponent, part] = [word >> 15 ? -1 : 1, (word >> 10) & 31, word & 1023];
    if (exponent === 31) return part ? NaN : sign * Infinity;
    return sign * (exponent ? 2 ** (exponent - 15) * (1 + part / 1024) : 2 ** -24 * part);
  });
}
