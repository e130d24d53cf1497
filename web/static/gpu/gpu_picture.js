// Pictures straight into a model's input: a browser's picture becomes a texture, a pass samples it into the buffer.
// What the pass computes is Python's business (tasks/gpu_image.py).

import { FrameStore } from "./gpu_frames.js";
import { withBytes } from "./gpu_inputs.js";
import { TexturePool } from "./gpu_textures.js";
import { settled } from "./gpu_wait.js";

const FILMS = ["VideoFrame", "HTMLVideoElement"];
const STILLS = ["ImageBitmap", "HTMLImageElement", "HTMLCanvasElement", "OffscreenCanvas"];

const READ = 12; // bytes of a result that is only timed: those of a pixel

let framesLost = false; // a device was lost after frames were imported: later ones get none

/**
 * The way of a picture onto the GPU: "external" without a copy, "texture" with one; undefined if there is none.
 * Pixels that lie in memory have none: there the part that a model sees is cut out sooner than all are uploaded.
 */
function wayOf(kind) {
  if (FILMS.includes(kind)) return "external";
  return STILLS.includes(kind) ? "texture" : undefined;
}

function sizeOf(source) {
  const width = source.displayWidth ?? source.videoWidth ?? source.naturalWidth ?? source.width;
  return [width, source.displayHeight ?? source.videoHeight ?? source.naturalHeight ?? source.height];
}

export class Pictures {
  /** `device` is one of gpu_device.js; `specs`: JSON {way: {label, code, bindings: ["write", "uniform", way]}}. */
  constructor(device, specs) {
    this.device = device;
    this.specs = JSON.parse(specs);
    this.ways = new Map(); // way -> {pipeline, layout, refusal}
    this.textures = new TexturePool(device.gpu);
    this.uniform = null;
    this.watched = false; // whether frames were imported
    this.refused = new Map(); // class -> why the browser did not read one
    this.frames = device.frames ??= new FrameStore(device);
    this.last = null; // what the last picture was taken with
  }

  /** Brings a video frame to a texture where that is sooner there than an import: to be awaited before `look`. */
  async bring(source) {
    const ready = this.last && ["external", "texture"].every((name) => !this.way(name).refusal);
    await this.frames.bring(source, ready ? (frame) => this.timed(frame) : null);
  }

  /** Takes a frame through the pass of the last picture, until something of the result is read. */
  async timed(frame) {
    const { gpu } = this.device;
    const { bytes, size, groups } = this.last;
    const { COPY_DST, COPY_SRC, MAP_READ, STORAGE } = GPUBufferUsage;
    const [made, read] = [[size, STORAGE | COPY_SRC], [READ, COPY_DST | MAP_READ]].map(([size, usage]) => gpu.createBuffer({ size, usage }));
    const picture = this.open(frame, bytes, size, groups);
    try {
      const encoder = gpu.createCommandEncoder();
      picture.encode(encoder, made);
      encoder.copyBufferToBuffer(made, 0, read, 0, READ);
      gpu.queue.submit([encoder.finish()]);
      await settled(gpu.queue, read.mapAsync(GPUMapMode.READ));
    } finally {
      picture.close();
      for (const buffer of [made, read]) buffer.destroy();
    }
  }

  /** What this way's pipeline is, and why it cannot be used (yet). */
  way(name) {
    if (!this.ways.has(name)) {
      const way = { refusal: "its pipeline is being made" };
      this.ways.set(name, way);
      this.device.createPipelines(JSON.stringify([this.specs[name]])).then(
        (number) => Object.assign(way, this.device.pipelines[number], { refusal: "" }),
        (error) => (way.refusal = error.message),
      );
    }
    return this.ways.get(name);
  }

  /** The texture that a video frame was brought to, if it was, and the way of a picture. */
  route(source) {
    const brought = this.frames.texture(source);
    return { brought, name: brought ? "texture" : wayOf(source.constructor?.name) };
  }

  /** "" and the picture's `width` and `height` if `take` can take it, else why not. */
  look(source) {
    const kind = source.constructor?.name;
    const { brought, name } = this.route(source);
    if (!name) return `no texture is made of a ${kind}`;
    if (this.refused.has(kind) && !brought) return this.refused.get(kind);
    if (name === "external" && framesLost) return "a device was lost that imported video frames";
    if (name === "texture" && this.device.software) return "the adapter is software, where a texture costs more than memory";
    [this.width, this.height] = sizeOf(source);
    const most = this.device.gpu.limits.maxTextureDimension2D;
    if (!(Math.min(this.width, this.height) >= 1 && Math.max(this.width, this.height) <= most)) {
      return `${this.width}x${this.height} pixels make no texture`;
    }
    return this.way(name).refusal;
  }

  /**
   * A picture that `look` found good, as what Program.take takes: `size` bytes, `encode`, `close`. `params`: bytes of
   * the pass's uniform; `groups`: its workgroups in x and y. Throws where the browser does not read
   * the picture; others of its class are not tried then.
   */
  take(source, params, size, x, y) {
    let bytes;
    withBytes(params, (view) => (bytes = view.slice()));
    this.last = { bytes, size, groups: [x, y] };
    try {
      return this.open(source, bytes, size, [x, y]);
    } catch (error) {
      const kind = source.constructor?.name;
      this.refused.set(kind, `${kind}: ${error.message}`);
      throw error;
    }
  }

  /** As `take`, with what it has made of its arguments. */
  open(source, bytes, size, groups) {
    const { brought, name } = this.route(source);
    const picture = brought ? { resource: brought.createView(), close() {} } : name === "external" ? this.import(source) : this.copy(source);
    return { maker: this, name, size, way: this.way(name), bytes, groups, ...picture, encode: this.encode };
  }

  import(source) {
    const frame = source instanceof VideoFrame ? source : new VideoFrame(source);
    const close = () => frame !== source && frame.close();
    try {
      const resource = this.device.gpu.importExternalTexture({ source: frame });
      if (!this.watched) this.device.whenLost.then(() => (framesLost = true));
      this.watched = true;
      return { resource, close };
    } catch (error) {
      close();
      throw error;
    }
  }

  copy(source) {
    const { gpu } = this.device;
    const [width, height] = sizeOf(source);
    const texture = this.textures.take(width, height, "rgba8unorm");
    try {
      gpu.queue.copyExternalImageToTexture({ source }, { texture }, [width, height]);
    } catch (error) {
      texture.destroy();
      throw error;
    }
    let open = true;
    const close = () => {
      if (open) this.textures.give(texture);
      open = false;
    };
    return { resource: texture.createView(), close };
  }

  /** Adds the pass that fills `buffer`; called as a method of a taken picture, right before its submit. */
  encode(encoder, buffer) {
    const { maker, way, bytes, resource, groups, size } = this;
    const { gpu } = maker.device;
    maker.uniform ??= gpu.createBuffer({ size: bytes.length, usage: GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST });
    gpu.queue.writeBuffer(maker.uniform, 0, bytes);
    const resources = [{ buffer, size }, { buffer: maker.uniform }, resource];
    const entries = resources.map((each, binding) => ({ binding, resource: each }));
    const pass = encoder.beginComputePass();
    pass.setPipeline(way.pipeline);
    pass.setBindGroup(0, gpu.createBindGroup({ layout: way.layout, entries }));
    pass.dispatchWorkgroups(...groups);
    pass.end();
  }
}
