// What a package's plans say, proved against the memory and the buffers that there are, before anything is written or run.
// The engine does the same in web/python/webinfer/package/proofs.py.

import { PlayerError, whole } from "./errors.js";

const [MAGIC, VERSION, HEAD_WORDS] = [1464422449, 3, 4]; // of a program, as web/python/webinfer/plan/kernel_constants.py has them
export const MAX_BYTES = 0xffff0000; // of a kernel instance's memory, MEMORY_MAX_BYTES of the engine
const MAX_GROUPS = 65535; // of a dispatch in each direction
const MAX_THREADS = 8;
const ALIGNMENT = 256; // of what a shader is given, in a buffer

function refuse(what) {
  throw new PlayerError("package", `the package breaks its form: ${what}`);
}

function list(value, length, what) {
  if (!Array.isArray(value) || (length !== undefined && value.length !== length)) refuse(`${what} is not a list${length === undefined ? "" : ` of ${length}`}`);
  return value;
}

/** The end of some bytes that lie whole from `least` up to `most`. */
function within(at, nbytes, [least, most], what) {
  if (whole(at) < least || whole(nbytes) > most - at) refuse(`${what} lies at ${at} with ${nbytes} bytes, outside of ${least} to ${most}`);
  return at + nbytes;
}

/** That no two of these [first byte, bytes] share a byte. */
function apart(spans, what) {
  const sorted = spans.filter(([, nbytes]) => nbytes).sort(([a], [b]) => a - b);
  for (let i = 1; i < sorted.length; i++) if (sorted[i - 1][0] + sorted[i - 1][1] > sorted[i][0]) refuse(`${what} share bytes`);
}

/** That inputs, outputs and weights are those that the plan was made for; plans of older packages do not say it. */
function fitting(plan, tensors, writes) {
  const made = plan.for;
  if (made === undefined) return;
  const weights = [-2, -1].map((place) => writes.reduce((sum, row) => sum + row.at(place), 0));
  if (String(made.weights) !== String(weights)) refuse(`its plan was made for other weights than the ${weights[1]} bytes that it takes`);
  for (const key of ["inputs", "outputs"]) {
    const own = tensors[key].map(({ name, dtype, shape }) => [name, dtype, shape]);
    if (JSON.stringify(made[key]) !== JSON.stringify(own)) refuse(`its plan was made for other ${key}: ${JSON.stringify(made[key])}, not ${JSON.stringify(own)}`);
  }
}

/** How many of these addresses programs name. */
function referenced(programs, addresses) {
  const view = new DataView(programs.buffer, programs.byteOffset, programs.length - (programs.length % 4));
  const words = new Set(Array.from({ length: view.byteLength / 4 }, (_, i) => view.getUint32(4 * i, true)));
  return addresses.filter((address) => words.has(address)).length;
}

// ----- kernels

/** The programs of a plan, [address, words of its header, bytes], by their writes. */
function programsOf(plan, bytes) {
  return plan.writes.filter(([, source]) => source === 1).map(([address, , at, nbytes]) => {
    const words = new DataView(bytes.buffer, bytes.byteOffset + at, nbytes);
    if (nbytes < 4 * HEAD_WORDS) refuse("a program without a head");
    const [magic, version, records, length] = [0, 4, 8, 12].map((place) => words.getUint32(place, true));
    if (magic !== MAGIC || version !== VERSION || 4 * length !== nbytes) refuse("a program that is none, or of another length");
    return { address, nbytes, records };
  });
}

/** `sources`: the bytes of weights and of programs; `kernels`: {heap, abi, threads} of the package's own module. */
export function checkWasm(plan, tensors, sources, kernels) {
  const [memory, programs] = checkWritten(plan, sources, kernels);
  const used = checkUsed(programs, [plan.program, ...(plan.prepare === null ? [] : [plan.prepare])]);
  if (plan.steps && plan.steps.length !== plan.program[1]) refuse("its steps have other names");
  for (const key of ["inputs", "outputs"]) {
    const spans = list(plan[key], tensors[key].length, key).map((address, i) => {
      const { name, nbytes } = tensors[key][i];
      if (nbytes) within(address, nbytes, memory, name);
      return [whole(address), nbytes];
    });
    for (const span of spans) apart([span, [used[0].address, used[0].nbytes]], `the program and one of the ${key}`);
    if (key === "inputs") apart(spans, "two inputs");
  }
  const weights = plan.writes.filter(([, source]) => source === 0);
  fitting(plan, tensors, weights);
  if (plan.referenced === undefined) return;
  const ends = [plan.inputs, plan.outputs].flatMap((addresses, i) => addresses.filter((_, k) => [tensors.inputs, tensors.outputs][i][k].nbytes));
  const count = referenced(sources[1], [...ends, ...weights.map(([address]) => address)]);
  if (count !== plan.referenced) refuse(`its programs name ${count} of its addresses, and were made with ${plan.referenced}`);
}

