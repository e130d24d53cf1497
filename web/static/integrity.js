// A file is used only if it is, byte for byte, the one that the build wrote into the manifest.

/** A file that is not the published one; `code` is "integrity". `replaced`: the browser has a whole one by now. */
export class IntegrityError extends Error {
  code = "integrity";

  constructor(name, url, found, replaced = false) {
    const advice = replaced ? "The browser has fetched it again" : "Try again; if this stays so, the server's copy is damaged";
    super(`${name} from ${url} is not the file that was published: ${found}. ${advice}.`);
    this.replaced = replaced;
  }
}

/**
 * What a request needs so that the browser itself checks the answer, of which no byte is seen before the last has come
 * then: only for pages that may not use WebCrypto, because they came over plain http from another machine.
 */
export function browsersOwnCheck({ sha256 }) {
  if (globalThis.crypto.subtle) return {};
  const bytes = sha256.match(/../g).map((pair) => parseInt(pair, 16));
  return { integrity: `sha256-${btoa(String.fromCharCode(...bytes))}` };
}

/** What is wrong with the bytes of a file, whose row in the manifest this is; "" if nothing is. */
export async function complaintOf(bytes, { bytes: length, sha256 }) {
  if (bytes.length !== length) return `it has ${bytes.length} bytes instead of ${length}`;
  if (!globalThis.crypto.subtle) return ""; // see above
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const found = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return found === sha256 ? "" : `its SHA-256 is ${found} instead of ${sha256}`;
}
