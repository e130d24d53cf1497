// What a dispatch of our `navigator.ml` costs beside its arithmetic: calls of WebGPU and of Python, counted.

import { install, startEngine } from "/webnn.mjs";

const counts = {};
const add = (what, by = 1) => (counts[what] = (counts[what] ?? 0) + by);

/** Counts the calls of a method of an interface; `by` makes a number of a call's arguments. */
function counted(type, name, what, by = () => 1) {
  const own = type.prototype[name];
  type.prototype[name] = function (...given) {
    add(what, by(...given));
    return own.apply(this, given);
  };
}

counted(GPUQueue, "submit", "submits");
counted(GPUQueue, "writeBuffer", "written", (buffer, at, data, from, size) => size ?? data.byteLength);
counted(GPUCommandEncoder, "copyBufferToBuffer", "copied", (from, at, to, there, size) => size);
counted(GPUDevice, "createBuffer", "buffers");
counted(GPUDevice, "pushErrorScope", "scopes");
counted(GPUDevice, "createBindGroup", "groups");
let started = null;

/** What happened during `work`, by name. */
async function during(work) {
  for (const what of Object.keys(counts)) delete counts[what];
  await work();
  await null; // what is said together is submitted when the script pauses
  return { ...counts };
}

const FIVE = { dataType: "float32", shape: [5] };
const numbers = (start) => Float32Array.from({ length: 5 }, (_, i) => start + i);

/** Counts of dispatches on tensors that are new, known, and changed, and of reading and writing; and the results. */
export async function countedRuns(options) {
  const python = await (started ??= startEngine());
  const bindings = new Proxy(python.bindings, { get: (of, key) => (...given) => (add("python"), of[key](...given)) });
  install(async () => ({ ...python, bindings }));
  const gpu = options.deviceType === "gpu" && await (await navigator.gpu.requestAdapter()).requestDevice();
  const context = await navigator.ml.createContext(gpu || options);
  const builder = new MLGraphBuilder(context);
  const [a, b] = ["a", "b"].map((name) => builder.input(name, FIVE));
  const graph = await builder.build({ sum: builder.add(builder.relu(a), b) });
  const more = { readable: true, writable: true };
  const [x, y, z, w] = await Promise.all([1, 2, 3, 4].map(() => context.createTensor({ ...FIVE, ...more })));
  const odd = gpu ? await context.createExportableTensor({ ...FIVE, ...more }, gpu) : w;
  const read = async (tensor) => [...new Float32Array(await context.readTensor(tensor))];
  const found = { results: [] };
  const write = () => { context.writeTensor(x, numbers(-2)); context.writeTensor(y, numbers(10)); };
  write();
  context.dispatch(graph, { a: x, b: y }, { sum: z });
  found.results.push(await read(z));
  found.again = await during(() => { for (let i = 0; i < 3; i++) context.dispatch(graph, { a: x, b: y }, { sum: z }); });
  context.dispatch(graph, { a: z, b: y }, { sum: w });
  found.results.push(await read(w));
  found.others = await during(() => {
    context.dispatch(graph, { a: x, b: y }, { sum: z });
    context.dispatch(graph, { a: z, b: y }, { sum: w });
  });
  found.read = await during(() => read(z));
  found.into = await during(() => context.readTensor(z, new ArrayBuffer(20)));
  found.write = await during(write);
  context.dispatch(graph, { a: x, b: y }, { sum: odd });
  found.results.push(await read(odd));
  w.destroy();
  const late = await context.createTensor({ ...FIVE, ...more });
  context.dispatch(graph, { a: z, b: y }, { sum: late });
  found.results.push(await read(late));
  return found;
}
