// What is looked at: the sample photo, a picture or a film of the user's, or the camera.

import { Camera, cameras, grab } from "../../media/camera.js";
import { byId } from "../../ui/dom.js";
import { watchFiles } from "../../media/drops.js";
import { Film, isFilm } from "../../media/film.js";
import { bitmapOf, openPicture } from "../../media/picture.js";
import { FileStrip } from "./file_strip.js";

/** Resolves when an image of the page has come; `decode` would wait until the page is seen. */
function loaded(image) {
  if (image.complete) return image.naturalWidth ? Promise.resolve() : Promise.reject(new Error("it did not arrive"));
  return new Promise((resolve, reject) => {
    image.addEventListener("load", resolve, { once: true });
    image.addEventListener("error", reject, { once: true });
  });
}

/**
 * The stage: shows one medium and hands its pictures to `engine`, each with the medium as its tag. `troubles` hears what
 * goes wrong, `changed` is called when another medium is shown. The sample photo may take `settings.stallTimeout` longer than the engine.
 */
export class Stage {
  #engine;
  #troubles;
  #changed;
  #stallTimeoutMs;
  #opened = 0; // counts what was asked for: only the last one may appear
  #camera;
  #film;
  #sampleUrl = byId("sample").src;
  #sample = loaded(byId("sample")); // settled when the photo has loaded or failed to
  #asking = new AbortController();
  #strip = new FileStrip(byId("strip"), (file) => this.#showFile(file));
  current = null; // {kind: "sample" | "picture" | "camera" | "video", element, image: () => Promise}

