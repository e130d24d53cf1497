// Masks that stay on the GPU: a picture goes through a model, and is painted as the mask says, in one submit. Nothing is
// read back, and Python is only asked when pictures have another size or are painted otherwise (tasks/gpu_mask.py).

const AHEAD = 2; // frames that the GPU may have before it; more would be seen late

export class MaskPainter {
  /**
   * `pictures` is one of gpu_picture.js, `program` one of gpu_program.js. `recipe`: JSON {first, count, input, nbytes,
   * mask: {buffer, offset, size}, small, passes: {texture, external: {small, paint}, blur}}: the dispatches that make
   * the mask of a picture of `nbytes` bytes in the buffer `input`, the most bytes of the small picture, and numbers of
   * pipelines. `sized(width, height, look)` tells JSON {groups: {picture, small, paint}, blurred} and the bytes of the
   * uniforms of the passes picture, small and paint.
   */
  constructor(pictures, program, recipe, sized) {
    Object.assign(this, { pictures, program, sized, ...JSON.parse(recipe) });
    this.canvas = null;
    this.key = "";
    this.uniforms = [];
    this.blurs = [];
    this.waiting = []; // for frames that the GPU has not finished
    this.ms = 0; // from the beginning of a frame until it was painted, of the last one
    this.proven = false;
  }

  /** Prepares for pictures of a size, painted as the JSON `look` says. */
  fit(width, height, look) {
    const key = `${width} ${height} ${look}`;
    if (key === this.key) return;
    const { gpu } = this.program.device;
    const [numbers, ...uniforms] = this.sized(width, height, look);
    Object.assign(this, JSON.parse(numbers));
    this.taken = uniforms.shift();
    uniforms.forEach((bytes, i) => {
      this.uniforms[i] ??= gpu.createBuffer({ size: bytes.length, usage: GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST });
      gpu.queue.writeBuffer(this.uniforms[i], 0, bytes);
    });
    if (!this.blurs.length) this.blurs = [0, 1].map(() => gpu.createBuffer({ size: this.small, usage: GPUBufferUsage.STORAGE }));
    this.canvas ??= new OffscreenCanvas(width, height);
    Object.assign(this.canvas, { width, height });
    this.context = this.canvas.getContext("webgpu");
    const usage = GPUTextureUsage.STORAGE_BINDING | GPUTextureUsage.COPY_SRC | GPUTextureUsage.RENDER_ATTACHMENT | GPUTextureUsage.TEXTURE_BINDING;
    this.context.configure({ device: gpu, format: "rgba8unorm", usage, alphaMode: "premultiplied" });
    this.key = key;
  }

  pass(encoder, number, resources, groups) {
    const { device } = this.program;
    const { layout, pipeline } = device.pipelines[number];
    const entries = resources.map((resource, binding) => ({ binding, resource }));
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, device.gpu.createBindGroup({ layout, entries }));
    pass.dispatchWorkgroups(...groups);
    pass.end();
  }

  /** The painted picture, in one submit; null where the browser does not read the picture after all. */
  submit(source) {
    const { pictures, program, passes, mask, groups, uniforms, blurs } = this;
    let picture;
    try {
      picture = pictures.take(source, this.taken, this.nbytes, ...groups.picture);
    } catch {
      return null; // `look` says why from now on
    }
    try {
      const encoder = program.device.gpu.createCommandEncoder();
      picture.encode(encoder, program.buffers[this.input]);
      program.encode(encoder, this.first, this.count);
      const way = passes[picture.name];
      const [small, blurred] = blurs.map((buffer) => ({ buffer }));
      const [smallSize, look] = uniforms.map((buffer) => ({ buffer }));
      if (this.blurred) {
        this.pass(encoder, way.small, [small, smallSize, picture.resource], groups.small);
        this.pass(encoder, passes.blur, [small, blurred, smallSize], groups.small);
      }
      const found = { buffer: program.buffers[mask.buffer], offset: mask.offset, size: mask.size };
      const onto = this.context.getCurrentTexture().createView();
      this.pass(encoder, way.paint, [found, blurred, look, picture.resource, onto], groups.paint);
      program.device.gpu.queue.submit([encoder.finish()]);
    } finally {
      picture.close();
    }
    return this.canvas.transferToImageBitmap();
  }

  /**
   * The picture, painted as the JSON `look` says, as an ImageBitmap; null where it cannot be taken to the GPU (yet).
   * It is not waited for: the bitmap may be drawn at once. Throws where the device is lost, or refuses.
   */
  async paint(source, look) {
    const { device } = this.program;
    const begin = performance.now();
    if (this.waiting.length >= AHEAD) await device.unlessLost(this.waiting.shift());
    device.check();
    await this.pictures.bring(source);
    if (this.pictures.look(source)) return null;
    this.fit(this.pictures.width, this.pictures.height, look);
    const bitmap = this.proven ? this.submit(source) : await device.scoped(() => this.submit(source));
    if (!bitmap) return null;
    const done = device.gpu.queue.onSubmittedWorkDone().then(() => { this.ms = performance.now() - begin; });
    done.catch(() => {}); // `check` tells
    if (this.proven) this.waiting.push(done);
    else await device.unlessLost(done);
    this.proven = true;
    device.raiseUncaptured();
    return bitmap;
  }

  close() {
    for (const buffer of [...this.uniforms, ...this.blurs]) buffer.destroy();
    this.context?.unconfigure();
    this.sized.destroy?.();
  }
}
