// Runs graphs for a page's WebNN contexts: {id, method, args} -> {id, value} or {id, error}; without an id there is no answer.

import { Processor } from "./webnn_cpu.js";

const processor = new Processor();
let queue = Promise.resolve(); // one after the other

self.addEventListener("message", ({ data }) => {
  queue = queue.then(() => work(data));
});

async function work({ id, method, args }) {
  try {
    const value = await processor[method](...args);
    if (id) self.postMessage({ id, value }, value instanceof ArrayBuffer ? [value] : []);
  } catch (error) {
    self.postMessage({ id, error: String(error.message ?? error) });
  }
}
