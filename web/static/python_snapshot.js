// Restores an interpreter's memory from a file of build_scripts/site/snapshot.mjs, which says what is in it.

const MAGIC = 0x534e4957;
const VERSION = 1;
const PAGE = 65536; // bytes of WebAssembly memory

/** The snapshot in these bytes; throws if they are none of this version, or not all of one. */
export function readSnapshot(bytes) {
  if (bytes.length < 16) throw new Error(`it has ${bytes.length} bytes`);
  const [magic, version, headerBytes, runs] = new Uint32Array(bytes.buffer, bytes.byteOffset, 4);
  if (magic !== MAGIC || version !== VERSION) throw new Error(`it is no snapshot of version ${VERSION}`);
  const begin = 16 + 8 * runs;
  if (bytes.length < begin + headerBytes) throw new Error(`it ends after ${bytes.length} bytes`);
  const places = new Uint32Array(bytes.buffer, bytes.byteOffset + 16, 2 * runs);
  const data = bytes.subarray(begin + headerBytes);
  const saved = places.reduce((sum, value, i) => (i % 2 ? sum + value : sum), 0);
  if (saved !== data.length) throw new Error(`it has ${data.length} bytes of memory, ${saved} were saved`);
  return { ...JSON.parse(new TextDecoder().decode(bytes.subarray(begin, begin + headerBytes))), places, data };
}

/** What a runtime's memory begins with, in these bytes of build_scripts/site/runtime_split.py. */
export function readData(bytes) {
  const [count] = new Uint32Array(bytes.buffer, bytes.byteOffset, 1);
  const places = new Uint32Array(bytes.buffer, bytes.byteOffset + 4, 2 * count);
  return { places, data: bytes.subarray(4 + places.byteLength) };
}

/** Makes a fresh instance's memory as large as the saved one, of so many bytes, before anybody has a view of it. */
export function makeRoom(bytes, memory) {
  const missing = Math.ceil((bytes - memory.buffer.byteLength) / PAGE);
  if (missing > 0) memory.grow(missing);
}

/** Writes bytes of memory to where they belong. */
export function restore({ places, data }, heap) {
  let at = 0;
  for (let i = 0; i < places.length; i += 2) {
    const end = at + places[i + 1];
    heap.set(data.subarray(at, end), places[i]);
    at = end;
  }
}
