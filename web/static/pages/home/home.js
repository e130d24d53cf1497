// The home page: what each demo found in its sample, drawn as its own page draws it, what this device measured of each
// that ran on it, and which models are not available.

import { copyButton } from "../../ui/copy_button.js";
import { byId, el } from "../../ui/dom.js";
import { remembered } from "../../ui/recent_runs.js";
import { drawWhole, viewOn } from "../../ui/overlay.js";
import * as live from "./live_faces.js";

const root = document.documentElement;
const cards = [...document.querySelectorAll("[data-demo]")];
const recorded = await fetch(root.dataset.recorded).then((answer) => answer.json());
const drawers = new Map(); // URL -> promise of a module
const DIMMED = "rgb(0 0 0 / 45%)"; // over pictures with skeletons and meshes, which are thin
const HEADROOM = 0.2; // of a card, above a person who is too tall for it

/**
 * The part of a picture, as wide by its height as `aspect`, around all boxes of what was found and `margin` of their
 * size beside them, or around those of its `parts`; it never reaches out of the picture.
 */
function around(found, parts, margin, picture, aspect) {
  const boxes = found.flatMap((one) => {
    const closer = parts.map((name) => one[name]?.box).filter(Boolean);
    return closer.length ? closer : [one.box];
  });
  const [left, top] = ["left", "top"].map((side) => Math.max(0, Math.min(...boxes.map((box) => box[side]))));
  const right = Math.min(picture.width, Math.max(...boxes.map((box) => box.left + box.width)));
  const low = Math.min(picture.height, Math.max(...boxes.map((box) => box.top + box.height)));
  const wanted = Math.max((right - left) * (1 + 2 * margin), (low - top) * (1 + 2 * margin) * aspect);
  const width = Math.min(wanted, picture.width, picture.height * aspect);
  const height = width / aspect;
  const within = (start, size, whole) => Math.min(Math.max(0, start), whole - size);
  const above = low - top > height ? top - HEADROOM * height : (top + low - height) / 2;
  return { left: within((left + right - width) / 2, width, picture.width), top: within(above, height, picture.height), width, height };
}

const tallest = (found) => Math.max(...found.map(({ box }) => box.height));

/** Draws what a demo found in its sample over the picture of its card, or on paper where the sample is none. */
async function draw(card) {
  const { image, found, beside } = recorded[card.dataset.demo ?? card.dataset.found] ?? {};
  if (!found) return;
  const { drawer, schema, effect } = card.dataset;
  // below a path, addresses in a page are relative to the page, and those of an import to its script
  if (!drawers.has(drawer)) drawers.set(drawer, import(new URL(drawer, document.baseURI).href));
  const { draw: onto } = await drawers.get(drawer);
  const medium = card.querySelector("img");
  if (medium && !medium.complete) await new Promise((resolve) => medium.addEventListener("load", resolve, { once: true }));
  const canvas = card.querySelector("canvas");
  const picture = image ?? { width: canvas.clientWidth, height: canvas.clientHeight };
  const close = "close" in card.dataset;
  const aspect = canvas.clientWidth / canvas.clientHeight;
  const whole = close && tallest(found) > picture.width / aspect; // too tall for any part of the picture that fills the card
  const region = close && !whole && around(found, card.dataset.parts.split(" "), Number(card.dataset.close), picture, aspect);
  const view = viewOn(canvas, picture, close ? { medium, region: region || null } : { medium, cover: true });
  if (whole) {
    view.context.fillStyle = getComputedStyle(canvas.parentElement).backgroundColor;
    view.context.fillRect(0, 0, view.width, view.height);
  }
  if (close) drawWhole(view, medium);
  const shape = { ...(schema && JSON.parse(schema)), effect };
  if (shape.kind === "landmarks") {
    view.context.fillStyle = DIMMED;
    view.context.fillRect(0, 0, view.width, view.height);
    view.unit = 1; // or lines would be as thin as the card is small
  }
  onto(view, found, shape, beside);
}

/** Says on the card of each demo whose package the server could not fetch that it could not. */
async function tellMissing() {
  const late = cards.filter(({ dataset }) => dataset.late);
  if (!late.length) return;
  const states = await fetch(new URL(`${root.dataset.home}api/packages`, document.baseURI)).then((answer) => answer.json());
  for (const card of late) {
    const failed = card.dataset.late.split(" ").find((name) => states[name]?.state === "failed");
    if (failed) card.querySelector("[data-size]").textContent = "Could not download its model"; // its page says why
  }
}

function redraw() {
  for (const card of [...cards, ...document.querySelectorAll("[data-found]")]) {
    if (card.dataset.found && live.redraw()) continue;
    draw(card).catch(() => {}); // without it the sample is shown alone
  }
}
new ResizeObserver(redraw).observe(document.querySelector("main"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

const install = byId("install");
const wheel = install.querySelector("[data-address]");
wheel.textContent = new URL(wheel.dataset.address, document.baseURI).href;
for (const code of document.querySelectorAll(".hero pre")) {
  const holder = el("div", { class: "holder" });
  code.replaceWith(holder);
  holder.append(code, copyButton("copy", () => code.textContent, code));
}
for (const card of cards) {
  const known = remembered(card.querySelector("h3 a").pathname);
  if (known) card.querySelector("[data-speed]").textContent = `${known.ms.toFixed(1)} ms here on ${known.backend}`;
}
tellMissing().catch(() => {}); // the pages themselves say so, too

/** Loads the samples below the window too, once the page stands still: a print or screenshot of all of it has no empty cards. */
function loadSamples() {
  for (const sample of document.querySelectorAll(".shot img")) sample.loading = "eager";
}
addEventListener("beforeprint", loadSamples);
if (!navigator.connection?.saveData) (self.requestIdleCallback ?? setTimeout)(loadSamples);
