// webinfer in the benchmark of ONNX decoders: {id, method, options} -> {id, value} or {id, error}. See webinfer_decoder.py.

import { answerCalls } from "../answers.js";
import { startPython } from "../systems/webinfer.js";

let decoder = null;

answerCalls({
  async open({ threads, backend, model }) {
    const { pyodide, python } = await startPython(new URL("webinfer_decoder.py", import.meta.url), backend);
    const begin = performance.now();
    decoder = await python.get("open_decoder")(model, backend, threads);
    return { version: `webinfer on Pyodide ${pyodide.version}`, load_ms: performance.now() - begin };
  },
  write: ({ prompt, tokens }) => decoder.write(prompt, tokens),
});
