// Pictures from files.

import { CodedError } from "../engine/coded_error.js";
import { declaredSize } from "./picture_head.js";

const MAX_SIDE = 4096; // pixels; more would only cost memory, no model looks that closely
const HEIC = /hei[cf]/i; // what phones of Apple's save, in types and names
const MAX_PIXELS = 100e6; // of a file: to decode them takes four times as many bytes

/** A file that cannot be shown; `code` is "bad-image" for what is not a picture, "limit" for what is too large. */
export class PictureError extends CodedError {
  constructor(message, code = "bad-image") {
    super(code, message);
  }
}

/** `image` (anything that createImageBitmap takes) as a bitmap of at most MAX_SIDE pixels a side. */
export async function bitmapOf(image) {
  const bitmap = await createImageBitmap(image);
  const scale = MAX_SIDE / Math.max(bitmap.width, bitmap.height);
  if (scale >= 1) return bitmap;
  const resizeWidth = Math.max(1, Math.round(bitmap.width * scale));
  const resizeHeight = Math.max(1, Math.round(bitmap.height * scale));
  try {
    return await createImageBitmap(bitmap, { resizeWidth, resizeHeight, resizeQuality: "medium" });
  } finally {
    bitmap.close();
  }
}

/** The picture in a file, turned upright as its EXIF data says; throws PictureError. */
export async function openPicture(file) {
  const name = file.name ? `“${file.name}”` : "This";
  const wanted = "Choose a JPEG, PNG, WebP, AVIF, GIF or BMP picture.";
  if (file.size === 0) throw new PictureError(`${name} is empty (0 bytes). ${wanted}`);
  await refuseEnormous(file, name);
  try {
    return await bitmapOf(file);
  } catch {
    const kind = file.type || "unknown type";
    const size = `${file.size.toLocaleString("en")} bytes`;
    const iphone = HEIC.test(file.type || file.name) ? "It is an HEIC photo, which few browsers read: save or send it as JPEG. " : "";
    throw new PictureError(`${name} (${kind}, ${size}) is not a picture that this browser can read. ${iphone}${wanted}`);
  }
}

/** Throws PictureError if the file's head says that the picture is too large to be decoded. */
async function refuseEnormous(file, name) {
  const size = await declaredSize(file).catch(() => null); // who cannot be read is refused with the reason below
  if (!size || size.width * size.height <= MAX_PIXELS) return;
  const [width, height, most] = [size.width, size.height, MAX_PIXELS / 1e6].map((value) => value.toLocaleString("en"));
  throw new PictureError(`${name} has ${width} × ${height} pixels; this page takes up to ${most} million. Make it smaller first.`, "limit");
}
