// Tensors and graphs on the processor: each graph is a program in a memory of the kernels' module. Runs in a worker, or
// where there is none in the page itself. Knows no operator and no Python.

const MEMORIES = 8;
const PAGE = 65536; // bytes
const [FIRST_PAGES, MAX_PAGES] = [16, 32768];

export class Processor {
  #tensors = new Map(); // number -> bytes
  #graphs = new Map(); // number -> {module, facts, fixed}
  #memories = []; // {memory, exports, holds}: the one that was used last comes last

  create(number, nbytes) {
    this.#tensors.set(number, new Uint8Array(nbytes));
  }

  free(number) {
    this.#tensors.delete(number);
  }

  write(number, bytes) {
    this.#tensors.get(number)?.set(bytes);
  }

  /** As `write`, of bytes that nobody else has any more. */
  adopt(number, bytes) {
    if (this.#tensors.has(number)) this.#tensors.set(number, bytes);
  }

  /** What `use` makes of a tensor's bytes, which are there during its call. */
  read(number, use = (bytes) => bytes.slice().buffer) {
    return use(this.#tensors.get(number), false);
  }

  async load(number, graph) {
    this.#graphs.set(number, graph);
    if (graph.facts.kind === "here" || this.#memories.length >= MEMORIES) return;
    const memory = new WebAssembly.Memory({ initial: FIRST_PAGES, maximum: MAX_PAGES });
    const { exports } = await WebAssembly.instantiate(graph.module, { env: { memory } });
    this.#memories.unshift({ memory, exports, holds: 0 });
  }

  unload(number) {
    this.#graphs.get(number)?.close?.();
    this.#graphs.delete(number);
    const memory = this.#memories.find(({ holds }) => holds === number);
    if (memory) memory.holds = 0;
  }

  /** The bytes of a memory that holds the graph, and a function that runs it. A page has few memories: graphs take turns. */
  #resident(number) {
    const { facts, fixed, program, run: withThreads } = this.#graphs.get(number);
    const call = ({ run }) => run(facts.program, 0, facts.steps, 0, 1);
    if (facts.kind === "here") {
      const { memory, exports } = program;
      return { facts, bytes: new Uint8Array(memory.buffer), run: withThreads ?? (() => call(exports)) };
    }
    const found = this.#memories.find(({ holds }) => holds === number) ?? this.#memories[0];
    this.#memories.splice(this.#memories.indexOf(found), 1);
    this.#memories.push(found);
    const { memory, exports } = found;
    if (found.holds !== number) {
      const missing = Math.ceil((facts.top - memory.buffer.byteLength) / PAGE);
      if (missing > 0) memory.grow(missing);
      new Uint8Array(memory.buffer).set(fixed, facts.base);
      found.holds = number;
    }
    return { facts, bytes: new Uint8Array(memory.buffer), run: () => call(exports) };
  }

  /** Inputs in, one call, outputs out; `inputs` and `outputs` are tensors' numbers by name. */
  dispatch(number, inputs, outputs) {
    const { facts, bytes, run } = this.#resident(number);
    for (const [name, tensor] of Object.entries(inputs)) bytes.set(this.#tensors.get(tensor), facts.inputs[name][0]);
    run();
    for (const [name, tensor] of Object.entries(outputs)) {
      const [address, nbytes] = facts.outputs[name];
      this.#tensors.get(tensor)?.set(bytes.subarray(address, address + nbytes));
    }
  }
}

/** A worker that does what it is told in that order; contexts of a page share it. */
class Channel {
  #waiting = new Map();
  #next = 0;
  listeners = new Set(); // of who hears of its end

  constructor(url) {
    this.worker = new Worker(url, { type: "module", name: "webnn" });
    this.worker.onmessage = ({ data: { id, value, error } }) => {
      const answer = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (!answer) return error && this.#lost(error);
      if (error) answer.reject(new Error(error));
      else answer.resolve(value);
    };
    this.worker.onerror = (event) => {
      event.preventDefault();
      this.#lost(event.message || "the worker ended");
    };
  }

  #lost(message) {
    channel = null;
    this.worker.terminate();
    for (const listener of [...this.listeners]) listener(message);
  }

  tell(method, args, transfer = []) {
    this.worker.postMessage({ method, args }, transfer);
  }

  ask(method, args, transfer = []) {
    const id = ++this.#next;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.worker.postMessage({ id, method, args }, transfer);
    });
  }
}
let channel = null;

/** A Processor in a worker. */
export class RemoteProcessor {
  #channel;
  #lost;
  #held = { free: new Set(), unload: new Set() }; // tensors and graphs, by how they end

  /** `lost(message)` hears of the worker's end. */
  constructor(url, lost) {
    this.#channel = channel ??= new Channel(url);
    this.#lost = lost;
    this.#channel.listeners.add(lost);
  }

  #end(how, number) {
    if (this.#held[how].delete(number)) this.#channel.tell(how, [number]);
  }

  create(number, nbytes) {
    this.#held.free.add(number);
    this.#channel.tell("create", [number, nbytes]);
  }

  write(number, bytes) {
    const copy = bytes.slice();
    this.#channel.tell("adopt", [number, copy], [copy.buffer]);
  }

  load(number, graph) {
    this.#held.unload.add(number);
    return this.#channel.ask("load", [number, graph], [graph.fixed.buffer]);
  }

  free = (number) => this.#end("free", number);
  unload = (number) => this.#end("unload", number);
  read = async (number, use) => use(new Uint8Array(await this.#channel.ask("read", [number])), true);
  dispatch = (...args) => this.#channel.tell("dispatch", args);

  close() {
    this.#channel.listeners.delete(this.#lost);
    for (const [how, numbers] of Object.entries(this.#held)) for (const number of [...numbers]) this.#end(how, number);
  }
}
