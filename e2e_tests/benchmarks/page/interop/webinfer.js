// The interop tests in webinfer: see webinfer_tests.py.

import { startPython } from "../systems/webinfer.js";

/** {open(test) -> plan, result(test) -> typed array, times(test, runs) -> milliseconds}. */
export async function start({ shapes, resident }, { x, w, b }) {
  const { pyodide, python } = await startPython(new URL("webinfer_tests.py", import.meta.url));
  const tests = python.get("make_tests")(x, w, b, shapes, resident);
  return {
    version: `webinfer on Pyodide ${pyodide.version}`,
    open: (name) => tests.open(name),
    result: (name) => tests.result(name),
    times: async (name, runs) => Array.from(await tests.times(name, runs)),
  };
}
