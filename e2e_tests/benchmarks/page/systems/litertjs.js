// LiteRT.js (@litertjs/core). Needs a classic worker: its loader calls importScripts.

const HOME = new URL("../rivals/litertjs/", import.meta.url).href;

/** The runtime, with the threaded build where more than one thread is asked for. */
export async function start({ threads, backend }) {
  const script = threads > 1 ? "litert_wasm_threaded_internal.js" : "litert_wasm_internal.js";
  // Emscripten looks beside the worker's own script unless it is told where its files lie.
  self.Module = { locateFile: (file) => `${HOME}wasm/${file}`, mainScriptUrlOrBlob: `${HOME}wasm/${script}` };
  const litert = await import(`${HOME}index.js`);
  await litert.loadLiteRt(`${HOME}wasm/`, { threads: threads > 1 });
  return {
    version: "@litertjs/core",
    files(model) {
      if (model.format !== "tflite") throw new Error(`LiteRT.js reads no ${model.format} file`);
      return { model: Object.values(model.files)[0] };
    },
    load: (model, files) => open(litert, new Uint8Array(files.model), threads, backend),
  };
}

async function open(litert, bytes, threads, backend) {
  const options = { accelerator: backend, ...(backend === "wasm" ? { cpuOptions: { numThreads: threads } } : {}) };
  const model = await litert.loadAndCompile(bytes, options);
  const found = model.options?.accelerator ?? backend;
  if (found !== backend) throw new Error(`LiteRT.js fell back from ${backend} to ${found}`);
  const details = model.getInputDetails();
  return {
    note: backend === "webgpu" && !model.isFullyAccelerated ? "partly on wasm" : "",
    async run(inputs) {
      const given = inputs.map((data, i) => new litert.Tensor(data, [...details[i].shape]));
      const results = await model.run(given);
      const outputs = [];
      for (const [i, result] of results.entries()) {
        outputs.push({ name: model.getOutputDetails()[i].name, data: await result.data() });
        result.delete();
      }
      for (const tensor of given) tensor.delete();
      return outputs;
    },
    ...(backend === "webgpu" ? { keep: (inputs) => keep(litert, model, details, inputs) } : {}),
    close: () => model.delete(),
  };
}

async function keep(litert, model, details, inputs) {
  const given = inputs.map((data, i) => new litert.Tensor(data, [...details[i].shape]));
  const results = await model.run(given);
  await litert.getWebGpuDevice().queue.onSubmittedWorkDone();
  for (const tensor of [...given, ...results]) tensor.delete();
}
