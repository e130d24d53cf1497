// webinfer in Pyodide. Needs a module worker: Pyodide accepts no other.

const SITE = new URL("../engine/", import.meta.url);
const START = ["static/downloads.js", "static/python_start.js"];
const MODULES = /^static\/(gpu_\w+)\.js$/;

/**
 * Python with the engine imported, started as the product's page starts it; `python` holds the names of a script.
 * For `backend` webgpu the device is opened meanwhile.
 */
export async function startPython(script, backend) {
  const { manifest, foreseen } = await readSite();
  const [{ Downloads }, product] = await Promise.all(START.map((name) => import(manifest[name].url)));
  const downloads = new Downloads(manifest, 60_000, () => {});
  const prefetched = new Map();
  const opening = openDoor(downloads, prefetched);
  if (backend === "webgpu") {
    const device = opening.then(({ gpu }) => gpu.gpu_device.openDevice(foreseen.gpu, gpu.gpu_program.Program));
    device.catch(() => {}); // Python asks again and reports the failure
    prefetched.set("gpu", device);
  }
  const starting = downloads.counting(() => product.startPython(downloads, { memory: foreseen.memory }));
  const [pyodide, code] = await Promise.all([starting, textOf(script), opening]);
  const python = pyodide.toPy({});
  pyodide.runPython(code, { globals: python });
  python.get("configure")(JSON.stringify(Object.fromEntries(Object.entries(manifest).map(([name, { url }]) => [name, url]))));
  return { pyodide, python };
}

export async function start({ threads, backend }) {
  const { pyodide, python } = await startPython(new URL("webinfer_runs.py", import.meta.url), backend);
  return {
    version: `webinfer ${python.get("version")()} on Pyodide ${pyodide.version}`,
    files: (model) => model.files,
    load: (model, files) => open(python, model, files, threads, backend),
  };
}

async function readSite() {
  const { assets, page } = await (await fetch(new URL("manifest.json", SITE))).json();
  for (const file of Object.values(assets)) file.url = new URL(file.url, SITE).href;
  return { manifest: assets, foreseen: page.foreseen };
}

const textOf = async (url) => (await fetch(url)).text();

/** What the engine's platform modules and Python find as `globalThis.webinfer`. */
async function openDoor(downloads, prefetched) {
  const door = { asset: (name) => downloads.url(name), has: (name) => downloads.has(name), prefetched, gpu: {} };
  await Promise.all(Object.keys(downloads.manifest).filter((name) => MODULES.test(name)).map(async (name) => {
    door.gpu[MODULES.exec(name)[1]] = await downloads.module(name);
  }));
  self.webinfer = door;
  return door;
}

async function open(python, model, files, threads, backend) {
  const bytes = Object.entries(files).map(([name, data]) => [name, new Uint8Array(data)]);
  const session = await python.get("open_session")(bytes, backend, threads, JSON.stringify(model.shapes ?? {}));
  return {
    note: session.note,
    run: async (inputs) => Array.from(await session.run(inputs), ([name, data]) => ({ name, data })),
    times: async (inputs, runs) => Array.from(await session.times(inputs, runs)),
    flight: (inputs, runs, lanes) => session.flight(inputs, runs, lanes),
    ...(backend === "webgpu" ? { keptTimes: async (inputs, runs) => Array.from(await session.kept_times(inputs, runs)) } : {}),
    close() {
      session.close();
      session.destroy();
    },
  };
}
