// One thread of the kernels' thread pool: an instance of the shared module that walks the programs thread 0 starts.
// It blocks inside WebAssembly for as long as the pool lives; the owner ends it with terminate().

self.addEventListener("message", async ({ data }) => {
  const { module, memory, pool, poisoned, thread, jobs, stackTop } = data;
  try {
    const { exports } = await WebAssembly.instantiate(module, { env: { memory } });
    exports.__stack_pointer.value = stackTop;
    self.postMessage({ type: "ready", thread });
    exports.thread_pool_work(pool, thread, jobs);
    self.postMessage({ type: "left", thread });
  } catch (error) {
    Atomics.store(new Int32Array(memory.buffer), poisoned, 1); // nobody needs to wait for this thread
    self.postMessage({ type: "failed", thread, message: String(error) });
  }
}, { once: true });
