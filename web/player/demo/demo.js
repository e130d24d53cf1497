// A page that shows what the player finds in a picture, a recording, a file or a text: model.webinfer lies beside it, and
// maybe a picture to begin with. A package without a task runs on noise, and its outputs are listed.

import { load } from "./player.js";

const { sample } = document.documentElement.dataset;
const [file, text, backend, status, view, list] = ["file", "text", "backend", "status", "view", "found"].map((id) => document.getElementById(id));
const RATE = 16000; // samples a second that models of sound hear, but for a few
const heard = async (chosen) => new AudioContext({ sampleRate: RATE }).decodeAudioData(await chosen.arrayBuffer());
// What tasks are given that are not for pictures: what it is called, which files, and what the model takes of one.
const FILES = {
  "audio-classification": ["Recording", "audio/*", heard], "voice-activity": ["Recording", "audio/*", heard],
  "file-type": ["File", "", (chosen) => chosen],
};
const TEXTS = ["sentence-embedding", "text-classification"];
const PICTURE = ["Picture", "image/*", createImageBitmap];
let model = null;
let seen = null; // what the model is given

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

/** Draws what was found in a picture, and lists what was found in anything. */
function draw(found) {
  const context = view.getContext("2d");
  if (seen instanceof ImageBitmap) {
    [view.width, view.height] = [seen.width, seen.height];
    context.drawImage(seen, 0, 0);
  }
  Object.assign(context, { strokeStyle: "#2ad", fillStyle: "#2ad", lineWidth: Math.max(2, view.width / 200) });
  list.replaceChildren();
  for (const { box, score, start, end, keypoints = {}, landmarks = [], text = "", label = text, values, width, height } of found.flatMap((one) => [one, ...(one.bodies ?? [])])) {
    if (box) context.strokeRect(box.left, box.top, box.width, box.height);
    for (const [x, y] of [...Object.values(keypoints), ...landmarks.map(({ x, y }) => [x, y])]) context.fillRect(x - 1, y - 1, 3, 3);
    const sure = score === undefined ? "" : `${Math.round(100 * score)} %`;
    const map = values && (width ? `a map of ${width} × ${height}` : `${values.length} numbers`);
    tell([sure, label, end && `${start.toFixed(2)} to ${end.toFixed(2)} s`, box && `${Math.round(box.width)} × ${Math.round(box.height)} px`, map].filter(Boolean).join(", "));
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
  const given = model.task ? seen : Object.fromEntries(model.inputs.map((row) => [row.name, noise(row)]));
  if (!given) return void (status.textContent = TEXTS.includes(model.task) ? "Write a text." : "Choose a file.");
  const before = performance.now();
  const found = await model.run(given);
  const ms = performance.now() - before;
  if (model.task) draw(found);
  else describe(found);
  status.textContent = `${model.task ? `${found.length} found` : "Run"} on ${model.backend} in ${ms.toFixed(1)} ms`;
  globalThis.result = { found, ms, sinceOpen: performance.now(), backend: model.backend, threads: model.threads, choice: model.choice };
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
