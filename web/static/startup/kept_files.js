// Large files that the browser keeps unpacked in the origin's private file system: to inflate 15 MB again
// takes longer than to read them. Whoever cannot keep files downloads them again, and so does who finds one damaged.

const FOLDER = "webinfer";
const SEAL_BYTES = 16;
export const WARM = ".warm"; // behind a file's name: noted once the browser has the machine code that goes with it
const PAGE = 65536; // bytes of WebAssembly memory
const PIECE = 4 * PAGE; // of a file, that is read at a time: it stays in the processor's cache
// The loop of `Seal` over the blocks of 16 bytes from one address to another; the four sums lie at address 0. JavaScript
// is slow until it has been compiled well, which takes longer than all that is to be done.
const SUMS = `0061736d0100000001060160027f7f00020801016d016d02000103020100070501016600000a63016101027b4100fd0004002102fd0c
b179379e77caeb853daeb2c22febd427210302400340200020014f0d0120022000fd000400fd512003fdb50121022002410dfdab01
20024113fdad01fd502102200041106a21000c000b0b41002002fd0b04000b`;

async function folder() {
  const root = await navigator.storage.getDirectory();
  return root.getDirectoryHandle(FOLDER, { create: true });
}

/**
 * A seal of bytes whose number is a multiple of four: bytes of its own, others for other contents. It finds what disks
 * and crashes do to a file, several times as fast as SHA-256, which also withstands people. The bytes come in pieces, of
 * whole blocks of 16 bytes all but the last.
 */
class Seal {
  constructor(bytes) {
    this.sums = Uint32Array.of(1, 2, 3, bytes >> 2);
  }

  add(bytes) {
    const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2);
    this.addBlocks(bytes);
    for (const word of words.subarray(words.length & ~3)) this.sums[0] = Math.imul(turned(this.sums[0]) ^ word, 0x9e3779b1);
    return this;
  }

  addBlocks({ buffer, byteOffset, length }) {
    const words = new Uint32Array(buffer, byteOffset, (length & ~15) >> 2);
    let [a, b, c, d] = this.sums; // four sums at once: each step of one needs the step before
    for (let i = 0; i < words.length; i += 4) {
      a = turned(Math.imul(a ^ words[i], 0x9e3779b1)); // or high bits would never reach the low ones
      b = turned(Math.imul(b ^ words[i + 1], 0x85ebca77));
      c = turned(Math.imul(c ^ words[i + 2], 0xc2b2ae3d));
      d = turned(Math.imul(d ^ words[i + 3], 0x27d4eb2f));
    }
    this.sums.set([a, b, c, d]);
  }

  end() {
    return new Uint8Array(this.sums.buffer, this.sums.byteOffset, SEAL_BYTES);
  }
}

const turned = (word) => (word << 13) | (word >>> 19);

/** A seal of pieces that lie in `room`, which is its own. */
class FastSeal extends Seal {
  constructor(bytes, code) {
    super(bytes);
    const memory = new WebAssembly.Memory({ initial: PIECE / PAGE + 1 });
    this.room = new Uint8Array(memory.buffer, PAGE);
    const sums = new Uint32Array(memory.buffer, 0, 4);
    sums.set(this.sums);
    this.sums = sums;
    this.run = new WebAssembly.Instance(new WebAssembly.Module(code), { m: { m: memory } }).exports.f;
  }

  addBlocks({ byteOffset, length }) {
    this.run(byteOffset, byteOffset + (length & ~15));
  }
}

function sealing(bytes) {
  const code = Uint8Array.from(SUMS.match(/[0-9a-f]{2}/g), (pair) => parseInt(pair, 16));
  return WebAssembly.validate(code) ? new FastSeal(bytes, code) : Object.assign(new Seal(bytes), { room: new Uint8Array(PIECE) });
}

/** A file of the origin, open until it is closed. */
class KeptFile {
  #access;

  constructor(name, access, bytes) {
    this.name = name; // under which it is kept
    this.#access = access;
    this.length = bytes;
  }

  /** `count` bytes from `at` on, unchecked. */
  read(at, count) {
    const bytes = new Uint8Array(count);
    if (this.#access.read(bytes, { at }) !== count) throw new Error(`it ends before ${at + count} bytes`);
    return bytes;
  }

  /** The bytes from `at` on in pieces: the next one takes the place of the one before. Behind the last one it throws if the file is not what was kept. */
  *pieces(at = 0) {
    const seal = sealing(this.length);
    for (let begin = 0; begin < this.length; begin += PIECE) {
      const piece = seal.room.subarray(0, Math.min(PIECE, this.length - begin));
      if (this.#access.read(piece, { at: begin }) !== piece.length) throw new Error(`it ends before ${this.length} bytes`);
      seal.add(piece);
      if (begin + piece.length > at) yield piece.subarray(Math.max(0, at - begin));
    }
    const found = seal.end();
    if (!this.read(this.length, SEAL_BYTES).every((byte, i) => byte === found[i])) throw new Error("its seal is broken");
  }

  close() {
    this.#access.close();
  }
}

/**
 * The file of so many bytes that is kept under this name, open, or null. With `checks` it is read to its end for its seal
 * now; otherwise the reader learns after the last piece that it is damaged and deletes it: reading it twice would take long.
 */
export async function kept(name, length, checks) {
  let file = null;
  try {
    const handle = await (await folder()).getFileHandle(name);
    const access = await handle.createSyncAccessHandle({ mode: "read-only" }); // who knows no modes keeps other tabs out
    file = new KeptFile(name, access, length);
    if (access.getSize() !== length + SEAL_BYTES) throw new Error("it has another size");
    if (checks) for (const piece of file.pieces()) void piece;
    return file;
  } catch {
    if (file) await forgetDamaged(file);
  }
  return null;
}

/** Closes and forgets a kept file, and what is noted of it. */
export async function forgetDamaged(file) {
  file.close();
  console.warn(`${file.name} was kept in this browser and is damaged; it is fetched again`);
  try {
    const place = await folder();
    await place.removeEntry(file.name);
    await place.removeEntry(`${file.name}${WARM}`);
  } catch {
    // another tab reads it, or nothing was noted
  }
}

/** Whether something is kept under this name. */
export async function keeps(name) {
  try {
    return Boolean(await (await folder()).getFileHandle(name));
  } catch {
    return false;
  }
}

/** Keeps bytes that are known to be right; false if this browser does not, or another tab is at it. */
export const keep = (name, bytes) => write(name, [bytes, new Seal(bytes.length).add(bytes).end()]);

/** Keeps nothing but a name. */
export const note = (name) => write(name, []);

async function write(name, parts) {
  try {
    const handle = await (await folder()).getFileHandle(name, { create: true });
    const access = await handle.createSyncAccessHandle();
    try {
      access.truncate(0);
      for (const part of parts) access.write(part); // each behind the one before
      access.flush();
    } finally {
      access.close();
    }
    return true;
  } catch {
    return false;
  }
}

/** Forgets everything that is kept, but what has one of these names. */
export async function forget(...names) {
  const place = await folder();
  for await (const name of place.keys()) if (!names.includes(name)) await place.removeEntry(name);
}
