// A package's plan on a GPU: the recorded dispatches, one submit per inference. Device, programs and pictures are the
// engine's own files in web/static/.

import { PlayerError, formed, ofGpu, whole } from "./errors.js";
import { checkBindings, checkGpu } from "./checks.js";
import { part } from "./package_file.js";
import { SizedProgram, Sizes, regimeFor } from "./sizes.js";
import { tensorsOf } from "./tensors.js";
import { openDevice } from "../../static/gpu/gpu_device.js";
import { Pictures } from "../../static/gpu/gpu_picture.js";
import { Program } from "../../static/gpu/gpu_program.js";

const WISHES = JSON.stringify({ features: ["subgroups"], limits: [], ring: 3 });
const SOFTWARE = ["swiftshader", "llvmpipe", "lavapipe", "warp"];
const RESULT_ALIGNMENT = 16;
const KEPT = 2; // programs of a package with open sizes: each holds weights of its own
const [SHADERS, WEIGHTS] = ["webgpu/shaders", "weights"]; // sections

/** The browser's GPU; `software` tells whether a processor does its computing. */
export async function openGpu() {
  const device = await openDevice(WISHES, Program).catch((error) => Promise.reject(ofGpu(error)));
  const facts = JSON.parse(device.describe());
  device.named = ["vendor", "architecture", "device", "description"].map((key) => facts[key] ?? "").join(" ").toLowerCase();
  device.software = Boolean(facts.isFallbackAdapter) || SOFTWARE.some((word) => device.named.includes(word));
  device.able = new Set(facts.features);
  return device;
}

/** Unpacks what a plan needs while the browser still looks for its GPU: shaders first, they are waited for longest. */
export function foresee(file, header) {
  const plans = formed(() => header.webgpu.map(({ section }) => section));
  const unpacking = [...[SHADERS, ...plans].map((name) => file.json(name)), file.section(WEIGHTS)];
  for (const part of unpacking) part.catch(() => {}); // who uses it hears of it
}

/** The package's plan on a device. */
export async function openProgram(file, header, device, onProgress) {
  const row = formed(() => header.webgpu.filter((each) => fits(each, device)).at(-1));
  if (!row) throw new PlayerError("unavailable", "the package has no plan for this GPU");
  if (row.regimes) return new OpenGpu(file, header, device, formed(() => row.regimes.map(String)), onProgress).ready();
  const [plan, shaders] = await Promise.all([file.json(row.section), file.json(SHADERS)]);
  formed(() => checkGpu(plan, shaders, tensorsOf(header), device.gpu.limits.maxBufferSize));
  const made = formed(() => new GpuPlan(plan, header, device));
  await made.load(shaders, file.section(WEIGHTS), onProgress).catch((error) => {
    made.close();
    throw formed(() => ofGpu(error));
  });
  return made;
}

