// A `.webinfer` file: a header and sections, each checked against its SHA-256 when it is asked for.
// Its form is defined in web/python/webinfer/package/container.py.

import { PlayerError, formed, whole } from "./errors.js";
import { sha256Of } from "../../static/startup/integrity.js";

const MAGIC = "webinfer";
const VERSION = 1;
const HEAD = 48; // bytes before the header
const ALIGNMENT = 16;
const MAX_BYTES = 2 ** 31; // of all sections, unpacked

const canHash = Boolean(globalThis.crypto?.subtle); // not in pages over plain http from another machine

async function check(bytes, sha256, what) {
  if (canHash && (await sha256Of(bytes)) !== sha256) throw new PlayerError("integrity", `${what} is damaged; fetch it again`);
}

async function inflated(bytes, size) {
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate")).getReader();
  const whole = new Uint8Array(size);
  let at = 0;
  for (let part; !(part = await reader.read()).done; at += part.value.length) {
    if (at + part.value.length > size) throw new PlayerError("package", "a section is larger than its row says");
    whole.set(part.value, at);
  }
  if (at !== size) throw new PlayerError("package", "a section is smaller than its row says");
  return whole;
}

export class PackageFile {
  /** The package in these bytes, with its header read and checked. */
  static async open(bytes) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (bytes.length < HEAD || new TextDecoder().decode(bytes.subarray(0, 8)) !== MAGIC) {
      throw new PlayerError("package", `these ${bytes.length} bytes are not a webinfer package`);
    }
    const version = view.getUint32(8, true);
    if (version !== VERSION) throw new PlayerError("package", `this is a package of form ${version}; the player reads ${VERSION}`);
    const end = HEAD + view.getUint32(12, true);
    const text = bytes.subarray(HEAD, end);
    const sha256 = Array.from(bytes.subarray(16, HEAD), (byte) => byte.toString(16).padStart(2, "0")).join("");
    await check(text, sha256, "the package's header");
    return formed(() => new PackageFile(bytes, JSON.parse(new TextDecoder().decode(text)), Math.ceil(end / ALIGNMENT) * ALIGNMENT));
  }

  constructor(bytes, header, base) {
    this.header = header;
    this.bytes = bytes;
    this.base = base;
    this.opened = new Map(); // by the names of sections: promises of their bytes
    this.read = new Map(); // and of what those that are JSON hold
    let total = 0;
    for (const row of header.sections) total += whole(row[3]);
    if (total > MAX_BYTES) throw new PlayerError("package", `the package unpacks to ${total} bytes`);
  }

  /** The bytes of a section; a promise that all who ask share. */
  section(name) {
    if (!this.opened.has(name)) this.opened.set(name, this.unpacked(name));
    return this.opened.get(name);
  }

  async unpacked(name) {
    const row = this.header.sections.find((each) => each[0] === name);
    if (!row) throw new PlayerError("package", `the package has no section ${name}`);
    const [, at, stored, size, sha256] = row;
    const bytes = this.bytes.subarray(this.base + whole(at), this.base + at + whole(stored));
    if (bytes.length !== stored) throw new PlayerError("integrity", `the package ends within section ${name}; fetch it again`);
    await check(bytes, sha256, `section ${name} of the package`);
    if (stored === size) return bytes;
    return inflated(bytes, size).catch((error) => {
      throw error instanceof PlayerError ? error : new PlayerError("package", `section ${name} cannot be unpacked`, error);
    });
  }

  /** A section that holds JSON; a promise that all who ask share. */
  json(name) {
    if (!this.read.has(name)) {
      this.read.set(name, this.section(name).then((bytes) => formed(() => JSON.parse(new TextDecoder().decode(bytes)))));
    }
    return this.read.get(name);
  }
}

/** Some of a section's bytes. */
export function part(section, at, nbytes) {
  if (whole(at) + whole(nbytes) > section.length) throw new PlayerError("package", "the package uses bytes that it does not have");
  return section.subarray(at, at + nbytes);
}
