// The benchmark of frames: a photo that moves as before a camera, looked at by webinfer and by MediaPipe's own packages
// in turns. Reads ../frames.json, shows and posts the figures.

import { about } from "../adapter.js";
import { median } from "../conductor.js";
import { concluded, report } from "../report.js";
import { Remote, setLimit } from "../remote.js";
import { MediaPipe } from "./mediapipe.js";

const WIDTH = 640, HEIGHT = 480, FRAMES_A_SECOND = 30;
const status = document.getElementById("status");
const body = document.querySelector("#results tbody");

/** A camera before which one photo trembles and drifts: `video` shows it as it would show a webcam. */
class Camera {
  video = document.createElement("video");
  #canvas = Object.assign(document.createElement("canvas"), { width: WIDTH, height: HEIGHT });
  #context = this.#canvas.getContext("2d");
  #drawing = 0;

  async start(photo) {
    const scale = 1.05 * Math.max(WIDTH / photo.width, HEIGHT / photo.height);
    const [width, height] = [scale * photo.width, scale * photo.height];
    let n = 0;
    this.#drawing = setInterval(() => {
      n += 1;
      this.#context.drawImage(photo, (WIDTH - width) / 2 + 8 * Math.sin(n / 11), (HEIGHT - height) / 2 + 6 * Math.cos(n / 7), width, height);
    }, 1000 / FRAMES_A_SECOND);
    this.video.muted = true;
    this.video.srcObject = this.#canvas.captureStream(FRAMES_A_SECOND);
    await this.video.play();
  }

  stop() {
    clearInterval(this.#drawing);
    for (const track of this.video.srcObject.getTracks()) track.stop();
  }
}

/** webinfer in a worker: a frame goes there as a camera's frame goes, and a painted one comes back. */
class Webinfer {
  shown = null; // the painted frame that is seen until the next one comes

  async open(task, entry) {
    this.remote = new Remote("webinfer", new URL("./worker.js", import.meta.url));
    const { version } = await this.remote.call("open", { task, ...entry });
    return version;
  }

  async look(video) {
    const frame = new VideoFrame(video);
    const answer = await this.remote.call("look", { frame }, [frame]);
    if (answer.bitmap) this.shown?.close();
    this.shown = answer.bitmap ?? null;
    return answer;
  }

  end() {
    this.remote?.end();
  }
}

const SYSTEMS = { webinfer: Webinfer, mediapipe: MediaPipe };

async function opened(task, entry, camera, config) {
  const row = { task: task.name, ...entry, times: [], turns: [], found: [], parts: [] };
  row.running = new SYSTEMS[entry.system]();
  try {
    status.textContent = `${task.name}: ${entry.system} starts`;
    const begin = performance.now();
    row.version = await row.running.open(task, entry);
    await row.running.look(camera.video);
    row.first_ms = performance.now() - begin;
    for (let n = 1; n < config.warm; n++) await row.running.look(camera.video);
  } catch (error) {
    fail(row, error);
  }
  return row;
}

function fail(row, error) {
  row.error = String(error?.message ?? error).trim().split("\n").slice(-3).join(" ");
  row.running.end();
}

/** A pause in which the page does what waits, without the 4 ms that timers take at least. */
function breath() {
  const { port1, port2 } = new MessageChannel();
  return new Promise((resolve) => {
    port1.onmessage = () => { port1.close(); resolve(); };
    port2.postMessage(0);
  });
}

/** A turn ends when its last result is there: a painted one is drawn, and a pixel of it read. */
async function turn(row, camera, frames) {
  const flying = [];
  const begin = performance.now();
  try {
    for (let i = 0; i < frames; i++) {
      flying.push({ answer: row.running.look(camera.video), since: performance.now() });
      if (flying.length < (row.flight ?? 1) && i < frames - 1) continue;
      const { answer, since } = flying.shift();
      const { found, parts } = await answer;
      row.times.push(performance.now() - since);
      row.found.push(found);
      if (parts) row.parts.push(parts);
      await breath(); // the photo moves on
    }
    await Promise.all(flying.map(({ answer }) => answer));
    if (row.running.shown) aPixelOf(row.running.shown);
    row.turns.push((performance.now() - begin) / frames);
  } catch (error) {
    fail(row, error);
  }
}

const reader = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });

/** Waits until the GPU has drawn a picture. */
function aPixelOf(picture) {
  reader.drawImage(picture, 0, 0, 1, 1);
  return reader.getImageData(0, 0, 1, 1).data[0];
}

async function measure(task, config) {
  const blob = await (await fetch(new URL(`../${task.photo}`, import.meta.url))).blob();
  const camera = new Camera();
  await camera.start(await createImageBitmap(blob));
  const rows = [];
  for (const entry of config.entries.filter(({ painted }) => !painted || task.painted)) rows.push(await opened(task, entry, camera, config));
  for (let round = 0; round < config.rounds; round++) {
    status.textContent = `${task.name}: round ${round + 1} of ${config.rounds}`;
    const shift = round % rows.length; // the order rotates: none always runs behind the same one
    for (const row of [...rows.slice(shift), ...rows.slice(0, shift)]) if (!row.error) await turn(row, camera, config.frames);
  }
  camera.stop();
  for (const { running, times, turns, found, parts, ...row } of rows) {
    running.end();
    if (!row.error) Object.assign(row, { frame_ms: median(turns), median_ms: median(times), min_ms: Math.min(...times), samples: times.length, found: median(found) });
    if (parts.length) row.parts_ms = Object.fromEntries(Object.keys(parts[0]).map((name) => [name, median(parts.map((part) => part[name]))]));
    show(row);
    await report("row", row);
  }
}

function show(row) {
  const line = body.insertRow();
  const figures = row.error ? ["–", "–", "–", row.error] : [row.median_ms.toFixed(2), row.min_ms.toFixed(2), (1000 / row.frame_ms).toFixed(0), row.found];
  const way = `${row.painted ? ", mask stays there" : ""}${row.flight === 2 ? ", 2 in flight" : ""}`;
  for (const text of [row.task, row.system, row.backend + way, row.threads || "–", ...figures]) line.insertCell().textContent = text;
}

async function run() {
  const config = await (await fetch(new URL("../frames.json", import.meta.url))).json();
  setLimit(config.limit_ms);
  await report("about", { ...(await about(true)), frame: [WIDTH, HEIGHT], rounds: config.rounds, frames: config.frames });
  for (const task of config.tasks) await measure(task, config);
  status.textContent = "done";
}

concluded(run, (text) => (status.textContent = text));
