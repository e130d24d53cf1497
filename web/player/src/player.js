// The player: runs models that `webinfer compile` wrote, in pages without Python. See README.md.

import { PlayerError } from "./errors.js";
import { whyOneThread } from "./kernels.js";
import { loadWith } from "./load.js";

export { PlayerError };

/**
 * A model that is ready. `source` is the address of a `.webinfer` file, its bytes, a Blob or a Response. Options:
 * `backend` "auto", "webgpu", "wasm" or a list to try in order; `threads` for the processor (1); `worker` true to run
 * beside the page's own thread; `workerUrl`; `onProgress({stage, done, total})`; `onLost(reason)`.
 */
export const load = (source, options = {}) => loadWith(starters, source, options);

/** What this browser can run packages on, and what keeps it from more. */
export async function capabilities() {
  const adapter = await globalThis.navigator?.gpu?.requestAdapter().catch(() => null);
  return { webgpu: Boolean(adapter), wasm: typeof WebAssembly === "object", threads: Boolean(globalThis.crossOriginIsolated), why: whyOneThread() };
}

const starters = (url) => (url === undefined ? [beside, inside] : [() => new Worker(url, { type: "module", name: "webinfer-player" })]);

/** By the form that Vite, webpack, Rollup and Parcel recognise: they build the script and put its address here. */
const beside = () => new Worker(new URL("./player_worker.js", import.meta.url), { type: "module", name: "webinfer-player" });

/** esbuild copies no worker, a classic script has no address, another site's script starts none: the text is a module. */
let text = null;
async function inside() {
  text ??= import("./player_worker_text.js").then((module) => URL.createObjectURL(new Blob([module.default], { type: "text/javascript" })));
  return new Worker(await text, { type: "module", name: "webinfer-player" });
}
