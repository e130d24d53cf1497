// ONNX Runtime Web in the benchmark of ONNX decoders, as Transformers.js uses it: on a GPU, caches stay there.

import { answerCalls } from "../answers.js";

const HOME = new URL("../rivals/ortweb/", import.meta.url).href;
const BUNDLES = { wasm: "ort.wasm.min.mjs", webgpu: "ort.webgpu.min.mjs" };
const COMPARED = 64; // numbers at the end of the last logits
const ARRAYS = { float32: Float32Array, float16: globalThis.Float16Array ?? Uint16Array };

let ort = null, session = null, caches = [];

const integers = (values) => new ort.Tensor("int64", BigInt64Array.from(values, BigInt), [1, values.length]);

/** The caches of no token, by the names of their inputs. */
const empty = () => Object.fromEntries(caches.map(({ name, type, shape }) => {
  const sizes = shape.map((size, axis) => (axis === 0 ? 1 : typeof size === "number" ? size : 0));
  return [name, new ort.Tensor(type, new ARRAYS[type](0), sizes)];
}));

function dispose(past) {
  for (const tensor of Object.values(past)) tensor.dispose();
}

/** One step: what is fed next in place of `past`, and the logits. */
async function step(ids, before, past) {
  const whole = before + ids.length;
  const rows = { input_ids: ids, position_ids: ids.map((_, i) => before + i), attention_mask: Array(whole).fill(1) };
  const feeds = { ...past };
  for (const [name, values] of Object.entries(rows)) if (session.inputNames.includes(name)) feeds[name] = integers(values);
  const results = await session.run(feeds);
  dispose(past);
  const logits = await results.logits.getData();
  results.logits.dispose();
  const next = Object.fromEntries(caches.map(({ name }) => [name, results[name.replace("past_key_values", "present")]]));
  return { next, logits };
}

answerCalls({
  async open({ threads, backend, model }) {
    const begin = performance.now();
    ort = await import(`${HOME}${BUNDLES[backend]}`);
    ort.env.wasm.wasmPaths = HOME;
    ort.env.wasm.numThreads = threads || 1;
    ort.env.logLevel = "error";
    const data = new Uint8Array(await model.arrayBuffer());
    const location = backend === "webgpu" ? { preferredOutputLocation: "gpu-buffer" } : {};
    session = await ort.InferenceSession.create(data, { executionProviders: [backend], ...location });
    caches = session.inputMetadata.filter(({ name }) => name.startsWith("past_key_values"));
    return { version: `onnxruntime-web ${ort.env.versions?.web ?? ""}`, load_ms: performance.now() - begin };
  },

  async write({ prompt, tokens }) {
    const token_ms = [];
    let past = empty(), logits = null, before = 0, prompt_ms = 0;
    for (let i = 0; i <= tokens; i++) {
      const ids = i ? [(37 * i) % 1000] : Array.from({ length: prompt }, (_, n) => n % 1000);
      const begin = performance.now();
      ({ next: past, logits } = await step(ids, before, past));
      const ms = performance.now() - begin;
      before += ids.length;
      if (i) token_ms.push(ms);
      else prompt_ms = ms;
    }
    dispose(past);
    return { prompt_ms, token_ms, last: [...logits.slice(-COMPARED)] };
  },
});
