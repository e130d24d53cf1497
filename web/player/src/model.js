// A loaded package: runs on a GPU or on the processor, and goes on when the GPU is lost.

import { checkHeader } from "./checks.js";
import { PlayerError, formed, typed } from "./errors.js";
import { foresee, openGpu, openProgram } from "./gpu.js";
import { openKernels, whyOneThread } from "./kernels.js";
import { PackageFile } from "./package_file.js";
import { Place, isPicture, pixelsOf, sizeOf } from "./pictures.js";
import { DECODERS } from "./results.js";
import { shapesGiven } from "./sizes.js";
import { bytesOf, outputOf, tensorsOf } from "./tensors.js";

const BACKENDS = ["webgpu", "wasm"];
const MAX_LOSSES = 2; // of a GPU; then the processor takes over

export class Model {
  constructor(file, options) {
    const { header } = file;
    this.file = file;
    this.options = options;
    formed(() => {
      this.name = String(header.name);
      this.tensors = this.rows = tensorsOf(header);
      this.isOpen = [...this.rows.inputs, ...this.rows.outputs].some(({ open }) => open);
      this.states = header.states.map(([, input, output, initial]) => ({
        input, output, bytes: Uint8Array.from(initial.match(/../g) ?? [], (pair) => parseInt(pair, 16)),
      }));
      checkHeader(header, this.tensors, this.states);
      this.task = header.task?.name ?? "";
      this.facts = header.task;
      this.decoder = header.task && DECODERS[header.task.decode.kind];
    });
    const kept = new Set(this.states.flatMap(({ input, output }) => [input, output]));
    const open = (rows) => rows.filter(({ name }) => !kept.has(name)).map(({ name, dtype, shape }) => ({ name, dtype, shape }));
    this.inputs = open(this.tensors.inputs);
    this.outputs = open(this.tensors.outputs);
    this.losses = 0;
    this.choice = "";
    this.queue = Promise.resolve();
  }

  get backend() {
    return this.plan?.backend ?? "";
  }

  get threads() {
    return this.plan?.threads ?? 0;
  }

  /** Makes the model ready on the first backend that runs it. */
  async start(gpu) {
    const { header } = this.file;
    const asked = [this.options.backend].flat();
    const auto = asked[0] === "auto";
    const often = this.losses >= MAX_LOSSES;
    const wanted = often ? ["wasm"] : auto ? BACKENDS : asked;
    const order = wanted.filter((name) => header[name]);
    if (often && !order.length) {
      const found = `the GPU was lost ${this.losses} times, and package ${this.name} holds nothing for the processor`;
      throw new PlayerError("device-lost", `${found}; load it again, or compile it with --backend wasm,webgpu`);
    }
    const refused = auto ? [] : wanted.filter((name) => !header[name]).map((name) => `not ${name}: the package is not for it`);
    for (const name of order) {
      try {
        if (name === "webgpu") {
          const opening = gpu ?? openGpu();
          foresee(this.file, header);
          const device = await opening;
          if (auto && device.software && header.wasm) throw new PlayerError("unavailable", "the GPU is software");
          this.plan = await openProgram(this.file, header, device, this.options.onProgress);
          device.whenLost.then(() => this.plan?.device === device && this.options.onLost(device.lost));
        } else {
          this.plan = await openKernels(this.file, header, this.options.threads, this.options.starters);
        }
        this.parts ??= await this.openParts();
        const one = this.options.threads > 1 && this.plan.threads === 1 && name === "wasm";
        this.choice = [`${name}${auto || often ? "" : " was asked for"}`, ...refused, ...(one ? [`one thread: ${whyOneThread() || "none in the package"}`] : [])].join("; ");
        return this;
      } catch (error) {
        if (!(error instanceof PlayerError) || error.code !== "unavailable" || name === order.at(-1)) throw error;
        refused.push(`not ${name}: ${error.message}`);
      }
    }
    throw new PlayerError("unavailable", `package ${this.name} is not for ${wanted.join(", ")}`);
  }

  /** What the task needs besides this model: its code, where that is not part of the player, and models of its own by name. */
  async openParts() {
    if (!this.facts) return {};
    if (!this.decoder) {
      const { READERS } = await moreTasks();
      this.reader = Object.hasOwn(READERS, this.facts.decode.kind) ? READERS[this.facts.decode.kind] : null;
      if (!this.reader) throw new PlayerError("package", `this player does not know the task ${this.task}; take a newer one`);
    }
    const opened = formed(() => (this.facts.parts ?? []).map(async (name) => {
      const file = await PackageFile.open(await this.file.section(`parts/${name}`));
      return [name, await new Model(file, { ...this.options, backend: this.plan.backend, onLost() {} }).start(this.plan.device)];
    }));
    return Object.fromEntries(await Promise.all(opened));
  }