/** As `checkWasm`, of plans for several kinds of sizes; their words are checked where they are read, in sizes.js. */
export function checkOpenWasm(plan, tensors, sources, kernels) {
  const [memory, programs] = checkWritten(plan, sources, kernels);
  const regimes = list(plan.regimes, undefined, "its plans");
  if (!regimes.length) refuse("it has no plan for any size");
  checkUsed(programs, [...regimes.map(({ program }) => program), ...list(plan.prepares, undefined, "what runs once")]);
  for (const regime of regimes) {
    checkBindings(regime);
    const { program, steps, first, count } = regime;
    if (list(steps, undefined, "steps").length !== program[1]) refuse("its steps have other names");
    if (first % 4) refuse("words that lie askew");
    const end = within(first, 4 * whole(count), memory, "what follows sizes");
    within(program[0], programs.find(({ address }) => address === program[0]).nbytes, [first, end], "a program that follows sizes");
  }
  const weights = plan.writes.filter(([, source]) => source === 0);
  const sums = [2, 3].map((place) => weights.reduce((sum, row) => sum + row[place], 0));
  if (String(plan.weights) !== String(sums)) refuse("its plan was made for other weights than those that it takes");
}

/** That what is written fits memory: [its limits, the programs]. */
function checkWritten(plan, sources, { heap, abi, threads }) {
  if (plan.abi !== undefined && abi !== undefined && plan.abi !== abi) refuse("its kernels have another interface than its plan");
  const { pool } = plan;
  if (threads > 1) for (const key of ["bytes", "poisoned", "maxNaps", "napMs", "stack"]) whole(pool[key]);
  if (threads > MAX_THREADS || (threads > 1 && !(pool.napMs && 4 * Math.max(pool.poisoned, pool.maxNaps) < pool.bytes))) refuse("its thread pool");
  const base = threads > 1 ? Math.ceil(heap / 64) * 64 + pool.bytes + (threads - 1) * pool.stack : heap;
  if (plan.heap !== base) refuse("it is laid out for other kernels than those in it");
  if (whole(plan.top) < base || plan.top > MAX_BYTES) refuse(`its memory ends at ${plan.top}`);
  const memory = [base, plan.top];
  const written = list(plan.writes, undefined, "what is written").map((row) => {
    const [address, source, at, nbytes] = list(row, 4, "a write");
    if (source !== 0 && source !== 1) refuse(`it writes from source ${source}`);
    within(at, nbytes, [0, sources[source].length], "what a write takes");
    within(address, nbytes, memory, "a write");
    return [address, nbytes];
  });
  apart(written, "two writes");
  return [memory, programsOf(plan, sources[1])];
}

/** That what runs, [address, steps] of each, are the programs that there are; those programs. */
function checkUsed(programs, rows) {
  const used = rows.map((row) => {
    const [address, steps] = list(row, 2, "a program").map(whole);
    const found = programs.find((each) => each.address === address);
    if (!found || found.records !== steps) refuse(`a program is at ${address} with ${steps} steps, where no such program is`);
    return found;
  });
  if (programs.some((program) => !used.includes(program))) refuse("it has a program that never runs");
  return used;
}

// ----- GPU

/** CRC-32 of what a plan runs, in which order and between which buffers, as order_of in proofs.py. */
function orderOf({ buffers, prepare, freed, inputs, outputs, uniforms, dispatches }) {
  return crcOf([buffers, prepare, freed, inputs, outputs, uniforms, dispatches.map((row) => row.slice(1))]);
}

/** That what follows open sizes is what was compiled: its CRC-32, as bindings_of in proofs.py. */
export function checkBindings({ bindings, sizes, ...form }) {
  const keys = Object.keys(form).sort();
  const facts = [sizes.symbols.length, sizes.atoms, sizes.guards, sizes.values, ...keys.map((key) => form[key])];
  if (bindings !== crcOf(facts)) refuse("its sizes are bound in another way than it was made with");
}

function crcOf(facts) {
  let crc = -1;
  for (const byte of new TextEncoder().encode(JSON.stringify(facts))) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  return ~crc >>> 0;
}

