// One thread of the kernels' thread pool: an instance of the shared module that walks the programs thread 0 starts.
// It blocks inside WebAssembly for as long as the pool lives; the owner ends it with terminate(). Its owner speaks to it
// directly, or through a port that a page hands on.

const serve = (owner) => owner.addEventListener("message", async ({ data }) => {
  if (data.port) {
    serve(data.port);
    return data.port.start();
  }
  if (!data.memory) return undefined; // the player's worker has two roles, and got the other
  const { module, memory, pool, poisoned, thread, jobs, stackTop } = data;
  try {
    const { exports } = await WebAssembly.instantiate(module, { env: { memory } });
    exports.__stack_pointer.value = stackTop;
    owner.postMessage({ type: "ready", thread });
    exports.thread_pool_work(pool, thread, jobs);
    owner.postMessage({ type: "left", thread });
  } catch (error) {
    Atomics.store(new Int32Array(memory.buffer), poisoned, 1); // nobody needs to wait for this thread
    owner.postMessage({ type: "failed", thread, message: String(error) });
  }
}, { once: true });

serve(self);
