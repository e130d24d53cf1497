// A file is used only if it is, byte for byte, the one that the build wrote into the manifest.

/** A file that is not the published one; `code` is "integrity". `replaced`: the browser has a whole one by now. */
export class IntegrityError extends Error {
  code = "integrity";

  constructor(name, url, found, replaced = false) {
    const changed = "if this stays so, the server’s copy is damaged, or a proxy or CDN changes files on their way";
    const advice = replaced ? `The browser has fetched it again; ${changed}` : `Try again; ${changed}`;
    super(`${name} from ${url} is not the file that was published: ${found}. ${advice}.`);
    this.replaced = replaced;
  }
}

/** The SHA-256 of bytes, as the manifest writes it. */
export async function sha256Of(bytes) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * What a request needs so that the browser itself checks the answer, of which no byte is seen before the last has come
 * then. A request whose answer is damaged fails as one does that is not answered.
 */
export function browsersOwnCheck({ sha256 }) {
  const bytes = sha256.match(/../g).map((pair) => parseInt(pair, 16));
  return { integrity: `sha256-${btoa(String.fromCharCode(...bytes))}` };
}

/** Whether hashes can be computed here: not in pages that came over plain http from another machine. */
export const canHash = Boolean(globalThis.crypto?.subtle);

/** What is wrong with the bytes of a file, whose row in the manifest this is; "" if nothing is. */
export async function complaintOf(bytes, { bytes: length, sha256 }) {
  if (bytes.length !== length && isPage(bytes)) return "it is a web page: the server answers missing files with one, or a network asks to sign in";
  if (bytes.length !== length) return `it has ${bytes.length} bytes instead of ${length}`;
  if (!canHash) return ""; // the browser has checked them
  const found = await sha256Of(bytes);
  return found === sha256 ? "" : `its SHA-256 is ${found} instead of ${sha256}`;
}

const isPage = (bytes) => /^\s*<(!doctype html|html|head)\b/i.test(new TextDecoder().decode(bytes.subarray(0, 64)));

/** The answer to a request for a file; null for one of which the browser has found that it is damaged. */
export async function ask(fetch, url, row, options) {
  if (canHash) return answered(fetch, url, options);
  try {
    return await answered(fetch, url, { ...options, ...browsersOwnCheck(row) });
  } catch (error) {
    const asked = answered(fetch, url, { ...options, cache: "no-store", method: "HEAD" }); // is it the network?
    return asked.then(() => null, () => Promise.reject(error));
  }
}

/** The bytes of a response, not many more than `most`; `tell` hears how many have come each time. */
export async function bytesOf({ body }, most, tell) {
  const bytes = new Uint8Array(most);
  const reader = body.getReader();
  for (let at = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return bytes.subarray(0, at);
    tell(value.length);
    if (at + value.length > most) {
      reader.cancel();
      return new Uint8Array(at + value.length);
    }
    bytes.set(value, at);
    at += value.length;
  }
}

/** Whether the browser finds a file whole that it loads by itself, which it finds out faster than anybody who is handed the bytes. */
export const vouched = (fetch, row, options) => fetch(row.url, { ...browsersOwnCheck(row), ...options }).then(({ ok }) => ok, () => false);

async function answered(fetch, url, options) {
  const response = await fetch(url, options);
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  return response;
}
