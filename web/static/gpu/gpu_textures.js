// Textures of pictures, used again by pictures of the same size.

export class TexturePool {
  #gpu;
  #spare = [];

  constructor(gpu) {
    this.#gpu = gpu;
  }

  /** A texture that passes can read and pictures be written to; those of another size or format are given up. */
  take(width, height, format) {
    const at = this.#spare.findIndex((t) => t.width === width && t.height === height && t.format === format);
    if (at >= 0) return this.#spare.splice(at, 1)[0];
    for (const other of this.#spare.splice(0)) other.destroy();
    const { COPY_DST, RENDER_ATTACHMENT, TEXTURE_BINDING } = GPUTextureUsage;
    return this.#gpu.createTexture({ size: [width, height], format, usage: COPY_DST | RENDER_ATTACHMENT | TEXTURE_BINDING });
  }

  /** Takes a texture back that no submit to come reads: a later copy into it comes behind what was submitted. */
  give(texture) {
    this.#spare.push(texture);
  }
}
