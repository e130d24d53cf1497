// The first script of a page with an engine: what takes longest begins before the page itself has come. The page's own
// script goes on with `globalThis.started`; until it does, this script says what is missing.

{
  const STALL_TIMEOUT_S = 30; // without a byte
  const IDLE_DELAY_S = 1; // when the first picture has been looked at
  const IDLE_DELAY = "webinfer idle delay"; // that this browser keeps: tests of what pages do at once ask for more seconds
  const SNAPSHOT = "snapshot/webinfer.bin";
  const WORKER = "static/engine_worker.js";
  const EARLY = ["pyodide/pyodide.mjs", "pyodide/pyodide.asm.mjs", "pyodide/pyodide.data.bin", SNAPSHOT]; // files that the worker begins with
  const KEPT = "webinfer kept"; // address of the snapshot with which the worker has kept what it will need again
  const ISOLATING = "webinfer isolating"; // kept as long as this tab has been loaded anew for that
  const ISOLATING_S = 5;
  const HOLD_MS = 500; // the longest that the page's script is held back
  const AGAIN = "webinfer again"; // kept by this tab until a page is there: how often its user tried again
  const { dataset } = document.documentElement;
  globalThis.firstRuns = true; // unstarted.js looks for it
  dataset.state = "starting";
  const home = new URL(dataset.home, document.baseURI).pathname;
  const keeper = `${home}service_worker.js${dataset.isolate ? "?isolate" : ""}`;

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
    const stallTimeout = Number(parameters.get("stallTimeout") ?? 0); // seconds
    const { task = "", model = "", also = "", options = "{}" } = dataset;
    return {
      manifest,
      facts,
      page: location.pathname,
      home,
      keeper,
      task,
      model: parameters.get("model") ?? model,
      also: also.split(" ").filter(Boolean),
      options: asked(JSON.parse(options), parameters),
      backend: names.includes(wanted) ? wanted : names[0],
      life: `webinfer engine ${Math.random()}`,
      stallTimeout: 1000 * (Number.isInteger(stallTimeout) && stallTimeout >= 1 && stallTimeout <= 600 ? stallTimeout : STALL_TIMEOUT_S),
      idleDelay: 1000 * Math.max(IDLE_DELAY_S, Number(kept("local", (store) => store.getItem(IDLE_DELAY))) || 0),
      debug: Number.isInteger(debug) && debug >= 0 && debug <= 5 ? debug : 0,
    };
  };

  const checkOf = ({ sha256 }) => `sha256-${btoa(String.fromCharCode(...sha256.match(/../g).map((pair) => parseInt(pair, 16))))}`;

  /** Python's runtime, compiled. The browser checks it, and hands the bytes to nobody else: to read them here takes longer. */
  const compiled = async (file, signal) => {
    const answer = await fetch(file.url, { signal, integrity: checkOf(file) });
    if (answer.headers.get("Content-Type")?.startsWith("application/wasm")) return WebAssembly.compileStreaming(answer);
    return WebAssembly.compile(await answer.arrayBuffer()); // hosts may know no type for it
  };

  /** What keeps pages from starting, on any host: code, whether it is so here, what is said, the way on. */
  const HINDRANCES = [
    ["file", () => location.protocol === "file:", "This page was opened as a file; browsers cannot start the engine from files.",
      "Serve its folder, for instance with “python3 -m http.server --directory FOLDER”, and open the address that it prints."],
    ["sandbox", () => self.origin === "null", "This page is in a sandboxed frame, where browsers cannot start the engine.",
      "Add allow-same-origin to the frame’s sandbox attribute, or open this page in a tab of its own."],
    ["webassembly", () => !globalThis.WebAssembly?.validate(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0)), "This browser does not run WebAssembly here, which the engine needs.",
      "Switch it on in the browser’s settings (high security levels and lockdown modes switch it off), or open this page in another browser."],
  ];
  const NEEDED = "script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'";
  let refused = ""; // the directive of a security policy that kept a part of the engine away
  document.addEventListener("securitypolicyviolation", ({ disposition, effectiveDirective, blockedURI }) => {
    const ours = ["wasm-eval", "trusted-types-sink", "trusted-types-policy"].includes(blockedURI) || blockedURI.startsWith(location.origin);
    if (disposition === "enforce" && ours) refused ||= effectiveDirective;
  });

  /** What is behind a failure, {code, message}, if it is not what failed: the security policy of this address. */
  const cause = () => {
    if (!refused) return null;
    const way = refused.includes("trusted-types") ? "allow the Trusted Types policy “default”" : `give this address ${NEEDED}`;
    return { code: "policy", message: `The security policy of this address (Content-Security-Policy, ${refused}) refuses a part of the engine. The server’s operator has to ${way}.` };
  };
  try { // where scripts' addresses must be vouched for, those of this address are
    const createScriptURL = (url) => (new URL(url, document.baseURI).origin === location.origin ? url : null);
    globalThis.trustedTypes?.createPolicy("default", { createScriptURL });
  } catch {} // it is forbidden: `cause` says so

  /** Says why there is no page. */
  const sayUnstarted = (code, why, advice = "Check the connection, then try again.") => {
    if (cause()) [code, why, advice] = ["policy", cause().message, ""];
    dataset.state = "failed";
    dataset.webinferError = JSON.stringify({ code, message: why });
    for (const sheet of document.querySelectorAll("link[rel=stylesheet]")) if (!sheet.sheet) sheet.remove(); // nothing is painted before
    if (!box()) return;
    for (const animation of box().getAnimations()) animation.finish();
    box().querySelector("p").textContent = `${why} ${advice}`;
    box().querySelector("a").addEventListener("click", () => {
      globalThis.started?.worker.terminate();
      globalThis.started?.stop();
      window.stop();
      kept("session", (store) => store.setItem(AGAIN, Number(store.getItem(AGAIN)) + 1));
    });
  };

  /** What `use` makes of what this tab ("session") or this browser ("local") keeps; null in a browser that keeps nothing. */
  const kept = (where, use) => {
    try {
      return use(globalThis[`${where}Storage`]);
    } catch {
      return null;
    }
  };

  /** Whether the page leaves it to this script to run its own. */
  const holds = () => document.querySelector("link[rel=modulepreload]") !== null;

  /** Keeps what users do before the page's own script hears of it; returns what does it again. */
  const keepActions = () => {
    const actions = [];
    const keep = (event) => {
      const { type, target } = event;
      if (!holds() || (type === "click" && !target.closest("button, [type=file]"))) return;
      if (type === "click") event.preventDefault();
      event.stopPropagation();
      actions.push({ type, target, value: target.value, checked: target.checked });
    };
    for (const type of ["click", "change"]) document.addEventListener(type, keep, true);
    return () => {
      for (const type of ["click", "change"]) document.removeEventListener(type, keep, true);
      for (const { type, target, value, checked } of actions) {
        if (type === "click") target.click();
        else if (target.type !== "file") Object.assign(target, { value, checked });
        if (type === "change") target.dispatchEvent(new Event("change", { bubbles: true }));
      }
    };
  };

  /** Runs the page's own script, if that is left to this one. */
  const runPage = async (file) => {
    if (document.readyState === "loading") await new Promise((resolve) => addEventListener("DOMContentLoaded", resolve, { once: true }));
    if (holds()) document.head.append(Object.assign(document.createElement("script"), { type: "module", src: file.url, integrity: checkOf(file) }));
  };
  const box = () => document.getElementById("unstarted"); // shows itself after a while where this script is missing

  /** Says why no page can start here, and what can be done. */
  const sayUnable = ([code, , why, advice]) => {
    for (const card of document.querySelectorAll("#loading")) card.hidden = true;
    sayUnstarted(code, why, advice);
  };

  /** Why the page's script did not come: its host answers otherwise than with the file that was published. */
  const sayMissing = async (file) => {
    const [answer, name] = [await fetch(file.url, { cache: "no-store" }).catch(() => null), `${dataset.page}.js`];
    if (!answer) return sayUnstarted("download", "A part of this page could not be loaded.");
    if (!answer.ok) return sayUnstarted("download", `The server answered ${answer.status} for ${name}.`, "The site may be incomplete, or being replaced: try again.");
    const type = answer.headers.get("Content-Type") ?? "none";
    if (!/javascript/.test(type)) return sayUnstarted("integrity", `The server declares ${name} as ${type}, and browsers run no such script.`, "It must answer with text/javascript.");
    const { byteLength } = await answer.arrayBuffer();
    return sayUnstarted("integrity", `${name} is not the file that was published: it has ${byteLength} bytes, and should have other ${file.bytes}.`, "A proxy or CDN that minifies or rewrites scripts must leave this address alone.");
  };

  /** Whether the page is being loaded anew, isolated by its service worker: for hosts that cannot send the headers. */
  const isolates = async () => {
    try {
      if (crossOriginIsolated) sessionStorage.removeItem(ISOLATING);
      if (crossOriginIsolated || !dataset.isolate || sessionStorage.getItem(ISOLATING)) return false;
      sessionStorage.setItem(ISOLATING, "1");
      const registered = navigator.serviceWorker.register(keeper, { updateViaCache: "none" }).then(() => navigator.serviceWorker.ready);
      const late = new Promise((_, reject) => setTimeout(reject, 1000 * ISOLATING_S));
      await Promise.race([registered, late]);
      location.reload();
      return true;
    } catch {
      return false; // a browser that keeps nothing, or no service worker: one thread
    }
  };

  const settings = readSettings();

  /** What makes the worker's address another one after a try that hung: the browser would wait for its old answer. */
  const again = () => {
    const tries = kept("session", (store) => store.getItem(AGAIN));
    return tries ? `?again=${tries}` : "";
  };

  const begin = () => {
    const actAgain = keepActions();
    const snapshot = manifest[SNAPSHOT]?.url ?? ""; // a lab's own site has none
    const later = kept("local", (store) => store.getItem(KEPT)) === snapshot;
    const rows = EARLY.filter((name) => manifest[name]).map((name) => [name, manifest[name]]); // before it hears of the rest
    const hash = encodeURIComponent(JSON.stringify({ rows: Object.fromEntries(rows), later }));
    const worker = new Worker(`${manifest[WORKER].url}${again()}#${hash}`, { type: "module", name: "webinfer engine" }), waiting = []; // its events before page.js
    worker.onmessage = worker.onerror = (event) => {
      event.preventDefault();
      waiting.push(event);
    };
    const stopping = new AbortController();
    const runtime = compiled(manifest["pyodide/pyodide.first.wasm"] ?? manifest["pyodide/pyodide.asm.wasm"], stopping.signal);
    worker.postMessage({ v, type: "start", ...settings, runtimeComes: true });
    runtime.catch(() => null).then((module) => worker.postMessage({ v, type: "runtime", module })); // null: ask again
    worker.addEventListener("message", ({ data }) => {
      if (data.type === "kept") kept("local", (store) => store.setItem(KEPT, data.there ? snapshot : ""));
    });

    // Ends all that is on its way: what hangs would keep others from being asked for.
    const stop = () => stopping.abort();

    const ownScript = manifest[`static/${dataset.page}.js`];
    const onMissing = ({ target }) => target.src === ownScript.url && sayMissing(ownScript);
    addEventListener("error", onMissing, true);
    let quiet = 0; // seconds in which no file came; counted, because a page in the background is let wait
    let files = 0;
    const timer = setInterval(() => {
      const came = performance.getEntriesByType("resource").length;
      quiet = came > files ? 0 : quiet + 1;
      files = came;
      if (1000 * quiet === settings.stallTimeout) sayUnstarted("download", `This page has not finished loading, and no data has arrived for ${quiet} seconds.`);
    }, 1000);

    /** Ends the watch: the page is there. */
    const take = () => {
      clearInterval(timer);
      removeEventListener("error", onMissing, true);
      kept("session", (store) => store.removeItem(AGAIN)); // later visits find the worker in the cache, and without a network
      box()?.remove();
      delete dataset.webinferError;
      setTimeout(actAgain); // when the page's script has come to its end
    };
    const spoken = new Promise((resolve) => worker.addEventListener("message", resolve, { once: true }));
    const late = new Promise((resolve) => setTimeout(resolve, HOLD_MS));
    Promise.race([late, Promise.all([spoken, later && runtime.catch(() => {})])]).then(() => runPage(ownScript)); // until then this thread serves the worker
    globalThis.started = { settings, worker, waiting, take, stop, cause };
    dispatchEvent(new Event("started"));
  };

  const later = (say) => (document.readyState === "loading" ? addEventListener("DOMContentLoaded", say) : setTimeout(say)); // when its box is there
  const hindered = HINDRANCES.find(([, applies]) => applies());
  if (hindered) later(() => sayUnable(hindered));
  else {
    const failed = ({ message }) => later(() => sayUnstarted("worker", `The engine’s worker cannot be started: ${message}.`));
    Promise.resolve(dataset.isolate && isolates()).then((leaving) => leaving || begin()).catch(failed);
  }
}
