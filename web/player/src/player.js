// The player: runs models that `webinfer compile` wrote, in pages without Python. See README.md.

import { PlayerError } from "./errors.js";
import { openGpu } from "./gpu.js";
import { whyOneThread } from "./kernels.js";
import { Model } from "./model.js";
import { PackageFile } from "./package_file.js";
import { IN_WORKER, RemoteModel, serve } from "./remote.js";

export { PlayerError };

const BACKENDS = ["auto", "webgpu", "wasm"];

/**
 * A model that is ready. `source` is the address of a `.webinfer` file, its bytes, a Blob or a Response. Options:
 * `backend` "auto", "webgpu", "wasm" or a list to try in order; `threads` for the processor (1); `worker` true to run
 * beside the page's own thread; `onProgress({stage, done, total})`; `onLost(reason)`.
 */
export async function load(source, options = {}) {
  const chosen = {
    backend: "auto", threads: 1, onProgress() {}, onLost() {},
    workerUrl: new URL("./thread_worker.js", import.meta.url).href, ...options,
  };
  checkOptions(chosen);
  const gpuFirst = ["auto", "webgpu"].includes([chosen.backend].flat()[0]) && navigator.gpu;
  const remote = (options.worker ?? (chosen.threads > 1 && globalThis.crossOriginIsolated)) && !globalThis.WorkerGlobalScope;
  const gpu = gpuFirst && !remote ? openGpu() : undefined; // while the file is on its way
  gpu?.catch(() => {});
  try {
    const bytes = await bytesOf(source, chosen.onProgress);
    if (remote) return await RemoteModel.open(new URL(import.meta.url), bytes, chosen);
    return await new Model(await PackageFile.open(bytes), chosen).start(gpu);
  } catch (error) {
    gpu?.then((device) => device.close(), () => {});
    throw error;
  }
}

/** What this browser can run packages on, and what keeps it from more. */
export async function capabilities() {
  const adapter = await navigator.gpu?.requestAdapter().catch(() => null);
  return { webgpu: Boolean(adapter), wasm: typeof WebAssembly === "object", threads: Boolean(globalThis.crossOriginIsolated), why: whyOneThread() };
}

function checkOptions({ backend, threads }) {
  const names = [backend].flat();
  if (!names.length || names.some((name) => !BACKENDS.includes(name))) {
    throw new PlayerError("input", `backend is ${backend}; choose ${BACKENDS.join(", ")}, or a list`);
  }
  if (!Number.isInteger(threads) || threads < 1) throw new PlayerError("input", `threads is ${threads}, needs a number from 1 up`);
}

async function bytesOf(source, onProgress) {
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  if (source instanceof Blob) return new Uint8Array(await source.arrayBuffer());
  const response = source instanceof Response ? source : await fetch(source).catch((error) => {
    throw new PlayerError("network", `${source} cannot be fetched: ${error.message}`, error);
  });
  if (!response.ok) throw new PlayerError("network", `${response.url}: the server answered ${response.status}`);
  const total = Number(response.headers.get("Content-Encoding") ? 0 : response.headers.get("Content-Length"));
  const parts = [];
  let done = 0;
  for (const reader = response.body.getReader(); ; ) {
    const part = await reader.read().catch((error) => {
      throw new PlayerError("network", `${response.url} ended early: ${error.message}`, error);
    });
    if (part.done) return new Uint8Array(await new Blob(parts).arrayBuffer());
    parts.push(part.value);
    onProgress({ stage: "download", done: (done += part.value.length), total });
  }
}

if (IN_WORKER) serve(load);
