// The benchmark of frames: a photo that moves as before a camera, looked at by webinfer and by MediaPipe's own packages
// in turns. Reads ../frames.json, shows and posts the figures.

import { about } from "../adapter.js";
import { median } from "../conductor.js";
import { concluded, report } from "../report.js";
import { Remote, setLimit } from "../remote.js";
import { MediaPipe } from "./mediapipe.js";

const WIDTH = 640, HEIGHT = 480;
const status = document.getElementById("status");
const body = document.querySelector("#results tbody");

/** A camera that shows one photo, which trembles and drifts: frame n is the same for everybody. */
class Camera {
  #photo;
  #canvas = Object.assign(document.createElement("canvas"), { width: WIDTH, height: HEIGHT });
  #context = this.#canvas.getContext("2d");

  constructor(photo) {
    this.#photo = photo;
  }

  /** The canvas with frame n on it. */
  frame(n) {
    const { width, height } = this.#photo;
    const scale = 1.05 * Math.max(WIDTH / width, HEIGHT / height);
    const x = (WIDTH - scale * width) / 2 + 8 * Math.sin(n / 11), y = (HEIGHT - scale * height) / 2 + 6 * Math.cos(n / 7);
    this.#context.drawImage(this.#photo, x, y, scale * width, scale * height);
    return this.#canvas;
  }
}

/** webinfer in a worker: a frame goes there as a camera's frame goes. */
class Webinfer {
  async open(task, entry) {
    this.remote = new Remote("webinfer", new URL("./worker.js", import.meta.url));
    const { version } = await this.remote.call("open", { task, ...entry });
    return version;
  }

  look(canvas) {
    const frame = new VideoFrame(canvas, { timestamp: 1000 * performance.now() });
    return this.remote.call("look", { frame }, [frame]);
  }

  end() {
    this.remote?.end();
  }
}

const SYSTEMS = { webinfer: Webinfer, mediapipe: MediaPipe };

async function opened(task, entry, camera, config) {
  const row = { task: task.name, ...entry, times: [], found: [], next: 0 };
  row.running = new SYSTEMS[entry.system]();
  try {
    status.textContent = `${task.name}: ${entry.system} starts`;
    const begin = performance.now();
    row.version = await row.running.open(task, entry);
    await row.running.look(camera.frame(0));
    row.first_ms = performance.now() - begin;
    for (let n = 1; n < config.warm; n++) await row.running.look(camera.frame(n));
  } catch (error) {
    fail(row, error);
  }
  return row;
}

function fail(row, error) {
  row.error = String(error?.message ?? error).trim().split("\n").slice(-3).join(" ");
  row.running.end();
}

async function turn(row, camera, frames) {
  try {
    for (let i = 0; i < frames; i++) {
      const frame = camera.frame(row.next++);
      const begin = performance.now();
      row.found.push(await row.running.look(frame));
      row.times.push(performance.now() - begin);
    }
  } catch (error) {
    fail(row, error);
  }
}

async function measure(task, config) {
  const blob = await (await fetch(new URL(`../${task.photo}`, import.meta.url))).blob();
  const camera = new Camera(await createImageBitmap(blob));
  const rows = [];
  for (const entry of config.entries) rows.push(await opened(task, entry, camera, config));
  for (let round = 0; round < config.rounds; round++) {
    status.textContent = `${task.name}: round ${round + 1} of ${config.rounds}`;
    const shift = round % rows.length; // nobody always follows the same neighbour
    for (const row of [...rows.slice(shift), ...rows.slice(0, shift)]) if (!row.error) await turn(row, camera, config.frames);
  }
  for (const { running, times, found, next, ...row } of rows) {
    running.end();
    if (!row.error) Object.assign(row, { median_ms: median(times), min_ms: Math.min(...times), samples: times.length, found: median(found) });
    show(row);
    await report("row", row);
  }
}

function show(row) {
  const line = body.insertRow();
  const figures = row.error ? ["–", "–", "–", row.error] : [row.median_ms.toFixed(2), row.min_ms.toFixed(2), (1000 / row.median_ms).toFixed(0), row.found];
  for (const text of [row.task, row.system, row.backend, row.threads || "–", ...figures]) line.insertCell().textContent = text;
}

async function run() {
  const config = await (await fetch(new URL("../frames.json", import.meta.url))).json();
  setLimit(config.limit_ms);
  await report("about", { ...(await about(true)), frame: [WIDTH, HEIGHT], rounds: config.rounds, frames: config.frames });
  for (const task of config.tasks) await measure(task, config);
  status.textContent = "done";
}

concluded(run, (text) => (status.textContent = text));
