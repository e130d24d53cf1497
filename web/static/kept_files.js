// Large files that the browser keeps unpacked in the origin's private file system: to inflate 15 MB again
// takes longer than to read them. Whoever cannot keep files downloads them again, and so does who finds one damaged.

import { complaintOf } from "./integrity.js";

const FOLDER = "webinfer";

async function folder() {
  const root = await navigator.storage.getDirectory();
  return root.getDirectoryHandle(FOLDER, { create: true });
}

/** The bytes of a file of this row of the manifest that are kept under this name, or null; if they are damaged, all is forgotten. */
export async function kept(name, row) {
  try {
    const bytes = await readAll(await (await folder()).getFileHandle(name));
    const wrong = await complaintOf(bytes, row);
    if (!wrong) return bytes;
    console.warn(`${name} was kept in this browser and is damaged, ${wrong}; it is fetched again`);
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

/** Keeps the bytes; false if this browser does not, or another tab is at it. */
export async function keep(name, bytes) {
  try {
    const handle = await (await folder()).getFileHandle(name, { create: true });
    const access = await handle.createSyncAccessHandle();
    try {
      access.truncate(0);
      access.write(bytes);
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
