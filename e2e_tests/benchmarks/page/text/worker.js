// webinfer in the benchmark of text: {id, method, options} -> {id, value} or {id, error}. See webinfer_text.py.

import { answerCalls } from "../answers.js";
import { startPython } from "../systems/webinfer.js";

let writer = null;

const METHODS = {
  async open({ threads, backend, model }) {
    const { pyodide, python } = await startPython(new URL("webinfer_text.py", import.meta.url), backend);
    const begin = performance.now();
    writer = await python.get("open_writer")(model, backend, threads);
    const load_ms = performance.now() - begin;
    return { version: `webinfer on Pyodide ${pyodide.version}`, load_ms, copy_gbytes: await writer.copy_gbytes(threads) };
  },
  write: ({ prompt, tokens }) => writer.write(prompt, tokens),
  long: ({ tokens }) => writer.long(tokens),
};

answerCalls(METHODS);
