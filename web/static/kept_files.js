// Large files that the browser keeps unpacked in the origin's private file system: to inflate 15 MB again
// takes longer than to read them. Whoever cannot keep files downloads them again, and so does who finds one damaged.

const FOLDER = "webinfer";
const SEAL_BYTES = 16;

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
  for (; i < words.length; i += 1) a = Math.imul((a << 13) ^ (a >>> 19) ^ words[i], 0x9e3779b1);
  return new Uint8Array(Uint32Array.of(a, b, c, d).buffer);
}

/** The bytes of a file of this length that are kept under this name, or null; if they are damaged, all is forgotten. */
export async function kept(name, length) {
  try {
    const sealed = await readAll(await (await folder()).getFileHandle(name));
    const [bytes, seal] = [sealed.subarray(0, length), sealed.subarray(length)];
    if (seal.length === SEAL_BYTES && sealOf(bytes).every((byte, i) => byte === seal[i])) return bytes;
    console.warn(`${name} was kept in this browser and is damaged; it is fetched again`);
    await forget();
    return null;
  } catch {
    return null;
  }
}

async function readAll(handle) {
  const access = await handle.createSyncAccessHandle({ mode: "read-only" }); // who knows no modes keeps other tabs out
  try {
    const bytes = new Uint8Array(access.getSize());
    return bytes.subarray(0, access.read(bytes));
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

/** Forgets everything that is kept. */
export async function forget() {
  const place = await folder();
  for await (const name of place.keys()) await place.removeEntry(name);
}