  /**
   * With a picture, on a package with a task: what is found in it; with a recording, on one that listens: what is heard.
   * With a typed array, or several by name: the outputs by name. `numbers` are the task's, such as {min_score: 0.5};
   * without a task {into: outputs of an earlier run}, whose memory is used again. Runs wait for each other.
   */
  run(given, numbers = {}) {
    return this.queued(() => this.runNow(given, numbers));
  }

  /**
   * What is found in the next frame of a film, which shows this time in milliseconds. Each thing has an `id`, the same from
   * frame to frame; landmarks are followed without their detector, and smooth unless `numbers` say {smooth: false}. Where
   * time goes back or the frames' size changes, all begins anew with this frame.
   */
  track(frame, timeMs = performance.now(), numbers = {}) {
    return this.queued(() => this.trackNow(frame, timeMs, numbers));
  }

  /** Forgets the things of the frame before; their ids are not given again. */
  reset() {
    return this.queued(() => this.film?.reset());
  }

  queued(work) {
    const run = this.queue.then(work).catch((error) => Promise.reject(typed(error, "kernel")));
    this.queue = run.catch(() => {});
    return run;
  }

  async ready() {
    if (!this.file) throw new PlayerError("closed", `package ${this.name} is closed; load it again`);
    if (this.plan.lost) await this.revive();
  }

  async trackNow(frame, timeMs, numbers) {
    await this.ready();
    if (!isPicture(frame)) throw new PlayerError("input", `${String(frame)} is not a frame of a film; give a picture`);
    if (!Number.isFinite(timeMs)) throw new PlayerError("input", `the frame's time is ${String(timeMs)}, needs milliseconds`);
    this.film ??= (await moreTasks()).filmOf(this);
    if (!this.film) throw new PlayerError("input", `package ${this.name} (${this.task || "no task"}) follows nothing through films; use run, or compile it again with this version`);
    return this.film.found(frame, timeMs, this.numbers(numbers));
  }

  async runNow(given, numbers) {
    await this.ready();
    if (this.reader?.takes(given)) return this.reader.found(this, given, this.numbers(numbers));
    if (!isPicture(given)) return this.outputsOf(await this.withTensors(given), numbers.into);
    const place = this.placeOf(given);
    const outputs = await this.outputsOf(await this.withPicture(given, place, this.numbers(numbers)));
    return formed(() => this.decoder(outputs, this.facts.decode, place, this.numbers(numbers)));
  }

  // ----- for the tasks of player_tasks.js

  /** A picture that is looked at more than once, in the form that is taken fastest; a video plays on meanwhile. */
  async taken(source) {
    if (this.backend === "wasm") return pixelsOf(source);
    return source.constructor.name === "HTMLVideoElement" && sizeOf(source) ? createImageBitmap(source) : source;
  }

  /** RGBA pixels of a picture. */
  pixels(source) {
    return pixelsOf(source);
  }

  /** The outputs for what `place` shows of a picture, beside other inputs by name. */
  async look(source, place, more = {}) {
    if (this.plan.lost) await this.revive();
    return this.outputsOf(await this.withPicture(source, place, more));
  }

  /** The outputs for inputs by name; open sizes are those of {data, shape}. */
  async infer(named) {
    if (this.plan.lost) await this.revive();
    return this.outputsOf(await this.withTensors(named));
  }

  /** An error of what was given. */
  refuse(message) {
    throw new PlayerError("input", message);
  }

  /** One inference: outputs by name, in the memory of those of `into`. */
  async outputsOf(values, into) {
    try {
      const rows = this.tensors.outputs;
      const bytes = rows.map((row) => bytesOf(into?.[row.name] ?? new Uint8Array(row.nbytes), row));
      await this.plan.run(values, bytes);
      const outputs = Object.fromEntries(rows.map((row, i) => [row.name, outputOf(bytes[i], row)]));
      for (const state of this.states) {
        const found = outputs[state.output]?.data;
        if (found && state.input) state.bytes = new Uint8Array(found.buffer, found.byteOffset, found.byteLength);
        delete outputs[state.output];
      }
      return outputs;
    } catch (error) {
      if (error.code === "kernel") this.plan = { lost: error.message, backend: "wasm", close: () => this.plan.close?.() };
      throw error;
    }
  }

