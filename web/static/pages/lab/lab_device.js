// A device of the lab: questions come over a WebSocket and go to the engine; its steps and answers go back.

import { read, written } from "./lab_frames.js";

const MAY = new Set(["open", "plan", "graph", "run", "time", "profile", "verify", "tune", "export_tuning", "import_tuning"]);
const STEP_MS = 50; // between two steps that are told
const MOST_WAITING = 1 << 20; // bytes that wait to be sent, beyond which steps are left out

export class LabDevice {
  #socket;
  #calls;
  #on;
  #stepped = 0; // when the last step was told
  #told = null; // why the lab ended the connection

  /**
   * `calls` asks the engine. `on.here(name)` hears that the device is in the lab, `on.driven(by)` which program drives it
   * (null: none any more), `on.asked(action, fields)` of each question, `on.step(step, action)` how far it is,
   * `on.answered(error)` of its end, `on.gone({code, message})` of the end of all.
   */
  constructor(calls, { token, name, about }, on) {
    this.#calls = calls;
    this.#on = on;
    const address = new URL(`/api/lab/join?name=${encodeURIComponent(name)}`, location.href);
    address.protocol = address.protocol.replace("http", "ws");
    address.hash = "";
    this.#socket = new WebSocket(address, ["webinfer.lab", `token.${token}`]);
    this.#socket.binaryType = "arraybuffer";
    this.#socket.onopen = () => this.#send({ type: "hello", about });
    this.#socket.onmessage = ({ data }) => this.#hear(read(data));
    this.#socket.onclose = ({ code }) => {
      const why = code === 1009 ? "a message was larger than the lab allows" : "the connection to the lab ended";
      this.#ended(this.#told ?? { code: "lab", message: `This browser is no longer a device: ${why}.` });
    };
  }

  /** Leaves the lab; what is under way ends at its next step. */
  stop() {
    this.#ended(null);
    this.#socket.close();
  }

  #ended(why) {
    if (!this.#on) return;
    const { gone } = this.#on;
    this.#on = null;
    this.#calls.stop();
    if (why) gone(why);
  }

  #send(message, buffers) {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(written(message, buffers));
  }

  #hear(message) {
    if (!this.#on) return;
    if (message.type === "welcome") this.#on.here(message.name);
    else if (message.type === "controlled") this.#on.driven(message.by);
    else if (message.type === "released") this.#on.driven(null);
    else if (message.type === "stop") this.#calls.stop();
    else if (message.type === "error") this.#told = message;
    else if (message.type === "ask") this.#ask(message);
  }

  async #ask({ id, action, fields }) {
    this.#stepped = -Infinity; // what begins is told at once
    this.#on.asked(action, fields);
    try {
      if (!MAY.has(action)) throw Object.assign(new Error(`a device has no action called “${action}”`), { code: "input" });
      const { buffers, ...answer } = await this.#calls.ask(action, fields, (step) => this.#step(id, action, step));
      this.#send({ type: "answer", id, answer }, buffers);
      this.#on?.answered(null);
    } catch ({ code = "internal", message }) {
      this.#send({ type: "error", id, code, message });
      this.#on?.answered({ code, message });
    }
  }

  #step(id, action, step) {
    const now = performance.now();
    if (now < this.#stepped + STEP_MS && step.done < step.total) return;
    this.#stepped = now;
    this.#on?.step(step, action);
    if (this.#socket.bufferedAmount < MOST_WAITING) this.#send({ type: "step", id, ...step });
  }
}
