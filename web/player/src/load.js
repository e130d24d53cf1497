// Loads a package where it is asked for: on the page's thread, or in a worker.

import { PlayerError, typed } from "./errors.js";
import { openGpu } from "./gpu.js";
import { Model } from "./model.js";
import { PackageFile } from "./package_file.js";
import { RemoteModel } from "./remote.js";

const BACKENDS = ["auto", "webgpu", "wasm"];
const DEFAULTS = { backend: "auto", threads: 1, onProgress() {}, onLost() {} };

/** As `load` of player.js. `starters`: functions that start a worker of the player, in the order to try them. */
export async function loadWith(starters, source, options) {
  const chosen = { ...DEFAULTS, ...options };
  checkOptions(chosen);
  try {
    return await opened(source, chosen, starters(chosen.workerUrl));
  } catch (error) {
    throw typed(error, "package");
  }
}

async function opened(source, chosen, starters) {
  const gpuFirst = ["auto", "webgpu"].includes([chosen.backend].flat()[0]) && globalThis.navigator?.gpu;
  const remote = (chosen.worker ?? (chosen.threads > 1 && globalThis.crossOriginIsolated)) && !globalThis.WorkerGlobalScope;
  const gpu = gpuFirst && !remote ? openGpu() : undefined; // while the file is on its way
  gpu?.catch(() => {});
  try {
    const bytes = await bytesOf(source, chosen.onProgress);
    if (remote) return await RemoteModel.open(starters, bytes, chosen);
    return await new Model(await PackageFile.open(bytes), { ...chosen, starters }).start(gpu);
  } catch (error) {
    gpu?.then((device) => device.close(), () => {});
    throw error;
  }
}

function checkOptions({ backend, threads }) {
  const names = [backend].flat();
  if (!names.length || names.some((name) => !BACKENDS.includes(name))) {
    throw new PlayerError("input", `backend is ${String(backend)}; choose ${BACKENDS.join(", ")}, or a list`);
  }
  if (!Number.isInteger(threads) || threads < 1) throw new PlayerError("input", `threads is ${String(threads)}, needs a number from 1 up`);
}

async function bytesOf(source, onProgress) {
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  if (source instanceof Blob) return new Uint8Array(await source.arrayBuffer());
  if (!source || !["string", "object"].includes(typeof source)) {
    throw new PlayerError("input", `the source is ${String(source)}, needs an address, bytes, a Blob or a Response`);
  }
  const response = source instanceof Response ? source : await fetch(source).catch((error) => {
    throw new PlayerError("network", `${source.url ?? source} cannot be fetched: ${error.message}`, error);
  });
  if (!response.ok) throw new PlayerError("network", `${response.url}: the server answered ${response.status}`);
  if (!response.body || response.bodyUsed) throw new PlayerError("input", `the Response of ${response.url} has no bytes left to read`);
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