  async revive() {
    const { lost, backend } = this.plan;
    if (backend === "webgpu") this.losses++;
    this.plan.close();
    await this.start();
    this.choice += `; rebuilt, because ${backend} was lost (${lost})`;
  }

  /** How a picture, or a region {x, y, width, height, rotation} of it, lies in the model's input. */
  placeOf(source, region) {
    const picture = this.facts?.picture;
    if (!picture) {
      throw new PlayerError("input", `package ${this.name} has no task that takes pictures; give tensors, or compile it with --task`);
    }
    return formed(() => new Place(sizeOf(source), picture, region));
  }

  async withPicture(source, place, named) {
    const { constants, picture } = this.facts;
    const values = this.fed({ ...constants, ...named }, picture.input);
    const row = this.tensors.inputs.findIndex(({ name }) => name === picture.input);
    values[row] = await this.pictureBytes(source, place, this.tensors.inputs[row]);
    return values;
  }

  /** The task's numbers, with those that were given in place of its own; each is a list. */
  numbers(given) {
    const own = { ...this.facts.numbers };
    for (const [name, value] of Object.entries(given)) {
      if (!Object.hasOwn(own, name)) throw new PlayerError("input", `${this.task} has no number ${name}; it has ${Object.keys(own).join(", ") || "none"}`);
      own[name] = [value].flat();
    }
    return own;
  }

  /** What the plan takes for a picture: the picture itself on a GPU, pixels in kernels' memory, or prepared numbers. */
  async pictureBytes(source, place, row) {
    if (this.plan.backend === "wasm") return { pixels: pixelsOf(source), place };
    const complaint = this.plan.pictures.look(source);
    if (complaint === "") return { source, place, params: place.params() };
    if (!this.file.header.wasm) {
      const found = `this GPU cannot take the picture (${complaint}), and package ${this.name} holds no kernels to prepare it`;
      throw new PlayerError("unavailable", `${found}; give tensors, or compile it with --backend wasm,webgpu`);
    }
    this.preparing ??= openKernels(this.file, this.file.header, 1);
    const kernels = await this.preparing;
    const to = Math.ceil((kernels.plan.top + 16) / 16) * 16;
    const pixels = pixelsOf(source);
    kernels.scratch(pixels.data.length + row.nbytes + 64);
    kernels.plan = { ...kernels.plan, top: to + row.nbytes }; // pixels come behind the tensor
    kernels.preparePixels(pixels, place, to);
    return kernels.bytes(to, row.nbytes).slice();
  }

  async withTensors(given) {
    const alone = ArrayBuffer.isView(given) || given instanceof ArrayBuffer || (ArrayBuffer.isView(given?.data) && Array.isArray(given.shape));
    const named = alone ? { [this.inputs[0]?.name]: given } : (given ?? {});
    const known = new Set(this.inputs.map(({ name }) => name));
    for (const name of Object.keys(named)) {
      if (!known.has(name)) throw new PlayerError("input", `${this.name} has no input ${name}; it has ${[...known].join(", ")}`);
    }
    if (this.isOpen) {
      const shapes = shapesGiven(this.rows.inputs, named);
      this.tensors = await this.plan.bind(this.rows.inputs.flatMap(({ name }) => shapes.get(name)));
    }
    const { constants, numbers } = this.facts ?? {};
    return this.fed({ ...constants, ...numbers, ...named });
  }

  /** The bytes of each input but the one that a picture is for. */
  fed(named, picture) {
    const kept = new Map(this.states.map(({ input, bytes }) => [input, bytes]));
    return this.tensors.inputs.map((row) => {
      if (kept.has(row.name)) return kept.get(row.name).length ? kept.get(row.name) : new Uint8Array(row.nbytes);
      return row.name === picture ? null : bytesOf(named[row.name], row);
    });
  }

  /** Frees memory, threads and buffers; a second call does nothing. */
  close() {
    for (const part of Object.values(this.parts ?? {})) part.close();
    this.plan?.close();
    this.preparing?.then((kernels) => kernels.close(), () => {});
    this.plan?.device?.close();
    this.file = null;
  }
}

/** The player's other script; an error where it is not beside this one. */
const moreTasks = () => import("./player_tasks.js").catch((error) => {
  throw new PlayerError("unavailable", `player_tasks.js, which this package's task needs, is not beside the player: ${error.message}`, error);
});
