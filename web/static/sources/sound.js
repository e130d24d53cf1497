// A recording is what is looked at: the sample, a file of the user's, or what the microphone hears.

import { CodedError } from "../engine/coded_error.js";
import { byId } from "../ui/dom.js";
import { watchFiles } from "../media/drops.js";
import { Microphone } from "../media/microphone.js";
import { joined, peaksOf, waveFile } from "../media/samples.js";
import { sampleFile } from "../startup/sample_file.js";

const RATE = 16_000; // samples a second that files are decoded to
const MOST_BYTES = 200e6; // of a file
const MOST_S = 1_800; // of a recording
const LISTEN_S = 60; // after which the microphone is let go

/** A recording that cannot be listened to; `code` and a readable `message`. */
class SoundError extends CodedError {
  constructor(message, code = "bad-sound") {
    super(code, message);
  }
}

/** The samples of a sound file, mixed to one channel; throws SoundError. */
async function decoded(file) {
  const name = `“${file.name}”`;
  if (file.size > MOST_BYTES) throw new SoundError(`${name} has ${(file.size / 1e6).toFixed(0)} MB; this page takes up to ${MOST_BYTES / 1e6}.`, "limit");
  let sound;
  try {
    sound = await new OfflineAudioContext(1, 1, RATE).decodeAudioData(await file.arrayBuffer());
  } catch {
    throw new SoundError(`${name} (${file.type || "unknown type"}) is not a sound that this browser can read. Choose a WAV, MP3, Ogg, FLAC or M4A file.`);
  }
  if (sound.duration > MOST_S) throw new SoundError(`${name} lasts ${(sound.duration / 60).toFixed(0)} minutes; this page takes up to ${MOST_S / 60}.`, "limit");
  const mixed = new Float32Array(sound.length);
  for (let channel = 0; channel < sound.numberOfChannels; channel += 1) {
    sound.getChannelData(channel).forEach((value, i) => (mixed[i] += value / sound.numberOfChannels));
  }
  return mixed;
}

/** As Stage (stage.js), for sounds. */
export class Source {
  #engine;
  #troubles;
  #settings;
  #progress;
  #changed;
  #redraw;
  #opened = 0; // counts what was asked for: only the last one may appear
  #microphone = null; // Microphone, while it is heard
  #heard = []; // its blocks of samples
  #sent = 0; // how many of them the engine has
  #url = ""; // of what the player plays
  current = { kind: "none" }; // {kind: "sample" | "recording" | "microphone", given, about, paper}

