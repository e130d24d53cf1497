// webinfer in Pyodide. Needs a module worker: Pyodide accepts no other.

import * as product from "../engine/start.js";

const STALL_TIMEOUT_MS = 60_000;
const SETTLED_MS = 1000; // after the start

const rows = absolute(product.SITE.assets);
const begun = product.beginEarly(rows, false); // as the product's worker does before its page has spoken

/**
 * Python with the engine imported, started as the product's worker starts it; `python` holds the names of a script, which
 * is a .py file, or a .code file of build_scripts/bench/compiled.mjs. Meanwhile comes what the `backend` needs: a device, kernels.
 */
export async function startPython(script, backend) {
  const { foreseen } = product.SITE;
  const downloads = new product.Downloads(rows, STALL_TIMEOUT_MS, () => {}, begun);
  const prefetch = new product.Prefetch(downloads);
  self.webinfer = { asset: (name) => downloads.url(name), has: (name) => downloads.has(name), prefetched: prefetch.found, gpu: product.GPU };
  if (backend !== "wasm") prefetch.device(foreseen.gpu);
  if (backend === "auto") prefetch.plans([], foreseen, { kernels: true });
  const coming = codeOf(script);
  const pyodide = await downloads.counting(() => product.startPython(downloads, { memory: foreseen.memory, pause: prefetch.pause }));
  setTimeout(product.bringRest, SETTLED_MS);
  const python = pyodide.toPy({});
  run(pyodide, await coming, python);
  python.get("configure")(JSON.stringify(Object.fromEntries(Object.entries(rows).map(([name, { url }]) => [name, url]))));
  return { pyodide, python };
}

export async function start({ threads, backend }) {
  const { pyodide, python } = await startPython(new URL("webinfer_runs.code", import.meta.url), backend);
  return {
    version: `webinfer ${python.get("version")()} on Pyodide ${pyodide.version}`,
    files: (model) => model.files,
    load: (model, files) => open(python, model, files, threads, backend),
  };
}

function absolute(assets) {
  const home = new URL("../engine/", import.meta.url);
  return Object.fromEntries(Object.entries(assets).map(([name, row]) => [name, { ...row, url: new URL(row.url, home).href }]));
}

/** The text of a script, or the bytes of one that was compiled. */
async function codeOf(script) {
  const response = await fetch(script);
  return script.pathname.endsWith(".py") ? response.text() : new Uint8Array(await response.arrayBuffer());
}

/** Runs a script. One that was compiled, as the product's own Python is, spares this start CPython's compiler. */
function run(pyodide, code, globals) {
  if (typeof code === "string") return pyodide.runPython(code, { globals });
  const { loads } = pyodide.pyimport("marshal");
  return pyodide.pyimport("types").FunctionType(loads(pyodide.toPy(code)), globals)();
}

async function open(python, model, files, threads, backend) {
  const bytes = Object.entries(files).map(([name, data]) => [name, new Uint8Array(data)]);
  const session = await python.get("open_session")(bytes, backend, threads, JSON.stringify(model.shapes ?? {}));
  return {
    note: session.note,
    run: async (inputs) => Array.from(await session.run(inputs), ([name, data]) => ({ name, data })),
    times: async (inputs, runs) => Array.from(await session.times(inputs, runs)),
    flight: (inputs, runs, lanes) => session.flight(inputs, runs, lanes),
    ...(backend !== "wasm" ? { keptTimes: async (inputs, runs) => Array.from(await session.kept_times(inputs, runs)) } : {}),
    close() {
      session.close();
      session.destroy();
    },
  };
}
