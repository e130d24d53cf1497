// The page's end of the engine's threads, which the engine's worker asks for (page_thread.js says why).

export class EngineThreads {
  #workers = new Map(); // id -> Worker
  #failed;

  /** `failed({id, message})` hears of a thread that could not be loaded, or fell over. */
  constructor(failed) {
    this.#failed = failed;
  }

  /** Starts a worker and hands it its end of the channel to the engine. */
  start({ id, url, name, port }) {
    const worker = new Worker(url, { type: "module", name });
    worker.onerror = (event) => {
      event.preventDefault();
      this.#failed({ id, message: event.message ?? `${url} cannot be loaded` });
    };
    worker.postMessage({ port }, [port]);
    this.#workers.set(id, worker);
  }

  end({ id }) {
    this.#workers.get(id)?.terminate();
    this.#workers.delete(id);
  }

  /** Ends all threads: their engine is gone. */
  endAll() {
    for (const id of [...this.#workers.keys()]) this.end({ id });
  }
}
