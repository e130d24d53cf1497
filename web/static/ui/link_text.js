// Text in URLs: compressed, and encoded in characters that URLs do not escape.

const FORMAT = "deflate-raw";

/** The letters that carry a text. */
export async function packed(text) {
  const bytes = await new Response(through(text, new CompressionStream(FORMAT))).arrayBuffer();
  const letters = btoa(Array.from(new Uint8Array(bytes), (byte) => String.fromCharCode(byte)).join(""));
  return letters.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** The text that letters carry. Throws a RangeError if it has more than `most` bytes, another error if it cannot be read. */
export async function unpacked(letters, most) {
  if (!/^[\w-]+$/.test(letters)) throw new Error("there are letters that no packed text has");
  const bytes = Uint8Array.from(atob(letters.replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0));
  const whole = await limited(through(bytes, new DecompressionStream(FORMAT)), most);
  return new TextDecoder("utf-8", { fatal: true }).decode(whole);
}

const through = (content, stream) => new Blob([content]).stream().pipeThrough(stream);

/** All bytes of a stream; a RangeError if they are too many. */
async function limited(stream, most) {
  const pieces = [];
  let count = 0;
  for (const reader = stream.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) return new Blob(pieces).arrayBuffer();
    pieces.push(value);
    count += value.length;
    if (count > most) {
      reader.cancel().catch(() => {});
      throw new RangeError(`there are more than ${most} bytes`);
    }
  }
}
