// The microphone: start, stop, blocks of samples, and a readable reason when there is none.

import { CodedError } from "../engine/coded_error.js";
import { byId } from "../ui/dom.js";
import { joined } from "./samples.js";

const BLOCK_S = 0.1; // that are handed on at a time
const ALLOW = "This page is not allowed to use the microphone. Allow it in the address bar's site settings, then record again.";
const REASONS = {
  NotAllowedError: ["microphone-denied", ALLOW],
  SecurityError: ["microphone-denied", ALLOW],
  NotFoundError: ["no-microphone", "No microphone was found. Connect one, or choose a recording instead."],
  NotReadableError: ["microphone-busy", "The microphone could not be opened. Another program may be using it: close that, then record again."],
};

/** Why the microphone could not be opened; `code` and a readable `message`. */
export class MicrophoneError extends CodedError {}

/** The microphone: calls `onBlock(samples)` again and again, and `onEnd(error)` if it goes away. */
export class Microphone {
  #onBlock;
  #onEnd;
  #stream = null;
  #context = null;
  rate = 0; // samples a second, once it runs

  constructor(onBlock, onEnd) {
    this.#onBlock = onBlock;
    this.#onEnd = onEnd;
  }

  /** Begins, with so many samples a second where the browser can change their rate; throws MicrophoneError. */
  async start(rate) {
    if (!navigator.mediaDevices?.getUserMedia) {
      throw new MicrophoneError("no-microphone", "Microphones need a secure address: open this page over https or on localhost.");
    }
    try {
      this.#stream = await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1 } });
    } catch (error) {
      throw new MicrophoneError(...(REASONS[error.name] ?? ["microphone-busy", `The microphone could not be opened: ${error.message}.`]));
    }
    this.#stream.getAudioTracks()[0].addEventListener("ended", () => this.#onEnd(new MicrophoneError("microphone-busy", "The microphone was disconnected.")));
    const source = this.#source(rate);
    const { url } = JSON.parse(byId("manifest").textContent).assets["static/microphone_worklet.js"];
    await this.#context.audioWorklet.addModule(new URL(url, document.baseURI));
    const node = new AudioWorkletNode(this.#context, "microphone", { numberOfOutputs: 0 });
    let waiting = [];
    let count = 0;
    node.port.onmessage = ({ data }) => {
      waiting.push(data);
      count += data.length;
      if (!this.#stream || count < BLOCK_S * this.rate) return;
      this.#onBlock(joined(waiting));
      [waiting, count] = [[], 0];
    };
    source.connect(node);
  }

  /** The stream in a context of the wanted rate, or of the device's where a browser cannot change it. */
  #source(rate) {
    for (const options of [{ sampleRate: rate }, {}]) {
      this.#context = new AudioContext(options);
      this.rate = this.#context.sampleRate;
      try {
        return this.#context.createMediaStreamSource(this.#stream);
      } catch {
        this.#context.close();
      }
    }
    this.stop();
    throw new MicrophoneError("microphone-busy", "This browser cannot read the microphone's sound.");
  }

  /** Lets the microphone go. */
  stop() {
    for (const track of this.#stream?.getTracks() ?? []) track.stop();
    this.#stream = null;
    if (this.#context?.state !== "closed") this.#context?.close();
  }
}
