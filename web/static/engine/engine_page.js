// The engine of a page that has no task: started by first.js, asked through Calls, with what the page says when it fails.

import { byId, say } from "../ui/dom.js";
import { Calls } from "./engine_calls.js";
import { EngineClient } from "./engine_client.js";
import * as panels from "../ui/panels.js";
import { Troubles } from "../ui/troubles.js";

/**
 * {calls, troubles, settings, site, begin, arrive}: `site` is the server's manifest; after `begin()`, `started(capabilities)` is
 * called when the engine runs, and `lost({code, message, restarts})` when it does not any more; `restarts`: it is started again.
 * `arrive()` ends the watch over the page's start, for pages that begin later.
 */
export async function startEngine({ started, lost }) {
  if (!globalThis.started) await new Promise((resolve) => addEventListener("started", resolve, { once: true })); // by first.js
  const { settings, take, ...given } = globalThis.started;
  const site = JSON.parse(byId("manifest").textContent);
  const progress = new panels.Progress();
  const troubles = new Troubles();

  const onStarted = ({ capabilities }) => {
    progress.end();
    navigator.serviceWorker?.register(settings.keeper, { updateViaCache: "none" }).catch(() => {}); // as good as it was
    started(capabilities);
  };
  const onError = ({ id, code, message, fatal }) => {
    if (id !== undefined) return calls.failed({ id, code, message });
    if (!fatal) return troubles.show({ code, message });
    progress.end();
    lost({ code, message });
    troubles.ended({ code, message });
  };
  const onRestarting = ({ code, message }) => {
    lost({ code, message, restarts: true });
    progress.begin("Starting the engine again");
    troubles.slow(null);
    troubles.show({ code, message: `${message} It is being started again.` }, { severe: false });
  };
  const engine = new EngineClient(settings, given, {
    progress: (message) => byId("loading").hidden || progress.show(message),
    started: onStarted,
    answer: (message) => calls.answered(message),
    step: (message) => calls.stepped(message),
    piece: (message) => calls.pieced(message),
    error: onError,
    restarting: onRestarting,
    quiet: (seconds) => troubles.slow(seconds),
    moving: () => troubles.slow(null),
  });
  const calls = new Calls(engine);

  byId("dismiss").addEventListener("click", () => troubles.forget());
  byId("retry").addEventListener("click", () => {
    const { stuck } = troubles;
    troubles.forgetAll();
    if (!stuck) return;
    progress.begin("Starting the engine");
    engine.restart();
    byId("loading").focus();
  });
  let arrived = false;
  const arrive = () => {
    if (!arrived) take();
    arrived = true;
  };
  const begin = () => {
    arrive();
    progress.begin("Starting the engine");
    engine.start();
  };
  return { calls, troubles, settings, site, begin, arrive };
}

/** The models that the site has, {name, bytes}, and those that it can fetch, with the megabytes of their package as `late`. */
export function knownModels({ page: { models, late, packages } }, { manifest }) {
  return Object.entries(models).flatMap(([name, files]) => {
    if (!files.every((file) => manifest[file] || late[file])) return [];
    const missing = files.find((file) => !manifest[file]);
    return [{ name, late: missing ? packages[late[missing]] : 0, bytes: manifest[files[0]]?.bytes ?? 0 }];
  });
}

/** Shows how far long work is: {done, total}; null takes the bar away. */
export function showWork(step, text = "") {
  byId("work").hidden = step === null;
  if (step?.total) byId("work").value = step.done / step.total;
  else byId("work").removeAttribute("value");
  if (text) say(byId("status"), text);
}
