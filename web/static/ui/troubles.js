// What the page says when something went wrong or takes long, in one place, and whether it can be tried again.

import { hideMessage, showMessage } from "./panels.js";

const root = document.documentElement;
const TITLES = {
  address: "That is not the address of a model",
  "backend-unavailable": "This backend cannot run here",
  "bad-image": "That is not a picture",
  "bad-sound": "That is not a sound",
  "camera-busy": "The camera is not available",
  "camera-denied": "The camera is not allowed",
  "no-camera": "There is no camera",
  closed: "The model was closed",
  compiler: "The engine could not prepare the model",
  "cross-origin": "Could not read the file from its site",
  "device-lost": "The graphics processor was lost",
  download: "A part of the engine could not be loaded",
  "engine-died": "The engine stopped",
  "engine-silent": "The engine does not answer",
  "engine-start": "The engine could not start",
  file: "This page was opened as a file",
  full: "The lab accepts no more devices",
  gpu: "The graphics processor rejected the work",
  input: "This input cannot be processed",
  integrity: "A file differs from the published one",
  internal: "Internal error in the engine",
  isolation: "This page cannot have threads",
  kernel: "The engine’s kernels failed",
  lab: "This browser is no longer a device",
  limit: "That is too large",
  "model-format": "The model cannot be read",
  "model-missing": "Could not download the model",
  "model-unknown": "There is no such model",
  "microphone-busy": "The microphone is not available",
  "microphone-denied": "The microphone is not allowed",
  "no-microphone": "There is no microphone",
  name: "This name is not allowed",
  "name-taken": "Another device has this name",
  "out-of-memory": "There is not enough memory",
  policy: "A security policy refuses the engine",
  protocol: "The page and the engine do not match",
  sandbox: "This page is in a sandboxed frame",
  shape: "The model is inconsistent",
  stopped: "It was stopped",
  "unsupported-op": "The model needs features that the engine lacks",
  webassembly: "This browser cannot run the engine",
  worker: "The engine could not start",
};

/**
 * Three things may be the matter at once: an error that the user can close, an engine that has ended, an engine that
 * lets wait. The first of them is shown; the button to try again is there as long as it can help with any.
 */
export class Troubles {
  #error = null; // {code, message, severe, retry}
  #end = null; // {code, message}: why there is no engine
  #slow = null; // seconds

  /** Shows an error; `retry`: trying again can help; not `severe`: the page goes on by itself. */
  show({ code = "page", message }, { severe = true, retry = false } = {}) {
    this.#error = { code, message, severe, retry };
    this.#tell();
  }

  /** Shows why there is no engine, until it is started again. */
  ended({ code, message }) {
    this.#end = { code, message, severe: true, retry: true };
    this.#error = this.#slow = null;
    this.#tell();
  }

  /** Says that nothing has come from the engine for so many seconds; null: now it has. */
  slow(seconds) {
    this.#slow = seconds;
    this.#tell();
  }

  /** Whether only another engine can help. */
  get stuck() {
    return Boolean(this.#end ?? this.#slow);
  }

  /** Forgets the error. */
  forget() {
    this.#error = null;
    this.#tell();
  }

  /** Forgets everything: it is tried again. */
  forgetAll() {
    this.#error = this.#end = this.#slow = null;
    this.#tell();
  }

  #tell() {
    const { code, message, severe, retry } = this.#error ?? this.#end ?? {};
    if (!code) delete root.dataset.webinferError;
    else root.dataset.webinferError = JSON.stringify({ code, message });
    const more = { retry: retry || this.stuck, close: Boolean(this.#error) };
    if (code) showMessage({ title: TITLES[code] ?? "Something went wrong", text: message, severe, ...more });
    else if (this.#slow) showMessage({ title: "This is taking a long time", text: slowly(this.#slow), severe: false, ...more });
    else hideMessage();
  }
}

const slowly = (seconds) => `No data has arrived from the engine for ${seconds} seconds. The network or this device may be slow: wait, or try again.`;
