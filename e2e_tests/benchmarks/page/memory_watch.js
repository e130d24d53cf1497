// Sums the WebAssembly memories of this worker, no matter which code creates them. Memory only grows, so the sum at the end
// is the peak. Install before the system's own code runs. Shared memories count here once: their owner's worker.

const memories = new Set();

function keepExported(instance) {
  for (const item of Object.values(instance.exports)) if (item instanceof WebAssembly.Memory) memories.add(item);
}

/** Wraps the constructors and functions that make memories. */
export function watchMemories() {
  const { Memory, Instance, instantiate, instantiateStreaming } = WebAssembly;
  WebAssembly.Memory = new Proxy(Memory, {
    construct(target, args) {
      const memory = new target(...args);
      memories.add(memory);
      return memory;
    },
  });
  WebAssembly.Instance = new Proxy(Instance, {
    construct(target, args) {
      const instance = new target(...args);
      keepExported(instance);
      return instance;
    },
  });
  const kept = (make) => async (...args) => {
    const made = await make.apply(WebAssembly, args);
    keepExported(made.instance ?? made);
    return made;
  };
  WebAssembly.instantiate = kept(instantiate);
  WebAssembly.instantiateStreaming = kept(instantiateStreaming);
}

/** Bytes of all WebAssembly memories seen so far. */
export function wasmBytes() {
  let total = 0;
  for (const memory of memories) total += memory.buffer.byteLength;
  return total;
}
