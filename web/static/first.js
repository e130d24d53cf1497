// The page's first script: what takes longest begins before the page itself has come. page.js goes on with
// `globalThis.started`.

{
  const BACKENDS = ["auto", "webgpu", "wasm"];

  const readManifest = () => {
    const { assets: files } = JSON.parse(document.getElementById("manifest").textContent);
    for (const file of Object.values(files)) file.url = new URL(file.url, document.baseURI).href;
    return files;
  };

  const readSettings = () => {
    const parameters = new URLSearchParams(location.search);
    const asked = parameters.get("backend") ?? "auto";
    const debug = Number(parameters.get("debug") ?? 0);
    return {
      manifest: readManifest(),
      backend: BACKENDS.includes(asked) ? asked : "auto",
      model: parameters.get("model") ?? document.documentElement.dataset.model,
      debug: Number.isInteger(debug) && debug >= 0 && debug <= 5 ? debug : 0,
    };
  };

  const settings = readSettings();
  const { manifest } = settings;
  const worker = new Worker(manifest["static/engine_worker.js"].url, { type: "module", name: "webinfer engine" });
  const waiting = []; // events of the worker that came before page.js
  worker.onmessage = worker.onerror = (event) => {
    event.preventDefault();
    waiting.push(event);
  };
  const runtime = WebAssembly.compileStreaming(fetch(manifest["pyodide/pyodide.asm.wasm"].url));
  worker.postMessage({ v: 1, type: "start", ...settings, runtimeComes: true });
  runtime.catch(() => null).then((module) => worker.postMessage({ v: 1, type: "runtime", module })); // null: ask again
  globalThis.started = { settings, worker, waiting };
}
