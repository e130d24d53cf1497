// WebNN for browsers that have none: importing this module provides `navigator.ml` and the interfaces beside it. Python and
// the engine start with the first context; a page that asks for none pays for this file alone.

import { MLGraphBuilder } from "./webnn_builder.js";
import { ML, MLContext, newML, reading, startsWith } from "./webnn_context.js";
import { MLGraph, MLOperand, MLTensor } from "./webnn_objects.js";

const INTERFACES = { ML, MLContext, MLGraph, MLGraphBuilder, MLOperand, MLTensor };
const HERE = import.meta.url;

/** The engine's files are beside this one: `manifest` is the URL of the list of them. */
export async function startEngine(manifest = new URL("../../webnn.json", HERE).href) {
  const { copied, startEngine: start } = await import(new URL("./webnn_engine.js", HERE).href);
  const { bindings, worker } = await start(manifest);
  return { bindings, copied, worker: typeof Worker === "undefined" || typeof window === "undefined" ? "" : worker };
}

/** Whether the browser's own WebNN gives a context. */
async function works(ml) {
  return Boolean(await ml?.createContext().catch(() => null));
}

/** Provides `navigator.ml`, in place of the browser's own if there is one. */
export function install(start = startEngine) {
  startsWith(start);
  const ml = Object.defineProperties(newML(), { providedBy: { value: "webinfer" }, reading: { value: reading } });
  const owner = globalThis.Navigator ?? globalThis.WorkerNavigator;
  const { get } = Object.getOwnPropertyDescriptor({
    get ml() {
      if (this !== navigator) throw new TypeError("Illegal invocation");
      return ml;
    },
  }, "ml");
  Object.defineProperty(owner.prototype, "ml", { get, set: undefined, enumerable: true, configurable: true });
  for (const [name, value] of Object.entries(INTERFACES)) {
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
  }
  return ml;
}

/** Settled when `navigator.ml` is there: the browser's own where that works, else this one. */
export const ready = navigator.ml ? works(navigator.ml).then((own) => { if (!own) install(); }) : Promise.resolve(install());