/** `room`: bytes of the section of weights; `largest`: of a buffer of this device. */
export function checkGpu(plan, shaders, tensors, largest) {
  const sizes = list(plan.buffers, undefined, "its buffers");
  for (const size of sizes) if (!whole(size) || size > largest) refuse(`a buffer of ${size} bytes; this device has up to ${largest}`);
  if (!/^([0-9a-f]{2})*$/.test(plan.uniforms)) refuse("its constants");
  const sizeOf = [...sizes, plan.uniforms.length / 2]; // the constants' buffer comes last
  const span = (row, what, buffers) => {
    const [buffer, offset, nbytes] = list(row, 3, what).map(whole);
    if (buffer >= buffers) refuse(`${what} names buffer ${buffer} of ${buffers}`);
    within(offset, nbytes, [0, Math.ceil(sizeOf[buffer] / 4) * 4], what);
    return buffer;
  };
  const dispatches = list(plan.dispatches, undefined, "its dispatches");
  if (whole(plan.prepare) > dispatches.length) refuse("more is prepared than there is");
  const [later, filled] = [new Set(), new Set()]; // buffers in use after what runs once; that something was written to
  for (const row of list(plan.writes, undefined, "what is written")) {
    const [buffer, , nbytes] = list(row, 3, "a write").map(whole);
    if (buffer >= sizes.length || nbytes > Math.ceil(sizes[buffer] / 4) * 4) refuse(`a write of ${nbytes} bytes into buffer ${buffer}`);
    filled.add(buffer);
  }
  list(plan.inputs, tensors.inputs.length, "inputs").forEach((buffer, i) => {
    const { name, nbytes } = tensors.inputs[i];
    if (whole(buffer) >= sizes.length || nbytes > sizes[buffer]) refuse(`${name} has no buffer of ${nbytes} bytes`);
    later.add(buffer);
    filled.add(buffer);
  });
  dispatches.forEach((row, i) => {
    const [label, number, bindings, groups] = list(row, 4, "a dispatch");
    const shader = list(shaders, undefined, "its shaders")[whole(number)];
    if (typeof shader?.code !== "string") refuse(`${label} has no shader`);
    const kinds = list(shader.bindings, undefined, "bindings");
    const buffers = list(bindings, kinds.length, `what ${label} is given`).map((each) => span(each, label, sizeOf.length));
    buffers.forEach((buffer, place) => {
      if ((kinds[place] === "uniform") !== (buffer === sizes.length)) refuse(`${label} takes constants for a tensor`);
      if (bindings[place][1] % ALIGNMENT || !bindings[place][2]) refuse(`${label} takes ${bindings[place][2]} bytes at ${bindings[place][1]}`);
      if (kinds[place] === "read" && !filled.has(buffer)) refuse(`${label} reads buffer ${buffer}, which nothing writes before`);
    });
    buffers.forEach((buffer, place) => kinds[place] === "write" && filled.add(buffer));
    if (i >= plan.prepare) for (const buffer of buffers) later.add(buffer);
    for (const count of list(groups, 3, `the groups of ${label}`)) if (!whole(count) || count > MAX_GROUPS) refuse(`${label} has ${count} groups`);
  });
  list(plan.outputs, tensors.outputs.length, "outputs").forEach((row, i) => {
    const { name, nbytes } = tensors.outputs[i];
    if (row === null ? nbytes : row[2] !== nbytes) refuse(`${name} has ${nbytes} bytes, and its plan gives ${row ? row[2] : 0}`);
    if (!row) return;
    later.add(span(row, name, sizes.length));
    if (row[1] % 4 || !filled.has(row[0])) refuse(`${name} is in buffer ${row[0]} at ${row[1]}, which nothing writes`);
  });
  for (const buffer of list(plan.freed, undefined, "what is freed")) {
    if (whole(buffer) >= sizes.length || later.has(buffer)) refuse(`buffer ${buffer} is freed and used`);
  }
  fitting(plan, tensors, plan.writes);
  if (plan.for && plan.order !== orderOf(plan)) refuse("it runs in another order, or between other buffers, than it was made with");
}

// ----- header

/** That what the header says of inputs, outputs, states and the task fits together. `tensors`: as tensorOf made them. */
export function checkHeader(header, tensors, states) {
  for (const key of ["inputs", "outputs"]) {
    const names = tensors[key].map(({ name }) => name);
    if (new Set(names).size !== names.length || names.some((name) => typeof name !== "string")) refuse(`the names of ${key}`);
  }
  for (const { input, output, bytes } of states) {
    const [into, from] = [tensors.inputs.find(({ name }) => name === input), tensors.outputs.find(({ name }) => name === output)];
    if ((input && !into) || (output && !from) || !(into ?? from)) refuse(`state ${input || output} is not an input or output`);
    if (into?.open || from?.open) refuse(`state ${input || output} has no size`);
    if (into && from && into.nbytes !== from.nbytes) refuse(`state ${input} changes its size`);
    if (bytes.length && bytes.length !== (into ?? from).nbytes) refuse(`state ${input} begins with ${bytes.length} bytes`);
  }
  for (const row of [...(header.wasm ?? []), ...(header.webgpu ?? [])]) if (typeof row?.section !== "string") refuse("a plan without a section");
  for (const { threads } of header.wasm ?? []) if (!whole(threads)) refuse("a plan for no thread");
  const { picture, sound } = header.task ?? {};
  if (sound) {
    const heard = tensors.inputs.find(({ name }) => name === sound.input);
    if (!whole(sound.window) || heard?.dtype !== "float32" || heard.length !== sound.window) refuse(`windows of ${sound.window} samples do not fill ${sound.input}`);
    if (!(whole(sound.rate) >= 1)) refuse(`${sound.rate} samples a second`);
  }
  if (!picture) return;
  const { width, height, scale, offset, input } = picture;
  const row = tensors.inputs.find(({ name }) => name === input);
  if (!whole(width) || !whole(height) || row?.dtype !== "float32" || row.length !== 3 * width * height) refuse(`pictures of ${width}x${height} do not fill ${input}`);
  if (![scale, offset].every(Number.isFinite) || ![picture.border, picture.sampling].every(Number.isInteger)) refuse("how pictures are prepared");
}