  constructor({ engine, troubles, settings, changed }) {
    this.#engine = engine;
    this.#troubles = troubles;
    this.#changed = changed;
    this.#stallTimeoutMs = settings.stallTimeout;
    this.#sample.catch(() => {}); // said where it is waited for
    const onFrame = (video) => this.#onFrame(video).catch((error) => troubles.show(error));
    this.#camera = new Camera(byId("video"), onFrame, (error) => {
      troubles.show(error);
      this.showSample();
    });
    this.#film = new Film(byId("video"), onFrame);
    watchFiles(byId("stage"), (files) => this.showFiles(files), (error) => troubles.show(error));
    byId("camera-choice").addEventListener("change", ({ target }) => this.#startCamera(target.value));
    navigator.mediaDevices?.addEventListener("devicechange", () => this.#offerCameras());
  }

  /** Whether pictures come by themselves. */
  get live() {
    return ["camera", "video"].includes(this.current?.kind);
  }

  /** Whether the current medium is shown as in a mirror. */
  get mirrored() {
    return this.current?.kind === "camera" && this.#camera.mirrored;
  }

  /** Shows one of the media and forgets what was found in the one before. */
  #show(id, medium) {
    for (const other of ["sample", "picture", "video"]) byId(other).hidden = other !== id;
    this.current = { ...medium, element: byId(id) };
    const filming = medium.kind === "camera";
    if (id !== "picture") this.#strip.begin([]);
    if (!filming) this.#camera.stop();
    if (medium.kind !== "video") this.#film.stop();
    byId("camera").setAttribute("aria-pressed", String(filming));
    byId("camera").textContent = filming ? "Stop the camera" : "Start the camera";
    this.#offerCameras();
    byId("video").classList.toggle("back", !this.mirrored);
    this.#changed();
  }

  /** Has the current picture looked at; the camera's come by themselves. What is wrong with it is said. */
  async detect() {
    const medium = this.current;
    if (this.live) return;
    try {
      const image = await medium.image();
      if (medium === this.current) this.#engine.detect(image, medium, false, medium.file);
      else image.close();
    } catch (error) {
      if (medium.kind === "sample") throw error; // `showSample` tells of it
      if (medium === this.current) this.#troubles.show({ code: "bad-image", message: `The picture cannot be read: ${error.message}` });
    }
  }

  /** Shows the sample photo, asked for again if it did not come. */
  async showSample() {
    const turn = ++this.#opened;
    const sample = byId("sample");
    if (sample.complete && !sample.naturalWidth) this.#askAgain();
    const came = this.#sample;
    this.#show("sample", { kind: "sample", image: () => came.then(() => bitmapOf(sample)) });
    let late = false;
    const timer = setInterval(() => {
      if (!this.#engine.ready || late) return; // what else is on its way is reported elsewhere
      late = true;
      this.#miss("has not arrived yet");
    }, this.#stallTimeoutMs);
    try {
      await came;
      if (turn !== this.#opened || came !== this.#sample) return;
      if (late) this.#troubles.forget();
      await this.detect();
    } catch {
      if (turn === this.#opened && came === this.#sample) this.#miss("could not be loaded");
    } finally {
      clearInterval(timer);
    }
  }

  #miss(fate) {
    const message = `The sample photo ${fate} from ${this.#sampleUrl}. Try again, or choose a picture of your own.`;
    this.#troubles.show({ code: "download", message }, { retry: true });
  }

  /** Asks for the sample photo past all who may still be waiting for it: the browser lets them wait for each other. */
  #askAgain() {
    this.#asking.abort();
    this.#asking = new AbortController();
    const { signal } = this.#asking;
    this.#sample = fetch(this.#sampleUrl, { cache: "reload", signal }).then(async (answer) => {
      if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
      byId("sample").src = URL.createObjectURL(await answer.blob());
      await loaded(byId("sample"));
    });
    this.#sample.catch(() => {}); // said where it is waited for
  }

  /** Asks again for what did not come. */
  renew() {
    if (!byId("sample").complete) this.#askAgain(); // `showSample` does so for one that came broken
    if (this.current.kind === "sample") this.showSample();
  }

  /** Plays the film in a file. */
  async #showFilm(file, turn) {
    this.#camera.stop();
    try {
      byId("video").hidden = false; // or some browsers would not play it
      await this.#film.play(file);
    } catch (error) {
      if (turn !== this.#opened) return;
      this.#troubles.show(error);
      return this.showSample();
    }
    if (turn !== this.#opened) return;
    this.#troubles.forget();
    byId("video").setAttribute("aria-label", `Your video ${file.name}`);
    this.#show("video", { kind: "video" });
    this.#engine.drop();
  }

  /** Shows the first of these files; of several pictures, all of them one after the other, with a strip to go back. */
  showFiles(files) {
    const pictures = files.filter((file) => !isFilm(file));
    this.#strip.begin([]);
    if (pictures.length > 1) this.#strip.begin(pictures);
    else this.#showFile(files[0]);
  }

  /** Takes over what was found in the picture at hand. */
  took(found) {
    this.#strip.took(found);
  }

  /** What was found in several files, or null. */
  get rows() {
    return this.#strip.rows;
  }

  /** Shows the picture in a file, or plays the film; promises whether it could. */
  async #showFile(file) {
    const turn = ++this.#opened;
    if (isFilm(file)) {
      await this.#showFilm(file, turn);
      return this.current.kind === "video";
    }
    let bitmap, size;
    try {
      ({ bitmap, size } = await openPicture(file));
    } catch (error) {
      if (turn === this.#opened) this.#troubles.show(error);
      return false;
    }
    if (turn !== this.#opened) {
      bitmap.close();
      return true;
    }
    this.#troubles.forget();
    this.#showBitmap(bitmap, file.name ? `Your picture ${file.name}` : "Your picture", size);
    await this.detect();
    return true;
  }

  /** `file`: width and height of the file that the bitmap is a smaller copy of. */
  #showBitmap(bitmap, label, file) {
    const canvas = byId("picture");
    canvas.width = bitmap.width;
    canvas.height = bitmap.height;
    canvas.getContext("2d").drawImage(bitmap, 0, 0);
    bitmap.close();
    canvas.setAttribute("aria-label", label);
    this.#show("picture", { kind: "picture", image: () => bitmapOf(canvas), file });
  }

  /** The picture that is shown, as an ImageBitmap; of a camera or a film the frame at hand, which then stays. */
  async still() {
    if (this.live) {
      const frame = await bitmapOf(byId("video"));
      this.#opened += 1;
      this.#showBitmap(frame, "The frame that was shown");
    }
    return this.current.image();
  }

  /** Starts the camera, or stops it and shows the sample photo. */
  async toggleLive() {
    this.#opened += 1;
    if (this.#camera.running) return this.showSample();
    await this.#startCamera();
  }

  /** Starts a camera, the browser's choice unless one is named; phones cannot open two at a time. */
  async #startCamera(device = "") {
    this.#film.stop();
    this.#camera.stop();
    try {
      if (!(await this.#camera.start(device))) return;
      this.#troubles.forget();
      byId("video").setAttribute("aria-label", "Your camera");
      this.#show("video", { kind: "camera" });
      this.#engine.drop();
    } catch (error) {
      this.#troubles.show(error);
      if (this.current?.kind === "camera") this.showSample(); // the other one was stopped for it
    }
  }

  /** Lists the cameras to choose from while one of several runs. */
  async #offerCameras() {
    const found = this.#camera.running ? await cameras() : [];
    byId("camera-choice").parentElement.hidden = found.length < 2 || !this.#camera.running;
    byId("camera-choice").replaceChildren(...found.map(({ id, name }) => new Option(name, id)));
    byId("camera-choice").value = this.#camera.device;
  }

  /** A frame of camera or film: looked at if the engine has nothing to do, else let go, so that no queue grows. */
  async #onFrame(video) {
    const medium = this.current;
    if (!this.live || !this.#engine.idle) return;
    const image = await grab(video);
    if (medium === this.current && this.#engine.idle) this.#engine.detect(image, medium, true);
    else image.close();
  }
}
