// Pictures of a page as a model's input: which part is seen, and the pixels where they must pass through memory.

import { PlayerError } from "./errors.js";

const MAX_PIXELS = 100_000_000;
const KINDS = ["ImageData", "ImageBitmap", "VideoFrame", "HTMLVideoElement", "HTMLImageElement", "HTMLCanvasElement", "OffscreenCanvas"];
let canvas = null;

/** Whether a value is a picture. */
export function isPicture(value) {
  return KINDS.includes(value?.constructor?.name);
}

/** Width and height in pixels; an error for a picture without any, such as an image that is not loaded. */
export function sizeOf(source) {
  const width = source.displayWidth ?? source.videoWidth ?? source.naturalWidth ?? source.width;
  const height = source.displayHeight ?? source.videoHeight ?? source.naturalHeight ?? source.height;
  if (!(width >= 1 && height >= 1)) {
    throw new PlayerError("input", `the ${source.constructor.name} is ${width}x${height} pixels; wait until it is loaded`);
  }
  if (width * height > MAX_PIXELS) throw new PlayerError("input", `${width}x${height} pixels are too many; scale the picture down`);
  return [width, height];
}

/** RGBA pixels of a picture. */
export function pixelsOf(source) {
  if (source.constructor.name === "ImageData") return source;
  const [width, height] = sizeOf(source);
  canvas ??= globalThis.OffscreenCanvas ? new OffscreenCanvas(1, 1) : document.createElement("canvas");
  [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d", { willReadFrequently: true });
  try {
    context.drawImage(source, 0, 0, width, height);
    return context.getImageData(0, 0, width, height);
  } catch (error) {
    throw new PlayerError("input", `the ${source.constructor.name} cannot be read: ${error.message}`, error);
  }
}

/** How a region of a picture lies in a model's input, and the way back; as web/python/webinfer/tasks/crop.py says. */
export class Place {
  /** `region`: centre, size and turn (clockwise, radians); all of the picture where none is given. */
  constructor(size, { width: ow, height: oh, scale, offset, keep_aspect: keep, border, corners = false, sampling = 0 }, region) {
    const { x, y, width, height, rotation } = region ?? { x: size[0] / 2, y: size[1] / 2, width: size[0], height: size[1], rotation: 0 };
    const aspect = ow / oh;
    Object.assign(this, { ow, oh, scale, offset, border, sampling, size, x, y, cos: Math.cos(rotation), sin: Math.sin(rotation) });
    this.width = keep ? Math.max(width, height * aspect) : width;
    this.height = keep ? Math.max(height, width / aspect) : height;
    const [across, down] = [this.width / ow, this.height / oh];
    const first = corners ? 0 : 0.5;
    const [left, top] = this.toImage(first / ow, first / oh);
    this.matrix = [this.cos * across, -this.sin * down, left - first, this.sin * across, this.cos * down, top - first];
  }

  /** Pixels of the picture of a point given in 0..1 of the model's input. */
  toImage(x, y) {
    const [right, down] = [(x - 0.5) * this.width, (y - 0.5) * this.height];
    return [this.x + this.cos * right - this.sin * down, this.y + this.sin * right + this.cos * down];
  }

  /** The point in 0..1 of the model's input of a pixel of the picture. */
  fromImage(x, y) {
    const [right, down] = [x - this.x, y - this.y];
    return [(this.cos * right + this.sin * down) / this.width + 0.5, (this.cos * down - this.sin * right) / this.height + 0.5];
  }

  /** The bytes that the pass of gpu_picture.js takes; tasks/gpu_image.py names them. */
  params() {
    const { matrix, scale, offset, size, ow, oh } = this;
    const bytes = new ArrayBuffer(48);
    new Float32Array(bytes, 0, 10).set([...matrix, 255 * scale, offset, ...size]);
    new Uint32Array(bytes, 40, 2).set([ow, oh]);
    return new Uint8Array(bytes);
  }
}
