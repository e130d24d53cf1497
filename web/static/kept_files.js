// Large files that the browser keeps unpacked in the origin's private file system: to inflate 15 MB again
// takes longer than to read them. Whoever cannot keep files downloads them again, and so does who finds one damaged.

const FOLDER = "webinfer";
const SEAL_BYTES = 16;
const PAGE = 65536; // bytes of WebAssembly memory
// The loop of `sealOf` over the blocks of 16 bytes from one address to another; the four sums lie at address 0. JavaScript
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
 * and crashes do to a file, several times as fast as SHA-256, which also withstands people.
 */
export function sealOf(bytes) {
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2);
  const last = words.length - 4;
  let [a, b, c, d] = [1, 2, 3, words.length];
  let i = 0;
  for (; i <= last; i += 4) { // four sums at once: each step of one needs the step before
    a = Math.imul(a ^ words[i], 0x9e3779b1);
    b = Math.imul(b ^ words[i + 1], 0x85ebca77);
    c = Math.imul(c ^ words[i + 2], 0xc2b2ae3d);
    d = Math.imul(d ^ words[i + 3], 0x27d4eb2f);
    a = (a << 13) | (a >>> 19); // or high bits would never reach the low ones
    b = (b << 13) | (b >>> 19);
    c = (c << 13) | (c >>> 19);
    d = (d << 13) | (d >>> 19);
  }
  return sealed([a, b, c, d], words.subarray(i));
}

/** The seal of these sums and of the last words, less than four. */
function sealed([a, b, c, d], words) {
  for (const word of words) a = Math.imul((a << 13) ^ (a >>> 19) ^ word, 0x9e3779b1);
  return new Uint8Array(Uint32Array.of(a, b, c, d).buffer);
}

/** Room for so many bytes, and what finds the seal of the first of them. */
function sealing(length) {
  const code = Uint8Array.from(SUMS.match(/[0-9a-f]{2}/g), (pair) => parseInt(pair, 16));
  if (!WebAssembly.validate(code)) return { bytes: new Uint8Array(length), sealOf };
  const memory = new WebAssembly.Memory({ initial: Math.ceil((length + SEAL_BYTES) / PAGE) });
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(code), { m: { m: memory } });
  const sums = new Uint32Array(memory.buffer, 0, 4);
  const find = (bytes) => {
    const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2);
    sums.set([1, 2, 3, words.length]);
    exports.f(bytes.byteOffset, bytes.byteOffset + (bytes.length & ~15));
    return sealed(sums, words.subarray(words.length & ~3));
  };
  return { bytes: new Uint8Array(memory.buffer, SEAL_BYTES, length), sealOf: find };
}

/** The bytes of a file of this length that are kept under this name, or null; if they are damaged, all is forgotten. */
export async function kept(name, length) {
  try {
    const handle = await (await folder()).getFileHandle(name);
    const room = sealing(length + SEAL_BYTES);
    const read = await readInto(room.bytes, handle);
    const [bytes, seal] = [room.bytes.subarray(0, length), room.bytes.subarray(length)];
    if (read === length + SEAL_BYTES && room.sealOf(bytes).every((byte, i) => byte === seal[i])) return bytes;
    console.warn(`${name} was kept in this browser and is damaged; it is fetched again`);
    await forget();
    return null;
  } catch {
    return null;
  }
}

/** How many bytes the file has; as many of them as there is room for are read. */
async function readInto(room, handle) {
  const access = await handle.createSyncAccessHandle({ mode: "read-only" }); // who knows no modes keeps other tabs out
  try {
    const size = access.getSize();
    return access.read(room) === room.length ? size : 0;
  } finally {
    access.close();
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
export const keep = (name, bytes) => write(name, [bytes, sealOf(bytes)]);

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
