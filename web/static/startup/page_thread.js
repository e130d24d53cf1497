// A worker that the page starts for the engine's worker: in Firefox (153 at least) a worker that starts another stands
// still for ever now and then. Python (webinfer.host.thread_pool) takes it for a Worker.

const threads = new Map(); // id -> PageThread
let count = 0;

export class PageThread extends EventTarget {
  #id = ++count;
  #post;
  #port;

  /** `post(type, fields, transfer)` tells the page; engine_threads.js hears it there. */
  constructor(url, name, post) {
    super();
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    this.#port.onmessage = ({ data }) => this.#tell({ data });
    this.#post = post;
    threads.set(this.#id, this);
    post("thread", { id: this.#id, url, name, port: port2 }, [port2]);
  }

  /** Passes on what the page says of a thread that failed: it has `id` and `message`. */
  static failed({ id, message }) {
    threads.get(id)?.#tell({ message }, "error");
  }

  #tell(fields, type = "message") {
    this.dispatchEvent(Object.assign(new Event(type), fields));
  }

  postMessage(message) {
    this.#port.postMessage(message);
  }

  /** Ends it. Nothing that is on its way from it is heard. */
  terminate() {
    if (!threads.delete(this.#id)) return;
    this.#port.onmessage = null;
    this.#port.close();
    this.#post("endThread", { id: this.#id });
  }
}
