// How large a picture is, read from the first bytes of its file: to decode it only to see that costs seconds and gigabytes.

const HEAD_BYTES = 65_536;
const MAX_SEGMENTS = 2_000; // of a JPEG file before its size

const u16 = (view, at, little = false) => view.getUint16(at, little);
const text = (view, at, length) => String.fromCharCode(...new Uint8Array(view.buffer, at, Math.min(length, view.byteLength - at)));

const png = (view) => (text(view, 0, 8) === "\x89PNG\r\n\x1a\n" ? [view.getUint32(16), view.getUint32(20)] : null);

const gif = (view) => (text(view, 0, 4) === "GIF8" ? [u16(view, 6, true), u16(view, 8, true)] : null);

function bmp(view) {
  if (text(view, 0, 2) !== "BM") return null;
  const old = view.getUint32(14, true) === 12;
  return old ? [u16(view, 18, true), u16(view, 20, true)] : [view.getInt32(18, true), view.getInt32(22, true)].map(Math.abs);
}

function webp(view) {
  if (text(view, 0, 4) !== "RIFF" || text(view, 8, 4) !== "WEBP") return null;
  const kind = text(view, 12, 4);
  const three = (at) => u16(view, at, true) + 65_536 * view.getUint8(at + 2);
  if (kind === "VP8X") return [1 + three(24), 1 + three(27)];
  if (kind === "VP8 ") return [u16(view, 26, true) & 0x3fff, u16(view, 28, true) & 0x3fff];
  const bits = view.getUint32(21, true);
  return [1 + (bits & 0x3fff), 1 + ((bits >>> 14) & 0x3fff)];
}

/** The largest of the images inside: others are its tiles, its transparency or its thumbnail. */
function avif(view) {
  if (text(view, 4, 4) !== "ftyp") return null;
  const head = text(view, 0, view.byteLength);
  let largest = null;
  for (let at = head.indexOf("ispe"); at >= 0 && at + 16 <= head.length; at = head.indexOf("ispe", at + 4)) {
    const size = [view.getUint32(at + 8), view.getUint32(at + 12)];
    if (!largest || size[0] * size[1] > largest[0] * largest[1]) largest = size;
  }
  return largest;
}

/** JPEG has its size behind segments of any length. */
async function jpeg(file, view) {
  if (u16(view, 0) !== 0xffd8) return null;
  for (let at = 2, i = 0; i < MAX_SEGMENTS && at + 9 <= file.size; i += 1) {
    const segment = at + 9 <= view.byteLength ? new DataView(view.buffer, at, 9) : await viewOf(file, at, 9);
    const marker = segment.getUint8(1);
    if (segment.getUint8(0) !== 0xff) return null;
    if (marker === 0xff) at += 1; // fills up
    else if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)) return [u16(segment, 7), u16(segment, 5)];
    else at += 2 + (marker === 1 || (marker >= 0xd0 && marker <= 0xd8) ? 0 : u16(segment, 2));
  }
  return null;
}

const viewOf = async (file, begin, length) => new DataView(await file.slice(begin, begin + length).arrayBuffer());

/** {width, height} as the file declares them, before it is turned upright; null where that cannot be told. */
export async function declaredSize(file) {
  try {
    const view = await viewOf(file, 0, HEAD_BYTES);
    const size = png(view) ?? gif(view) ?? bmp(view) ?? webp(view) ?? avif(view) ?? (await jpeg(file, view));
    return size && { width: size[0], height: size[1] };
  } catch (error) {
    if (error instanceof RangeError) return null; // it ends within its head
    throw error;
  }
}
