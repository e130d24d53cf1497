// A file of any kind is what is looked at: the sample, or one of the user's. Its ends are read, not all of it.

import { byId } from "../ui/dom.js";
import { watchFiles } from "../media/drops.js";
import { sampleFile } from "../startup/sample_file.js";

const END = 65_536; // bytes of each end that are read
const HEAD = 512; // bytes that are shown

/** As Stage (stage.js), for files. */
export class Source {
  #engine;
  #troubles;
  #settings;
  #progress;
  #changed;
  #opened = 0; // counts what was asked for: only the last one may appear
  current = { kind: "none" }; // {kind: "sample" | "file", given, about, paper}

  constructor({ engine, troubles, settings, progress, changed }) {
    Object.assign(this, { mirrored: false });
    [this.#engine, this.#troubles, this.#settings, this.#progress, this.#changed] = [engine, troubles, settings, progress, changed];
    watchFiles(byId("stage"), (files) => this.showFiles(files), (error) => troubles.show(error));
  }

  async #show(kind, file, turn) {
    const parts = file.size > 2 * END ? [file.slice(0, END), file.slice(-END)] : [file];
    const data = await new Blob(parts).arrayBuffer();
    if (turn !== this.#opened) return;
    const head = new Uint8Array(data, 0, Math.min(HEAD, data.byteLength));
    const { name, size } = file;
    this.current = { kind, given: { data }, about: { name, bytes: size }, paper: { name, bytes: size, head } };
    this.#changed();
    await this.detect();
  }

  /** Has the file looked at. */
  async detect() {
    if (this.current.given) this.#engine.detect(this.current.given, this.current, false);
  }

  /** Shows the sample. */
  async showSample() {
    const turn = ++this.#opened;
    try {
      await this.#show("sample", await sampleFile(this.#settings, (told) => this.#progress.show(told)), turn);
    } catch ({ message }) {
      const told = `Could not load the sample: ${message} Choose a file of your own.`;
      if (turn === this.#opened) this.#troubles.show({ code: "download", message: told }, { retry: true });
    }
  }

  /** Shows a file of the user's. */
  async showFiles([file]) {
    const turn = ++this.#opened;
    try {
      await this.#show("file", file, turn);
      this.#troubles.forget();
    } catch {
      if (turn === this.#opened) this.#troubles.show({ code: "input", message: `“${file.name}” cannot be read: it may be a folder, or open in another program.` });
    }
  }

  /** Asks again for what did not come. */
  renew() {
    if (this.current.kind === "none") this.showSample();
  }

  /** The file's bytes, for the engine. */
  async still() {
    if (!this.current.given) throw new Error("there is no file");
    return this.current.given;
  }
}
