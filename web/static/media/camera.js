// The webcam: start, stop, one call per new frame, and a readable reason when there is none.

import { CodedError } from "../engine/coded_error.js";

const REASONS = {
  NotAllowedError: ["camera-denied", "This page is not allowed to use the camera. Allow it in the address bar's site settings, then start it again."],
  SecurityError: ["camera-denied", "This page is not allowed to use the camera. Allow it in the address bar's site settings, then start it again."],
  NotFoundError: ["no-camera", "No camera was found. Connect one, or choose a picture instead."],
  OverconstrainedError: ["no-camera", "No suitable camera was found. Connect one, or choose a picture instead."],
  NotReadableError: ["camera-busy", "The camera could not be opened. Another program may be using it: close that, then start it again."],
  AbortError: ["camera-busy", "The camera stopped while it was being opened. Start it again."],
};

/** Why the camera could not be opened; `code` and a readable `message`. */
export class CameraError extends CodedError {}

/** A picture of the video as it is now, that can be handed to a worker. */
export function grab(video) {
  return "VideoFrame" in self ? Promise.resolve(new VideoFrame(video)) : createImageBitmap(video);
}

/** The cameras of this device, {id, name}. Browsers name them once one has been allowed. */
export async function cameras() {
  const found = await navigator.mediaDevices.enumerateDevices();
  return found.filter(({ kind }) => kind === "videoinput").map(({ deviceId, label }, at) => ({ id: deviceId, name: label || `Camera ${at + 1}` }));
}

/** Calls `onFrame(video)` for each new frame as long as it is `wanted()`. */
export function eachFrame(video, wanted, onFrame) {
  const again = video.requestVideoFrameCallback?.bind(video) ?? requestAnimationFrame;
  const tick = () => {
    if (!wanted()) return;
    if (video.videoWidth) onFrame(video);
    again(tick);
  };
  again(tick);
}

/** The webcam: calls `onFrame(video)` for each new frame, and `onEnd(error)` if it goes away. */
export class Camera {
  #video;
  #onFrame;
  #onEnd;
  #stream = null;
  #wanted = 0; // counts starts and stops, so that a late answer of the browser finds itself outdated

  constructor(video, onFrame, onEnd) {
    this.#video = video;
    this.#onFrame = onFrame;
    this.#onEnd = onEnd;
  }

  /** Whether frames come. */
  get running() {
    return this.#stream !== null;
  }

  /** Whether the picture should be shown as in a mirror: every camera but the one on the back. */
  get mirrored() {
    return this.#stream?.getVideoTracks()[0]?.getSettings().facingMode !== "environment";
  }

  /** The camera that runs, as the browser calls it. */
  get device() {
    return this.#stream?.getVideoTracks()[0]?.getSettings().deviceId ?? "";
  }

  /** True once the camera runs, false if it was stopped meanwhile; `device`: which one, else the browser's choice. Throws CameraError. */
  async start(device = "") {
    if (!navigator.mediaDevices?.getUserMedia) {
      throw new CameraError("no-camera", "Cameras need a secure address: open this page over https or on localhost.");
    }
    const turn = ++this.#wanted;
    let stream;
    try {
      const which = device ? { deviceId: { exact: device } } : {};
      stream = await navigator.mediaDevices.getUserMedia({ video: { width: { ideal: 1280 }, height: { ideal: 720 }, ...which } });
    } catch (error) {
      throw new CameraError(...(REASONS[error.name] ?? ["camera-busy", `The camera could not be opened: ${error.message}.`]));
    }
    if (turn !== this.#wanted) {
      for (const track of stream.getTracks()) track.stop();
      return false;
    }
    this.#stream = stream;
    stream.getVideoTracks()[0].addEventListener("ended", () => {
      this.stop();
      this.#onEnd(new CameraError("camera-busy", "The camera was disconnected."));
    });
    this.#video.srcObject = stream;
    await this.#video.play();
    eachFrame(this.#video, () => turn === this.#wanted, this.#onFrame);
    return true;
  }

  /** Lets the camera go. */
  stop() {
    this.#wanted += 1;
    if (!this.#stream) return; // a film that plays in the same element goes on
    for (const track of this.#stream.getTracks()) track.stop();
    this.#stream = null;
    this.#video.srcObject = null;
  }
}
