// The face detector of the home page: a compiled model in a worker, without Python, on a sample or the camera. It starts
// by itself once the page has loaded and its picture is seen, but not where people asked for less motion or less data.

import "../../startup/trusted_types.js";
import { Camera } from "../../media/camera.js";
import { byId, counted, say } from "../../ui/dom.js";
import { viewOn } from "../../ui/overlay.js";

const PLACES = { wasm: "the CPU", webgpu: "the GPU" };
const IDLE_MS = 3_000; // the longest that a busy page is waited for
const RATE_MS = 500; // between two figures of the camera, so that they can be read

const box = byId("live");
const figure = box?.querySelector("figure");
const [run, next, cameraButton, status, rate] = ["live-run", "live-next", "live-camera", "live-status", "live-rate"].map(byId);
const medium = { picture: figure?.querySelector("img"), camera: figure?.querySelector("video") };
let model = null; // promise of it, once it was asked for
let shown = null; // what was found last, and in what: {found, picture, element}
let busy = false; // whether a frame is being looked at
let pictures = null; // that are to come, when others than the first were asked for
let camera = null;
let toldAt = 0;

/** Whether people have asked for less than a page that moves and loads by itself. */
const frugal = () => matchMedia("(prefers-reduced-motion: reduce)").matches || Boolean(navigator.connection?.saveData);

const absolute = (name) => new URL(box.dataset[name], document.baseURI).href;

/** The model, loaded once; after a failure it is loaded anew. */
function detector() {
  model ??= import(absolute("player")).then(({ load }) => load(absolute("package"), { worker: true, workerUrl: absolute("worker"), backend: "auto" }));
  model.catch(() => (model = null));
  return model;
}

/** Draws what was found last; false as long as the recorded result is the one to be drawn. */
export function redraw() {
  if (!shown) return Boolean(pictures ?? camera);
  const { found, picture, element } = shown;
  const mirrored = element === medium.camera && camera.mirrored;
  import(new URL(figure.dataset.drawer, document.baseURI).href).then(({ draw }) => draw(viewOn(figure.querySelector("canvas"), picture, { medium: element, cover: true, mirrored }), found, {}));
  return true;
}

/** What is found in a picture or a frame of the camera, drawn over it; the milliseconds that it took. */
async function detect(element, picture) {
  const faces = await detector();
  const { src } = element;
  const begin = performance.now();
  const found = await faces.run(element);
  const ms = performance.now() - begin;
  if (element.hidden || element.src !== src) return; // another picture is shown by now
  shown = { found, picture, element };
  redraw();
  box.dataset.result = JSON.stringify({ found, ms, backend: faces.backend, source: element === medium.camera ? "camera" : "sample" });
  return { text: `${counted(found.length, "face")} in ${ms.toFixed(1)} ms on ${PLACES[faces.backend]}`, ms };
}

/** Says what went wrong; programs find its `code` and `message` in data-error. */
function fail({ code = "page", message }) {
  box.dataset.error = JSON.stringify({ code, message });
  say(status, message);
  say(rate, "");
}

/** Looks at the picture that is shown; a failure is said, and can be tried again. */
async function look() {
  run.hidden = true;
  delete box.dataset.error;
  say(status, "Loading the face detector …");
  const { picture } = medium;
  try {
    await picture.decode();
    const told = await detect(picture, { width: picture.naturalWidth, height: picture.naturalHeight });
    if (told) say(status, told.text);
  } catch (error) {
    fail({ code: error.code, message: `The face detector could not start: ${error.message}` });
    say(run, "Try again");
    run.hidden = false;
  }
}

/** Shows the picture or the camera. */
function show(kind) {
  for (const [name, element] of Object.entries(medium)) element.hidden = name !== kind;
  shown = null;
  const canvas = figure.querySelector("canvas");
  canvas.width = canvas.clientWidth; // empty
  cameraButton.setAttribute("aria-pressed", String(kind === "camera"));
  say(rate, "");
}

function nextPicture() {
  camera?.stop();
  show("picture");
  const { picture } = medium;
  pictures ??= [...byId("live-pictures").content.children, picture.cloneNode()].map(({ src, alt }) => ({ src, alt }));
  const following = pictures.shift();
  pictures.push(following);
  Object.assign(picture, following);
  look();
}

/** One frame of the camera; those that come meanwhile are left out. */
async function onFrame(video) {
  if (busy) return;
  busy = true;
  try {
    const told = await detect(video, { width: video.videoWidth, height: video.videoHeight });
    if (!told || performance.now() - toldAt < RATE_MS) return;
    toldAt = performance.now();
    say(rate, told.text);
  } catch (error) {
    endCamera(error);
  } finally {
    busy = false;
  }
}

function endCamera(error) {
  camera.stop();
  show("picture");
  if (error) fail(error);
  else look();
}

async function toggleCamera() {
  camera ??= new Camera(medium.camera, onFrame, endCamera);
  if (camera.running) return endCamera();
  run.hidden = true;
  delete box.dataset.error;
  say(status, "Starting the camera …");
  try {
    if (!(await camera.start())) return;
    show("camera");
    medium.camera.classList.toggle("back", !camera.mirrored);
    say(status, "The camera is on. Its pictures stay on this device.");
  } catch (error) {
    fail(error);
  }
}

/** Starts by itself when the page has loaded, has time, and shows the picture. */
function startWhenSeen() {
  const idle = globalThis.requestIdleCallback ?? ((then) => setTimeout(then, IDLE_MS));
  const seen = new IntersectionObserver((entries) => {
    if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
    seen.disconnect();
    idle(() => model || look(), { timeout: IDLE_MS });
  });
  seen.observe(figure);
}

if (box) {
  run.addEventListener("click", look);
  next.addEventListener("click", nextPicture);
  cameraButton.addEventListener("click", toggleCamera);
  if (frugal()) run.hidden = false;
  else if (document.readyState === "complete") startWhenSeen();
  else addEventListener("load", startWhenSeen, { once: true });
}
