// The first script of a page with an engine: what takes longest begins before the page itself has come. The page's own
// script goes on with `globalThis.started`; until it does, this script says what is missing.

{
  const PATIENCE_S = 30; // without a byte

  /** Files, backends and the version of messages, as the server wrote them into the page. */
  const readFacts = () => {
    const { assets: files, page } = JSON.parse(document.getElementById("manifest").textContent);
    for (const file of Object.values(files)) file.url = new URL(file.url, document.baseURI).href;
    return { files, page, ...page };
  };

  const { files: manifest, page: facts, backends, messages: v } = readFacts();

  /** Options with the numbers that the address has for them. */
  const asked = (options, parameters) => {
    const numbers = Object.keys(options).filter((name) => parameters.get(name) && Number.isFinite(Number(parameters.get(name))));
    return { ...options, ...Object.fromEntries(numbers.map((name) => [name, Number(parameters.get(name))])) };
  };

  const readSettings = () => {
    const parameters = new URLSearchParams(location.search);
    const names = backends.map(({ name }) => name);
    const wanted = parameters.get("backend");
    const debug = Number(parameters.get("debug") ?? 0);
    const patience = Number(parameters.get("patience") ?? 0); // seconds
    const { task = "", model = "", also = "", options = "{}" } = document.documentElement.dataset;
    return {
      manifest,
      facts,
      page: location.pathname,
      task,
      model: parameters.get("model") ?? model,
      also: also.split(" ").filter(Boolean),
      options: asked(JSON.parse(options), parameters),
      backend: names.includes(wanted) ? wanted : names[0],
      life: `webinfer engine ${Math.random()}`,
      patience: 1000 * (Number.isInteger(patience) && patience >= 1 && patience <= 600 ? patience : PATIENCE_S),
      debug: Number.isInteger(debug) && debug >= 0 && debug <= 5 ? debug : 0,
    };
  };

  /** Python's runtime: the compiled `module`, and whether it is `whole`. Both reject, or say no, if the worker has to fetch it. */
  const compiled = (row, signal) => {
    if (!crypto.subtle) return { module: Promise.reject(new Error("it cannot be checked here")), whole: Promise.resolve(false) };
    const asked = fetch(row.url, { signal }).then((response) => (response.ok ? response : Promise.reject(new Error("it is not there"))));
    const bytes = asked.then((response) => response.clone().arrayBuffer()); // first: what is read cannot be cloned
    const module = asked.then((response) => WebAssembly.compileStreaming(response));
    const checking = import(manifest["static/integrity.js"].url);
    const found = Promise.all([checking, bytes]).then(([{ complaintOf }, all]) => complaintOf(new Uint8Array(all), row));
    const whole = found.then((wrong) => {
      if (wrong) console.warn(`${row.url} came damaged, ${wrong}; it is asked for again`);
      return !wrong;
    });
    return { module, whole: whole.catch(() => false) };
  };

  const settings = readSettings();
  const worker = new Worker(manifest["static/engine_worker.js"].url, { type: "module", name: "webinfer engine" });
  const waiting = []; // events of the worker that came before page.js
  worker.onmessage = worker.onerror = (event) => {
    event.preventDefault();
    waiting.push(event);
  };
  const stopping = new AbortController();
  const runtime = compiled(manifest["pyodide/pyodide.asm.wasm"], stopping.signal);
  worker.postMessage({ v, type: "start", ...settings, runtimeComes: true });
  runtime.module.catch(() => null).then((module) => worker.postMessage({ v, type: "runtime", module })); // null: ask again
  runtime.whole.then((whole) => worker.postMessage({ v, type: "runtimeChecked", whole }));

  /** Ends all that is on its way: what hangs would keep others from being asked for. */
  const stop = () => stopping.abort();

  const box = () => document.getElementById("unstarted"); // shows itself after a while where this script is missing

  /** Says why there is no page. */
  const sayUnstarted = (why) => {
    document.documentElement.dataset.webinferError = JSON.stringify({ code: "download", message: why });
    for (const sheet of document.querySelectorAll("link[rel=stylesheet]")) if (!sheet.sheet) sheet.remove(); // nothing is painted before
    if (!box()) return;
    for (const animation of box().getAnimations()) animation.finish();
    box().querySelector("p").textContent = `${why} Check the connection, then try again.`;
    box().querySelector("a").addEventListener("click", () => {
      worker.terminate();
      stop();
      window.stop();
    });
  };

  const ownScript = manifest[`static/${document.documentElement.dataset.page}.js`].url;
  const onMissing = ({ target }) => target.src === ownScript && sayUnstarted("A part of this page could not be loaded.");
  addEventListener("error", onMissing, true);
  let quiet = 0; // seconds in which no file came; counted, because a page in the background is let wait
  let files = 0;
  const timer = setInterval(() => {
    const came = performance.getEntriesByType("resource").length;
    quiet = came > files ? 0 : quiet + 1;
    files = came;
    if (1000 * quiet === settings.patience) sayUnstarted(`This page is not complete, and nothing has come for ${quiet} seconds.`);
  }, 1000);

  /** Ends the watch: the page is there. */
  const take = () => {
    clearInterval(timer);
    removeEventListener("error", onMissing, true);
    box()?.remove();
    delete document.documentElement.dataset.webinferError;
  };
  globalThis.started = { settings, worker, waiting, take, stop };
  dispatchEvent(new Event("started"));
}
