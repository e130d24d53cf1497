// The page's end of the engine's threads, which the engine's worker asks for (page_thread.js says why).

export class EngineThreads {
  #workers = new Map(); // id -> Worker
  #script;
  #failed;

  /** `script()` is the address of the threads' script; `failed({id, message})` hears of one that was not loaded, or fell over. */
  constructor(script, failed) {
    [this.#script, this.#failed] = [script, failed];
  }

  /** Starts a worker and hands it its end of the channel to the engine. No other script: code from links runs in the engine. */
  start({ id, url, name, port }) {
    if (new URL(url, document.baseURI).href !== new URL(this.#script(), document.baseURI).href) {
      return this.#failed({ id, message: `${url} is not the script of the engine's threads` });
    }
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
