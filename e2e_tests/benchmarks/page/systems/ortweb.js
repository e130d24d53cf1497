// ONNX Runtime Web, on the ONNX twin of the model.

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
      if (!model.onnx) throw new Error("no ONNX twin of this model");
      return { model: model.onnx };
    },
    load: (model, files) => open(ort, model, new Uint8Array(files.model), backend),
  };
}

async function open(ort, model, bytes, backend) {
  const session = await ort.InferenceSession.create(bytes, { executionProviders: [backend] });
  const names = session.inputNames;
  return {
    async run(inputs) {
      const feeds = {};
      for (const [i, name] of names.entries()) feeds[name] = new ort.Tensor(model.inputs[i].dtype, inputs[i], model.inputs[i].shape);
      const results = await session.run(feeds);
      const outputs = [];
      for (const name of session.outputNames) {
        outputs.push({ name, data: await results[name].getData() });
        results[name].dispose();
      }
      return outputs;
    },
    close: () => session.release(),
  };
}
