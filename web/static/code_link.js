// Code in the address of a page: compressed, behind "#code=". A server never sees it.

const MARK = "#code=";
const MOST_LINK = 8_000; // characters of the address that hold code
const MOST_CODE = 50_000; // bytes of code, whatever a link unpacks to

/** Whether this fragment of an address holds code. */
export const holdsCode = (hash) => hash.startsWith(MARK);

/** The fragment that carries this code. Throws an error that says what is wrong. */
export async function linked(code) {
  const bytes = await new Response(through(new TextEncoder().encode(code), new CompressionStream("deflate-raw"))).arrayBuffer();
  const text = btoa(Array.from(new Uint8Array(bytes), (byte) => String.fromCharCode(byte)).join(""));
  const hash = MARK + text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  if (hash.length > MOST_LINK) throw new Error(`This code is too long for a link: it would take ${hash.length} characters, at most ${MOST_LINK} fit.`);
  return hash;
}

/** The code that this fragment carries. Throws an error that says what is wrong. */
export async function unlinked(hash) {
  if (hash.length > MOST_LINK) throw new Error(`The link is too long: ${hash.length} characters where at most ${MOST_LINK} can be.`);
  try {
    const text = hash.slice(MARK.length);
    if (!/^[\w-]+$/.test(text)) throw new Error("it has characters that no such link has");
    const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0));
    const whole = await limited(through(bytes, new DecompressionStream("deflate-raw")));
    return new TextDecoder("utf-8", { fatal: true }).decode(whole);
  } catch (error) {
    if (error instanceof RangeError) throw new Error(`The link carries more than ${MOST_CODE} bytes of code.`);
    throw new Error("The link carries no code that can be read; perhaps a part of it is missing.");
  }
}

const through = (bytes, stream) => new Blob([bytes]).stream().pipeThrough(stream);

/** All bytes of a stream; a RangeError if they are too many. */
async function limited(stream) {
  const pieces = [];
  let count = 0;
  for (const reader = stream.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) return new Blob(pieces).arrayBuffer();
    pieces.push(value);
    count += value.length;
    if (count > MOST_CODE) {
      reader.cancel().catch(() => {});
      throw new RangeError();
    }
  }
}
