// Video frames whose pixels lie in memory, brought to textures. To import such a frame, a browser uploads it by way of
// another of its parts; copied and written here it can be there in a fifth of the time. Where frames lie is nothing that
// a page is told: both ways are timed on the first frames of each kind, and the sooner one is taken.

import { TexturePool } from "./gpu_textures.js";

const PROBES = 3; // frames for each way, in turns: a browser may keep what it made of a frame that it has imported before
const KEPT = 6; // frames that are brought and not yet closed by their owner: more than a task has under way
const PACKED = { BGRA: "bgra8unorm", BGRX: "bgra8unorm", RGBA: "rgba8unorm", RGBX: "rgba8unorm" };

const isClosed = (frame) => frame.codedWidth === 0;

export class FrameStore {
  #device;
  #kinds = new Map(); // kind -> {imported, copied: ms of each probe, way: "", "external" or "memory", timing: a promise}
  #timed = new WeakSet(); // frames that were
  #brought = new Map(); // frame -> {texture, ready}
  #textures;
  #bytes = []; // buffers that are not being copied to

  /** `device` is one of gpu_device.js. */
  constructor(device) {
    this.#device = device;
    this.#textures = new TexturePool(device.gpu);
  }

  /** The texture of a frame that was brought, or undefined. */
  texture(frame) {
    const found = this.#brought.get(frame);
    return found?.ready ? found.texture : undefined;
  }

  /** Whether pixels of this can be copied, and mean without more what the frame shows. */
  #copyable(frame) {
    return frame.constructor?.name === "VideoFrame" && Boolean(frame.format) && !frame.rotation && !frame.flip;
  }

  /**
   * Brings a frame to a texture where that is the sooner way; what cannot be brought is left as it is.
   * `time(frame)` takes a frame through a pass, as it is or as its texture, until a result of it is read; where it is
   * null nothing can be timed yet. Frames wait while their kind is timed: what else runs would blur it.
   * The owner closes the frame when all that reads it has been submitted.
   */
  async bring(frame, time) {
    if (this.#device.software || !this.#copyable(frame)) return;
    const kind = this.#kind(frame);
    while (kind.timing) await kind.timing;
    if (!kind.way && time && !this.#timed.has(frame)) await (kind.timing = this.#probe(frame, kind, time).finally(() => (kind.timing = null)));
    if (kind.way === "memory") await this.#copied(frame);
  }

  #kind(frame) {
    const name = `${frame.format} ${frame.codedWidth}x${frame.codedHeight}`;
    if (!this.#kinds.has(name)) this.#kinds.set(name, { imported: [], copied: [], way: "", timing: null });
    return this.#kinds.get(name);
  }

  /** Times the way of which less is known, and chooses when enough is known of both. */
  async #probe(frame, kind, time) {
    this.#timed.add(frame);
    const { imported, copied } = kind;
    const begin = performance.now();
    const spent = () => performance.now() - begin;
    if (imported.length <= copied.length) {
      await time(frame).then(() => imported.push(spent()), () => imported.push(Infinity));
    } else {
      await this.#copied(frame);
      await time(frame).then(() => copied.push(spent()), () => copied.push(Infinity));
    }
    if (!kind.way && copied.length === PROBES) kind.way = Math.min(...copied) < Math.min(...imported) ? "memory" : "external";
  }

  async #copied(frame) {
    const before = this.#brought.get(frame);
    if (before) return before.coming;
    this.#sweep();
    const entry = { ready: false, texture: null };
    this.#brought.set(frame, entry);
    entry.coming = this.#copy(frame, entry);
    try {
      await entry.coming;
    } catch {
      this.#brought.delete(frame); // it goes as it is, and so do those that follow
      this.#kind(frame).way = "external";
    }
  }

  async #copy(frame, entry) {
    const format = PACKED[frame.format] ?? "rgba8unorm";
    const options = PACKED[frame.format] ? {} : { format: "RGBA", colorSpace: "srgb" };
    const { width, height } = frame.visibleRect;
    const size = frame.allocationSize(options);
    const spare = this.#bytes.pop();
    const bytes = spare?.length === size ? spare : new Uint8Array(size);
    const [{ offset, stride }] = await frame.copyTo(bytes, options);
    entry.texture = this.#textures.take(width, height, format);
    this.#device.gpu.queue.writeTexture({ texture: entry.texture }, bytes, { offset, bytesPerRow: stride }, [width, height]);
    this.#bytes.push(bytes);
    entry.ready = true;
  }

  /** Takes back the textures of frames that are closed; of too many others the oldest are forgotten: runs may read them. */
  #sweep() {
    for (const [frame, { texture, ready }] of [...this.#brought]) {
      if (!isClosed(frame) && this.#brought.size < KEPT) continue;
      this.#brought.delete(frame);
      if (ready && isClosed(frame)) this.#textures.give(texture);
    }
  }
}
