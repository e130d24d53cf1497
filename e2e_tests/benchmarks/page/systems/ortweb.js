// ONNX Runtime Web, on the ONNX version of the model.

const HOME = new URL("../rivals/ortweb/", import.meta.url).href;
const BUNDLES = { wasm: "ort.wasm.min.mjs", webgpu: "ort.webgpu.min.mjs" };

/** The runtime for one backend. */
export async function start({ threads, backend }) {
  const ort = await import(`${HOME}${BUNDLES[backend]}`);
  ort.env.wasm.wasmPaths = HOME;
  ort.env.wasm.numThreads = threads;
  ort.env.logLevel = "error";
  return {
    version: `onnxruntime-web ${ort.env.versions?.web ?? ""}`,
    files(model) {
      if (!model.onnx) throw new Error(`no ONNX version of this ${model.format} model`);
      return { model: model.onnx };
    },
    load: (model, files) => open(ort, model, new Uint8Array(files.model), backend),
  };
}

async function open(ort, model, bytes, backend) {
  const options = { executionProviders: [backend] };
  const session = await ort.InferenceSession.create(bytes, options);
  const places = new Map(model.inputs.map(({ name }, i) => [name, i]));
  const feed = (inputs) => Object.fromEntries(session.inputNames.map((name, i) => {
    const at = places.get(name) ?? i; // the ONNX version has names of its own
    return [name, new ort.Tensor(model.inputs[at].dtype, inputs[at], model.inputs[at].shape)];
  }));
  let keeping = null;
  const run = async (inputs) => {
    const results = await session.run(feed(inputs));
    const outputs = [];
    for (const name of session.outputNames) {
      outputs.push({ name, data: await results[name].getData() });
      results[name].dispose();
    }
    return outputs;
  };
  return {
    run,
    async flight(inputs, runs) { // overlapping runs of a session never return
      for (let i = 0; i < runs; i++) await run(inputs);
    },
    ...(backend === "webgpu" ? {
      async prepare() { // where outputs lie is fixed for a session
        keeping = await ort.InferenceSession.create(bytes, { ...options, preferredOutputLocation: "gpu-buffer" });
      },
      async keep(inputs) {
        const results = await keeping.run(feed(inputs));
        await (await ort.env.webgpu.device).queue.onSubmittedWorkDone();
        for (const result of Object.values(results)) result.dispose();
      },
    } : {}),
    async close() {
      await session.release();
      await keeping?.release();
    },
  };
}
