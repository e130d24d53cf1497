// Pictures from files.

import { CodedError } from "../engine/coded_error.js";
import { declaredSize } from "./picture_head.js";

export const MAX_SIDE = 4096; // pixels; more would only cost memory, no model looks that closely
const HEIC = /hei[cf]/i; // what phones of Apple's save, in types and names
const VECTORS = /svg/i;
const VECTOR_SIDE = 1024; // pixels that a vector drawing becomes on its longer side, as tall as a page shows one
const MAX_PIXELS = 100e6; // of a file: to decode them takes four times as many bytes

/** A file that cannot be shown; `code` is "bad-image" for what is not a picture, "limit" for what is too large. */
export class PictureError extends CodedError {
  constructor(message, code = "bad-image") {
    super(code, message);
  }
}

/** `image` (anything that createImageBitmap takes) as a bitmap of at most MAX_SIDE pixels a side. */
export const bitmapOf = async (image) => shrunk(await createImageBitmap(image));

async function shrunk(bitmap) {
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

/** The drawing in an SVG file as a bitmap: only an <img> element reads those, and it runs none of their scripts. */
async function vectorBitmap(file) {
  const image = new Image();
  image.src = URL.createObjectURL(file);
  try {
    await image.decode();
    const [width, height] = [image.naturalWidth || VECTOR_SIDE, image.naturalHeight || VECTOR_SIDE]; // 0: it declares none
    const scale = VECTOR_SIDE / Math.max(width, height);
    const canvas = new OffscreenCanvas(Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale)));
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return canvas.transferToImageBitmap();
  } finally {
    URL.revokeObjectURL(image.src);
  }
}

/**
 * {bitmap, size}: the picture in a file, turned upright as its EXIF data says, and its width and height where the bitmap is
 * a smaller copy; throws PictureError.
 */
export async function openPicture(file) {
  const name = file.name ? `“${file.name}”` : "This";
  const wanted = "Choose a JPEG, PNG, WebP, AVIF, GIF, BMP or SVG picture.";
  if (file.size === 0) throw new PictureError(`${name} is empty (0 bytes). ${wanted}`);
  await refuseEnormous(file, name);
  try {
    const whole = await (VECTORS.test(file.type || file.name) ? vectorBitmap(file) : createImageBitmap(file));
    const { width, height } = whole;
    const bitmap = await shrunk(whole);
    return { bitmap, size: bitmap.width < width || bitmap.height < height ? { width, height } : null };
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
