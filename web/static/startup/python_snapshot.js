// Restores an interpreter's memory from a file of build_scripts/site/snapshot.mjs, which says what is in it.

const MAGIC = 0x534e4957;
const VERSION = 1;
const PAGE = 65536; // bytes of WebAssembly memory

/** Bytes in memory, as files that are kept give theirs (kept_files.js). */
export const inMemory = (bytes) => ({
  length: bytes.length,
  read: (at, count) => bytes.subarray(at, at + count),
  pieces: (at) => [bytes.subarray(at)],
  close() {},
});

/** The snapshot in this file; throws if it is none of this version, or not all of one. */
export function readSnapshot(file) {
  if (file.length < 16) throw new Error(`it has ${file.length} bytes`);
  const [magic, version, headerBytes, runs] = words(file.read(0, 16));
  if (magic !== MAGIC || version !== VERSION) throw new Error(`it is not a snapshot of version ${VERSION}`);
  const [header, begin] = [16 + 8 * runs, 16 + 8 * runs + headerBytes];
  if (file.length < begin) throw new Error(`it ends after ${file.length} bytes`);
  const places = words(file.read(16, 8 * runs));
  const saved = places.reduce((sum, value, i) => (i % 2 ? sum + value : sum), 0);
  if (saved !== file.length - begin) throw new Error(`it has ${file.length - begin} bytes of memory, ${saved} were saved`);
  return { ...JSON.parse(new TextDecoder().decode(file.read(header, headerBytes))), places, file, begin };
}

/** What a runtime's memory begins with, in this file of build_scripts/site/runtime_split.py. */
export function readData(file) {
  const [count] = words(file.read(0, 4));
  return { places: words(file.read(4, 8 * count)), file, begin: 4 + 8 * count };
}

const words = ({ buffer, byteOffset, byteLength }) => new Uint32Array(buffer, byteOffset, byteLength >> 2);

/** Makes a fresh instance's memory as large as the saved one, of so many bytes, before anybody has a view of it. */
export function makeRoom(bytes, memory) {
  const missing = Math.ceil((bytes - memory.buffer.byteLength) / PAGE);
  if (missing > 0) memory.grow(missing);
}

/** Writes bytes of memory to where they belong. */
export function restore({ places, file, begin }, heap) {
  let [run, done] = [0, 0]; // whose address is places[run], and how much of it is written
  for (const piece of file.pieces(begin)) {
    for (let at = 0; at < piece.length && run < places.length; ) {
      const part = piece.subarray(at, at + places[run + 1] - done);
      heap.set(part, places[run] + done);
      at += part.length;
      done += part.length;
      if (done === places[run + 1]) [run, done] = [run + 2, 0];
    }
  }
}
