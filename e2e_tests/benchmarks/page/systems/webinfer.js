// webinfer in Pyodide. Needs a module worker: Pyodide accepts no other.

const SITE = new URL("../engine/", import.meta.url);
const MODULES = /^static\/((gpu|kernels)_\w+)\.js$/;

/** Pyodide with the engine imported and the site's files known to it; `python` holds the names of a script. */
export async function startPython(script) {
  const { assets } = await (await fetch(new URL("manifest.json", SITE))).json();
  const urls = Object.fromEntries(Object.entries(assets).map(([name, { url }]) => [name, new URL(url, SITE).href]));
  await openDoor(urls);
  const pyodide = await loadPython(urls);
  const code = await (await fetch(script)).text();
  const python = pyodide.toPy({});
  pyodide.runPython(code, { globals: python });
  python.get("configure")(JSON.stringify(urls));
  return { pyodide, python };
}

export async function start({ threads, backend }) {
  const { pyodide, python } = await startPython(new URL("webinfer_runs.py", import.meta.url));
  return {
    version: `webinfer ${python.get("version")()} on Pyodide ${pyodide.version}`,
    files: (model) => ({ model: model.file }),
    load: (model, files) => open(python, new Uint8Array(files.model), threads, backend),
  };
}

/** What the engine's platform modules and Python find as `globalThis.webinfer`. */
async function openDoor(urls) {
  const door = { asset: (name) => urls[name], has: (name) => name in urls, gpu: {}, kernels: {} };
  await Promise.all(Object.keys(urls).filter((name) => MODULES.test(name)).map(async (name) => {
    const [, stem, room] = MODULES.exec(name);
    door[room][stem] = await import(urls[name]);
  }));
  self.webinfer = door;
}

async function loadPython(urls) {
  const { loadPyodide } = await import(urls["pyodide/pyodide.mjs"]);
  const pyodide = await loadPyodide({
    indexURL: new URL(".", urls["pyodide/pyodide.mjs"]).href,
    lockFileURL: urls["python/pyodide-lock.json"],
    packages: ["webinfer"],
    env: { HOME: "/home/pyodide" },
  });
  if (!pyodide.loadedPackages.webinfer) throw new Error("Python started, but the engine's wheel did not load");
  return pyodide;
}

async function open(python, bytes, threads, backend) {
  const session = await python.get("open_session")(bytes, backend, threads);
  return {
    note: session.note,
    run: async (inputs) => Array.from(await session.run(inputs), ([name, data]) => ({ name, data })),
    times: async (inputs, runs) => Array.from(await session.times(inputs, runs)),
    flight: (inputs, runs, lanes) => session.flight(inputs, runs, lanes),
    ...(backend === "webgpu" ? { keep: (inputs) => session.keep(inputs) } : {}),
    close() {
      session.close();
      session.destroy();
    },
  };
}
