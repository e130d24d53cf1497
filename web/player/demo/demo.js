// A page that shows what the player finds in a picture, a film, a recording, a file or a text: model.webinfer lies beside it,
// and maybe a picture to begin with. A package without a task runs on noise, and its outputs are listed.

import { load } from "./player.js";

const { sample } = document.documentElement.dataset;
const [file, text, backend, status, view, list] = ["file", "text", "backend", "status", "view", "found"].map((id) => document.getElementById(id));
const heard = async (chosen) => new AudioContext().decodeAudioData(await chosen.arrayBuffer());
// What tasks are given that are not for pictures: what it is called, which files, and what the model takes of one.
const FILES = {
  "audio-classification": ["Recording", "audio/*", heard], "voice-activity": ["Recording", "audio/*", heard],
  "file-type": ["File", "", (chosen) => chosen],
};
const TEXTS = ["sentence-embedding", "text-classification"];
const PICTURE = ["Picture or film", "image/*,video/*", (chosen) => (chosen.type.startsWith("video/") ? filmOf(chosen) : createImageBitmap(chosen))];
const FOLLOWING = [
  "face-detection", "object-detection", "multi-pose", "face-landmarks", "hand-landmarks", "pose-landmarks", "holistic-landmarks", "gesture-recognition",
];
let model = null;
let seen = null; // what the model is given, or a video whose frames it is given
let next = 0; // the call for the video's next frame

async function start() {
  const asked = new URLSearchParams(location.search);
  backend.value = asked.get("backend") ?? backend.value;
  model?.close();
  model = null; // what is given waits for the next one
  model = await load("model.webinfer", {
    backend: backend.value,
    threads: Number(asked.get("threads") ?? 1),
    onProgress: ({ stage, done, total }) => (status.textContent = `Loading: ${stage} ${done}${total ? ` of ${total}` : ""}`),
    onLost: (reason) => (status.textContent = `The GPU was lost (${reason}); the next picture has a new one.`),
  });
}

/** A film that plays, again and again. */
async function filmOf(chosen) {
  const video = Object.assign(document.createElement("video"), { muted: true, loop: true, playsInline: true, src: URL.createObjectURL(chosen) });
  await video.play();
  return video;
}

/** Draws what was found in a picture, and lists what was found in anything. */
function draw(found, given) {
  const context = view.getContext("2d");
  if (given instanceof ImageBitmap) {
    [view.width, view.height] = [given.width, given.height];
    context.drawImage(given, 0, 0);
  }
  Object.assign(context, { strokeStyle: "#2ad", fillStyle: "#2ad", lineWidth: Math.max(2, view.width / 200) });
  list.replaceChildren();
  const parts = (one) => [one, ...(one.bodies ?? []), one.pose, one.face, one.leftHand, one.rightHand].filter(Boolean);
  for (const { id, box, score, start, end, keypoints = {}, landmarks = [], text = "", label = text, values, width, height } of found.flatMap(parts)) {
    if (box) context.strokeRect(box.left, box.top, box.width, box.height);
    for (const [x, y] of [...Object.values(keypoints), ...landmarks.map(({ x, y }) => [x, y])]) context.fillRect(x - 1, y - 1, 3, 3);
    const sure = score === undefined ? "" : `${Math.round(100 * score)} %`;
    const map = values && (width ? `a map of ${width} × ${height}` : `${values.length} numbers`);
    tell([id && `no. ${id}`, sure, label, end && `${start.toFixed(2)} to ${end.toFixed(2)} s`, box && `${Math.round(box.width)} × ${Math.round(box.height)} px`, map].filter(Boolean).join(", "));
  }
}

function tell(words) {
  const row = document.createElement("li");
  row.textContent = words;
  list.append(row);
}

/** Lists outputs by name: their shapes and the ends of their values. */
function describe(outputs) {
  list.replaceChildren();
  for (const [name, { dtype, shape, data }] of Object.entries(outputs)) {
    const [least, most] = data.reduce(([low, high], value) => [value < low ? value : low, value > high ? value : high], [data[0], data[0]]);
    tell(`${name}: ${dtype} [${shape.join(", ")}], ${least} to ${most}`);
  }
}

/** Floats from -1 to 1, zeros of other types. */
function noise({ dtype, shape }) {
  const count = shape.reduce((product, size) => product * size, 1);
  if (dtype === "float32") return Float32Array.from({ length: count }, () => 2 * Math.random() - 1);
  return new ArrayBuffer((count * Number(dtype.match(/\d+/)?.[0] ?? 8)) / 8);
}

async function show() {
  if (!model) return;
  const film = seen instanceof HTMLVideoElement ? seen : null;
  const given = film ? await createImageBitmap(film) : model.task ? seen : Object.fromEntries(model.inputs.map((row) => [row.name, noise(row)]));
  if (!given) return void (status.textContent = TEXTS.includes(model.task) ? "Write a text." : "Choose a file.");
  const before = performance.now();
  const found = await (film && FOLLOWING.includes(model.task) ? model.track(given, 1000 * film.currentTime) : model.run(given));
  const ms = performance.now() - before;
  if (model.task) draw(found, given);
  else describe(found);
  status.textContent = `${model.task ? `${found.length} found` : "Run"} on ${model.backend} in ${ms.toFixed(1)} ms`;
  globalThis.result = { found, ms, sinceOpen: performance.now(), backend: model.backend, threads: model.threads, choice: model.choice };
  if (!film) return;
  given.close();
  film.cancelVideoFrameCallback(next);
  next = film.requestVideoFrameCallback(() => film === seen && say(show));
}

/** Runs one step after the other; what goes wrong is said. */
async function say(...steps) {
  try {
    for (const step of steps) await step();
  } catch (error) {
    status.textContent = error.message;
    globalThis.problem = { code: error.code, message: error.message };
  }
}

async function first() {
  if (!sample) return;
  const response = await fetch(sample);
  seen = await createImageBitmap(await response.blob());
}

file.addEventListener("change", () => say(async () => {
  seen?.pause?.();
  seen = await (FILES[model?.task] ?? PICTURE)[2](file.files[0]);
}, show));
text.addEventListener("change", () => say(() => {
  seen = text.value;
}, show));
backend.addEventListener("change", () => say(start, show));
say(() => Promise.all([start(), first()]), () => {
  const takesText = TEXTS.includes(model.task);
  document.getElementById("pictures").hidden = !model.task || takesText;
  document.getElementById("texts").hidden = !takesText;
  [document.getElementById("kind").textContent, file.accept] = FILES[model.task] ?? PICTURE;
  if (takesText || FILES[model.task]) seen = null; // the sample is a picture
  return show();
});
