// A page that finds faces with the player: model.webinfer and photo.png lie beside it.

import { load } from "./player.js";

const [file, backend, status, view, list] = ["file", "backend", "status", "view", "found"].map((id) => document.getElementById(id));
let model = null;
let picture = null;

async function start() {
  const asked = new URLSearchParams(location.search);
  backend.value = asked.get("backend") ?? backend.value;
  model?.close();
  model = await load("model.webinfer", {
    backend: backend.value,
    threads: Number(asked.get("threads") ?? 1),
    onProgress: ({ stage, done, total }) => (status.textContent = `Loading: ${stage} ${done}${total ? ` of ${total}` : ""}`),
    onLost: (reason) => (status.textContent = `The GPU was lost (${reason}); the next picture has a new one.`),
  });
}

async function show() {
  const before = performance.now();
  const faces = await model.run(picture);
  const ms = performance.now() - before;
  [view.width, view.height] = [picture.width, picture.height];
  const context = view.getContext("2d");
  context.drawImage(picture, 0, 0);
  Object.assign(context, { strokeStyle: "#2ad", fillStyle: "#2ad", lineWidth: Math.max(2, picture.width / 200) });
  list.replaceChildren();
  for (const { box, score, keypoints } of faces) {
    context.strokeRect(box.left, box.top, box.width, box.height);
    for (const [x, y] of Object.values(keypoints)) context.fillRect(x - 2, y - 2, 4, 4);
    const row = document.createElement("li");
    row.textContent = `${Math.round(100 * score)} %, ${Math.round(box.width)} × ${Math.round(box.height)} px`;
    list.append(row);
  }
  status.textContent = `${faces.length} found on ${model.backend} in ${ms.toFixed(1)} ms`;
  globalThis.result = { faces, ms, sinceOpen: performance.now(), backend: model.backend, threads: model.threads, choice: model.choice };
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

async function sample() {
  const response = await fetch("photo.png");
  if (!response.ok) return void (status.textContent = "Choose a picture.");
  picture = await createImageBitmap(await response.blob());
}

file.addEventListener("change", () => say(async () => {
  picture = await createImageBitmap(file.files[0]);
}, show));
backend.addEventListener("change", () => say(start, () => picture && show()));
say(() => Promise.all([start(), sample()]), () => picture && show());