  constructor({ engine, troubles, settings, progress, changed, redraw }) {
    Object.assign(this, { mirrored: false });
    [this.#engine, this.#troubles, this.#settings, this.#progress] = [engine, troubles, settings, progress];
    [this.#changed, this.#redraw] = [changed, redraw];
    watchFiles(byId("stage"), (files) => this.showFiles(files), (error) => troubles.show(error));
    const player = byId("player");
    const mark = () => {
      const part = player.currentTime / (this.current.about?.seconds || 1);
      byId("playhead").hidden = !player.currentTime || this.current.kind === "microphone";
      byId("playhead").style.left = `${100 * Math.min(1, part)}%`;
      if (!player.paused) requestAnimationFrame(mark);
    };
    for (const type of ["play", "seeked", "pause"]) player.addEventListener(type, mark);
    byId("stage").addEventListener("click", ({ offsetX }) => {
      if (player.hidden) return;
      player.currentTime = (offsetX / byId("stage").clientWidth) * this.current.about.seconds;
    });
  }

  /** Shows samples, which `file` holds, too, and has them listened to. */
  #show(kind, samples, rate, file, name) {
    const seconds = samples.length / rate;
    this.current = { kind, given: { samples, rate }, about: { name, seconds }, paper: { peaks: peaksOf(samples), seconds } };
    URL.revokeObjectURL(this.#url);
    Object.assign(byId("player"), { src: (this.#url = URL.createObjectURL(file)), hidden: false });
    byId("playhead").hidden = true;
    this.#changed();
    this.detect();
  }

  /** Has the current recording listened to; the microphone's comes by itself. */
  async detect() {
    if (this.current.given) this.#engine.detect(this.current.given, this.current, false);
  }

  /** Shows the sample. */
  async showSample() {
    this.#letGo();
    const turn = ++this.#opened;
    try {
      const file = await sampleFile(this.#settings, (told) => this.#progress.show(told));
      const samples = await decoded(file);
      if (turn === this.#opened) this.#show("sample", samples, RATE, file, "the sample");
    } catch ({ message }) {
      const told = `Could not load the sample: ${message} Choose a recording of your own, or record one.`;
      if (turn === this.#opened) this.#troubles.show({ code: "download", message: told }, { retry: true });
    }
  }

  /** Shows the recording in a file. */
  async showFiles([file]) {
    this.#letGo();
    const turn = ++this.#opened;
    try {
      const samples = await decoded(file);
      if (turn !== this.#opened) return;
      this.#troubles.forget();
      this.#show("recording", samples, RATE, file, file.name);
    } catch (error) {
      if (turn === this.#opened) this.#troubles.show(error);
    }
  }

  /** Asks again for what did not come. */
  renew() {
    if (this.current.kind === "none") this.showSample();
  }

  /** The recording that is shown, for the engine; what the microphone has heard then stays. */
  async still() {
    if (this.#microphone) this.#keep();
    if (!this.current.given) throw new Error("there is no recording");
    return this.current.given;
  }

  /** Listens to the microphone, or ends that and keeps what it heard. */
  async toggleLive() {
    if (this.#microphone) return this.#keep();
    const turn = ++this.#opened;
    const microphone = new Microphone((block) => this.#hear(block), (error) => {
      this.#troubles.show(error);
      this.#keep();
    });
    try {
      await microphone.start(RATE);
    } catch (error) {
      return this.#troubles.show(error);
    }
    if (turn !== this.#opened) return microphone.stop();
    this.#microphone = microphone;
    [this.#heard, this.#sent] = [[], 0];
    this.#troubles.forget();
    byId("player").pause();
    this.current = { kind: "microphone", about: { name: "the microphone", seconds: 0 }, paper: { peaks: new Float32Array(2), seconds: 0 } };
    this.#button(true);
    this.#changed();
  }

  #button(recording) {
    const button = document.querySelector("[data-live]");
    button.setAttribute("aria-pressed", String(recording));
    button.textContent = recording ? "Stop recording" : "Record";
    byId("player").hidden = recording || !byId("player").src;
  }

  /** A block of the microphone: goes to the engine with those before it when that has nothing else to do. */
  #hear(block) {
    const { rate } = this.#microphone;
    this.#heard.push(block);
    const all = joined(this.#heard);
    const seconds = all.length / rate;
    Object.assign(this.current.about, { seconds });
    Object.assign(this.current.paper, { peaks: peaksOf(all), seconds });
    this.#redraw();
    if (seconds >= LISTEN_S) return this.#keep();
    if (!this.#engine.idle) return;
    const follows = rate === RATE; // else the engine changes the rate, which needs all of it
    const samples = follows ? joined(this.#heard.slice(this.#sent)) : all;
    this.#sent = this.#heard.length;
    this.#engine.detect({ samples, rate }, this.current, follows);
  }

  /** Lets the microphone go and shows what it heard. */
  #keep() {
    const { rate } = this.#microphone;
    this.#letGo();
    const samples = joined(this.#heard);
    if (samples.length) this.#show("recording", samples, rate, waveFile(samples, rate), "your recording");
    else this.showSample();
  }

  #letGo() {
    if (!this.#microphone) return;
    this.#opened += 1;
    this.#microphone.stop();
    this.#microphone = null;
    this.#engine.drop();
    this.#button(false);
  }
}
