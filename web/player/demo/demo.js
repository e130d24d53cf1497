// A page that shows what the player finds in a picture: model.webinfer lies beside it, and maybe a picture to begin with.
// A package without a task runs on noise, and its outputs are listed.

import { load } from "./player.js";

const { sample } = document.documentElement.dataset;
const [file, backend, status, view, list] = ["file", "backend", "status", "view", "found"].map((id) => document.getElementById(id));
let model = null;
let picture = null;

async function start() {
  const asked = new URLSearchParams(location.search);
  backend.value = asked.get("backend") ?? backend.value;
  model?.close();
  model = null; // pictures wait for the next one
  model = await load("model.webinfer", {
    backend: backend.value,
    threads: Number(asked.get("threads") ?? 1),
    onProgress: ({ stage, done, total }) => (status.textContent = `Loading: ${stage} ${done}${total ? ` of ${total}` : ""}`),
    onLost: (reason) => (status.textContent = `The GPU was lost (${reason}); the next picture has a new one.`),
  });
}

/** Draws what was found, and lists it. */
function draw(found) {
  [view.width, view.height] = [picture.width, picture.height];
  const context = view.getContext("2d");
  context.drawImage(picture, 0, 0);
  Object.assign(context, { strokeStyle: "#2ad", fillStyle: "#2ad", lineWidth: Math.max(2, picture.width / 200) });
  list.replaceChildren();
  for (const { box, score, keypoints = {}, landmarks = [], text = "", label = text, values, width, height } of found.flatMap((one) => [one, ...(one.bodies ?? [])])) {
    if (box) context.strokeRect(box.left, box.top, box.width, box.height);
    for (const [x, y] of [...Object.values(keypoints), ...landmarks.map(({ x, y }) => [x, y])]) context.fillRect(x - 1, y - 1, 3, 3);
    const sure = score === undefined ? "" : `${Math.round(100 * score)} %`;
    const map = values && (width ? `a map of ${width} × ${height}` : `${values.length} numbers`);
    tell([sure, label, box && `${Math.round(box.width)} × ${Math.round(box.height)} px`, map].filter(Boolean).join(", "));
  }
}

function tell(text) {
  const row = document.createElement("li");
  row.textContent = text;
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
  const given = model.task ? picture : Object.fromEntries(model.inputs.map((row) => [row.name, noise(row)]));
  if (!given) return void (status.textContent = "Choose a picture.");
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
  picture = await createImageBitmap(await response.blob());
}

file.addEventListener("change", () => say(async () => {
  picture = await createImageBitmap(file.files[0]);
}, show));
backend.addEventListener("change", () => say(start, show));
say(() => Promise.all([start(), first()]), () => {
  document.getElementById("pictures").hidden = !model.task;
  return show();
});