function fits({ features, adapters, named }, device) {
  const words = device.named.replace(/[(/]/g, " ").split(/\s+/);
  const known = adapters.length === 0 || words.some((word) => adapters.some((start) => word.startsWith(start)));
  return known && named.every((word) => words.includes(word)) && features.every((feature) => device.able.has(feature));
}

class GpuPlan {
  backend = "webgpu";
  threads = 1;
  starts = []; // of outputs in what a run brings back

  constructor(plan, header, device) {
    this.plan = plan;
    this.device = device;
    this.numbers = new Map(); // of shaders in the package -> of pipelines on the device
    const picture = header.task?.picture;
    this.pictures = picture ? new Pictures(device, JSON.stringify(picture.passes)) : null;
    for (const way of Object.keys(picture?.passes ?? {})) this.pictures.way(way); // its pipeline is made meanwhile
    this.uniforms = Uint8Array.from(plan.uniforms.match(/../g) ?? [], (pair) => parseInt(pair, 16));
    this.results = this.copies(plan.outputs);
  }

  /** JSON of what a run brings back; `rows` are [buffer, offset, bytes] of outputs, or null. */
  copies(rows) {
    let total = 0;
    const copies = [];
    rows.forEach((row, i) => {
      this.starts[i] = total;
      if (!row) return;
      copies.push([whole(row[0]), whole(row[1]), row[2], total]);
      total += Math.ceil(whole(row[2]) / RESULT_ALIGNMENT) * RESULT_ALIGNMENT;
    });
    return JSON.stringify({ copies, total });
  }

  /** Brings the program to these sizes of inputs; inputs and outputs as they are then. */
  async bind(sizes, rows) {
    const sized = this.sized;
    const found = sized.sizes.evaluate(sizes);
    const tensors = sized.sizes.tensors(rows, found);
    const uniforms = this.uniforms.slice();
    const { sizes: grown, steps, writes, results } = sized.changes(found, uniforms);
    await this.program.rebind(JSON.stringify({ sizes: grown, steps }), uniforms);
    for (const [buffer, bytes] of writes) this.program.write(buffer, bytes);
    this.reads = this.program.reading(this.copies(results.map(([buffer, offset], i) => (tensors.outputs[i].nbytes ? [buffer, offset, tensors.outputs[i].nbytes] : null))));
    return tensors;
  }

  get lost() {
    return this.device.lost;
  }

  /** `weights`: a promise of the section's bytes, which are unpacked while the browser compiles shaders. */
  async load(shaders, weights, onProgress) {
    const { plan, device } = this;
    const late = this.startPipelines(shaders, plan.dispatches.slice(plan.prepare)); // first: they compile longest
    const early = this.startPipelines(shaders, plan.dispatches.slice(0, plan.prepare));
    const dispatches = plan.dispatches.map(([label, number, bindings, groups]) => ({
      label, pipeline: this.numbers.get(number), bindings, groups,
    }));
    this.program = await device.createProgram(JSON.stringify({ label: "webinfer", buffers: plan.buffers, dispatches }), this.uniforms);
    this.reads = this.program.reading(this.results);
    const found = await weights;
    for (const [buffer, at, nbytes] of plan.writes) this.program.write(buffer, part(found, at, nbytes));
    onProgress({ stage: "shaders", done: 0, total: this.numbers.size });
    await Promise.all([device.pipelinesReady(late), this.prepare(early), this.program.room(this.reads)]);
    onProgress({ stage: "shaders", done: this.numbers.size, total: this.numbers.size });
  }

  /** Has the browser make what is not made yet of the dispatches' pipelines; JSON of all their numbers. */
  startPipelines(shaders, dispatches) {
    const used = [...new Set(dispatches.map((dispatch) => dispatch[1]))];
    const missing = used.filter((number) => !this.numbers.has(number));
    const first = this.device.startPipelines(missing.map((number) => shaders[number]));
    missing.forEach((number, i) => this.numbers.set(number, first + i));
    return JSON.stringify(used.map((number) => this.numbers.get(number)));
  }

  /** Runs what runs once, as soon as its own pipelines are there. */
  async prepare(pipelines) {
    const { plan, program } = this;
    await this.device.pipelinesReady(pipelines);
    if (plan.prepare) await this.replay(0, plan.prepare, program.reading(JSON.stringify({ copies: [], total: 0 })));
    program.free(JSON.stringify(plan.freed), plan.prepare);
  }

  /** `take` gets the bytes of results, which are valid during the call only. */
  async replay(first, count, reads, given = () => [], take) {
    const { program } = this;
    for (let room; (room = program.room(reads)) !== undefined; ) await room;
    return new Promise((resolve, reject) => {
      const arrived = (ticket, bytes, kind, message) => {
        if (bytes === undefined) reject(this.device.failure(kind, message));
        else resolve(take?.(bytes));
      };
      program.start(first, count, reads, 0, arrived, ...given());
    });
  }

  /** As Kernels.run of kernels.js; {source, params} is a picture that goes to the GPU as it is. */
  async run(given, outputs) {
    const { plan } = this;
    const pictures = [];
    for (const { source } of given) if (source) await this.pictures.bring(source);
    const fill = () => given.flatMap((value, i) => {
      if (!value.source) return [plan.inputs[i], value];
      const { ow, oh } = value.place;
      const picture = this.pictures.take(value.source, value.params, 12 * ow * oh, Math.ceil(ow / 8), Math.ceil(oh / 8));
      pictures.push(picture);
      return [plan.inputs[i], picture];
    });
    const take = (bytes) => outputs.forEach((room, i) => room.set(bytes.subarray(this.starts[i], this.starts[i] + room.length)));
    try {
      await this.replay(plan.prepare, plan.dispatches.length - plan.prepare, this.reads, fill, take);
    } catch (error) {
      throw ofGpu(error);
    } finally {
      for (const picture of pictures) picture.close();
    }
  }

  close() {
    this.program?.close();
  }
}

/** Programs for kinds of sizes, each made when its sizes come; the two used last are kept. */
class OpenGpu {
  backend = "webgpu";
  threads = 1;
  pictures = null;

  constructor(file, header, device, sections, onProgress) {
    Object.assign(this, { file, header, device, sections, onProgress, programs: new Map(), rows: tensorsOf(header) });
  }

  /** Itself, when it is known for which sizes there are programs. */
  async ready() {
    const plans = await Promise.all(this.sections.map((section) => this.file.json(section)));
    this.regimes = formed(() => plans.map((plan) => ({ plan, sizes: new Sizes(plan.open.sizes) })));
    return this;
  }

  get lost() {
    return this.device.lost;
  }

  /** As Kernels.bind of kernels.js. */
  async bind(sizes) {
    if (this.program && String(this.bound) === String(sizes)) return this.tensors;
    const regime = regimeFor(this.regimes, sizes, this.header.name);
    const program = this.programs.get(regime) ?? (await this.made(regime));
    this.programs.delete(regime);
    this.programs.set(regime, program);
    for (const [oldest, other] of this.programs) {
      if (this.programs.size <= KEPT) break;
      this.programs.delete(oldest);
      other.close();
    }
    this.bound = null;
    this.tensors = await program.bind(sizes, this.rows).catch((error) => Promise.reject(ofGpu(error)));
    [this.program, this.bound] = [program, [...sizes]];
    return this.tensors;
  }

  async made({ plan, sizes }) {
    const shaders = await this.file.json(SHADERS);
    const { limits } = this.device.gpu;
    formed(() => checkBindings(plan.open));
    const hint = formed(() => sizes.evaluate(plan.open.hint.map(whole)));
    const sized = formed(() => new SizedProgram(plan, this.rows, limits));
    formed(() => checkGpu(plan, shaders, sized.sizes.tensors(this.rows, hint), limits.maxBufferSize));
    const made = formed(() => new GpuPlan(plan, { task: null }, this.device));
    made.sized = sized;
    await made.load(shaders, this.file.section(WEIGHTS), this.onProgress).catch((error) => {
      made.close();
      throw formed(() => ofGpu(error));
    });
    return made;
  }

  run(given, outputs) {
    return this.program.run(given, outputs);
  }

  close() {
    for (const program of this.programs.values()) program.close();
    this.programs.clear();
  }
}
