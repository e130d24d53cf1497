// Large files that the browser keeps unpacked in the origin's private file system: to inflate 15 MB again
// takes longer than to read them. Whoever cannot keep files downloads them again.

const FOLDER = "webinfer";

async function folder() {
  const root = await navigator.storage.getDirectory();
  return root.getDirectoryHandle(FOLDER, { create: true });
}

/** The bytes that are kept under this name, or null. */
export async function kept(name) {
  try {
    const handle = await (await folder()).getFileHandle(name);
    const access = await handle.createSyncAccessHandle({ mode: "read-only" }); // who knows no modes keeps other tabs out
    try {
      const bytes = new Uint8Array(access.getSize());
      return access.read(bytes) === bytes.length ? bytes : null;
    } finally {
      access.close();
    }
  } catch {
    return null;
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
