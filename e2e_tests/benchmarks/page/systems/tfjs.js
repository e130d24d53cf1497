// TF.js: the model's graph through its fused operators, on wasm, webgpu or plain JavaScript (`cpu`).

import { EXECUTE } from "./tfjs_operators.js";

const HOME = new URL("../rivals/tfjs/", import.meta.url).href;

const TYPES = { float32: "float32", int32: "int32", int64: "int32", bool: "bool" };

/** The backend with its scripts. UMD bundles: they need a classic worker. */
export async function start({ threads, backend }) {
  self.importScripts(`${HOME}tf-core.min.js`, `${HOME}tf-converter.min.js`, `${HOME}tf-backend-cpu.min.js`);
  if (backend !== "cpu") self.importScripts(`${HOME}tf-backend-${backend}.min.js`);
  const tf = self.tf;
  tf.enableProdMode();
  if (backend === "wasm") {
    tf.wasm.setWasmPaths(HOME);
    tf.env().set("WASM_HAS_MULTITHREAD_SUPPORT", threads > 1); // else the plain SIMD build
    tf.wasm.setThreadsCount(threads);
  }
  await tf.setBackend(backend);
  await tf.ready();
  if (tf.getBackend() !== backend) throw new Error(`TF.js runs on ${tf.getBackend()} instead of ${backend}`);
  return {
    version: `TF.js ${tf.version_core}`,
    files(model) {
      if (model.format === "tfjs") return model.files;
      if (!model.tfjs) throw new Error(model.tfjs_why || "no graph for TF.js");
      return { graph: model.tfjs.graph, weights: model.tfjs.weights };
    },
    load: (model, files) => (model.format === "tfjs" ? openGraphModel : open)(tf, model, files),
    heapBytes: () => (backend === "cpu" ? tf.memory().numBytes : 0),
  };
}

function open(tf, model, files) {
  const graph = JSON.parse(new TextDecoder().decode(files.graph));
  const missing = [...new Set(graph.nodes.map((node) => node.op).filter((op) => !EXECUTE[op]))];
  if (missing.length) throw new Error(`the TF.js runner has no ${missing.join(", ")}`);
  const constants = new Map();
  for (const { id, shape, offset, size } of graph.constants) {
    constants.set(id, tf.tensor(new Float32Array(files.weights, offset, size), shape, "float32"));
  }
  return {
    async run(inputs) {
      const results = tf.tidy(() => forward(tf, graph, constants, model, inputs));
      const data = await Promise.all(results.map((result) => result.data()));
      tf.dispose(results);
      return data.map((values, i) => ({ name: model.outputs[i]?.name, data: values }));
    },
    ...(tf.getBackend() === "webgpu" ? { keep: (inputs) => keep(tf, () => forward(tf, graph, constants, model, inputs)) } : {}),
    close: () => tf.dispose([...constants.values()]),
  };
}

/** The graph node by node; what no later node reads is freed at once, so that memory stays small. */
function forward(tf, graph, constants, model, inputs) {
  const values = new Map(constants);
  for (const [i, id] of graph.inputs.entries()) values.set(id, tf.tensor(inputs[i], model.inputs[i].shape, "float32"));
  for (const node of graph.nodes) {
    const given = node.inputs.map((id) => (id === null ? null : values.get(id)));
    values.set(node.output, tf.tidy(() => EXECUTE[node.op](tf, given, node.attrs)));
    for (const id of node.last) {
      values.get(id).dispose();
      values.delete(id);
    }
  }
  return graph.outputs.map((id) => tf.keep(values.get(id).clone()));
}

async function keep(tf, compute) {
  const results = tf.tidy(compute);
  tf.backend().submitQueue();
  await tf.backend().device.queue.onSubmittedWorkDone();
  tf.dispose(results);
}

/** A graph model as its users load it. */
async function openGraphModel(tf, { inputs: infos, outputs }, files) {
  const [own] = Object.keys(files);
  const { modelTopology, weightsManifest, signature, format } = JSON.parse(new TextDecoder().decode(files[own]));
  const parts = weightsManifest.flatMap(({ paths }) => paths.map((path) => files[path]));
  const artifacts = {
    modelTopology, signature, format,
    weightSpecs: weightsManifest.flatMap(({ weights }) => weights),
    weightData: await new Blob(parts).arrayBuffer(),
  };
  const model = await tf.loadGraphModel(tf.io.fromMemory(artifacts));
  const names = model.inputs.map(({ name }) => name);
  const places = new Map(infos.map(({ name }, i) => [name, i]));
  const results = async (inputs) => {
    const feed = Object.fromEntries(names.map((name, i) => {
      const at = places.get(name) ?? i, { shape, dtype } = infos[at];
      return [name, tf.tensor(dtype === "int64" ? Int32Array.from(inputs[at], Number) : inputs[at], shape, TYPES[dtype])];
    }));
    const found = await model.executeAsync(feed);
    tf.dispose(feed);
    return [found].flat();
  };
  return {
    async run(inputs) {
      const found = await results(inputs);
      const data = await Promise.all(found.map((result) => result.data()));
      tf.dispose(found);
      return data.map((values, i) => ({ name: outputs[i]?.name, data: values }));
    },
    close: () => model.dispose(),
  };
}
