// A video file: plays over and over, one call per new frame.

import { eachFrame } from "./camera.js";

const ENDINGS = /\.(mp4|m4v|mov|mkv|webm|ogv)$/i; // of files whose type the system does not know

/** Whether a file is a film, by its type or its name. */
export function isFilm({ type, name }) {
  return type ? type.startsWith("video/") : ENDINGS.test(name);
}

/** A film that this browser cannot play; `code` and a readable `message`. */
export class FilmError extends Error {
  code = "bad-image";
}

/** Plays video files in an element: calls `onFrame(video)` for each new frame. */
export class Film {
  #video;
  #onFrame;
  #url = null;

  constructor(video, onFrame) {
    this.#video = video;
    this.#onFrame = onFrame;
  }

  /** Plays a file from its beginning; ends when its first picture is there, throws FilmError if there is none. */
  async play(file) {
    this.stop();
    const video = this.#video;
    const url = (this.#url = URL.createObjectURL(file));
    Object.assign(video, { src: url, loop: true, controls: true });
    try {
      await video.play();
    } catch {
      if (url !== this.#url) return;
      this.stop();
      throw new FilmError(`“${file.name}” (${file.type || "unknown type"}) is not a video that this browser can play. Choose an MP4 or WebM file.`);
    }
    eachFrame(video, () => url === this.#url, this.#onFrame);
  }

  /** Lets the film go. */
  stop() {
    if (!this.#url) return;
    URL.revokeObjectURL(this.#url);
    this.#url = null;
    this.#video.pause();
    this.#video.removeAttribute("src");
    this.#video.controls = false;
    this.#video.load();
  }
}
