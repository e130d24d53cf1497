// The home page: what each demo found in its sample, drawn as its own page draws it, what this device measured of each
// that ran on it, and which models cannot be had.

import { remembered } from "./ran_here.js";
import { drawWhole, viewOn } from "./view.js";

const root = document.documentElement;
const cards = [...document.querySelectorAll("[data-demo]")];
const recorded = await fetch(root.dataset.recorded).then((answer) => answer.json());
const drawers = new Map(); // URL -> promise of a module
const AROUND = 0.3; // of a thing's size, beside it, where it is shown from close by

/** The part of a picture around all boxes of what was found. */
function around(found) {
  const boxes = found.map(({ box }) => box);
  const [left, top] = [Math.min(...boxes.map((box) => box.left)), Math.min(...boxes.map((box) => box.top))];
  const [right, low] = [Math.max(...boxes.map((box) => box.left + box.width)), Math.max(...boxes.map((box) => box.top + box.height))];
  const [width, height] = [right - left, low - top];
  return { left: left - AROUND * width, top: top - AROUND * height, width: width * (1 + 2 * AROUND), height: height * (1 + 2 * AROUND) };
}

/** Draws what a demo found in its sample over the picture of its card, or on paper where the sample is none. */
async function draw(card) {
  const { image, found, beside } = recorded[card.dataset.demo] ?? {};
  if (!found) return;
  const { drawer, schema } = card.dataset;
  if (!drawers.has(drawer)) drawers.set(drawer, import(drawer));
  const { draw: onto } = await drawers.get(drawer);
  const medium = card.querySelector("img");
  if (medium && !medium.complete) await new Promise((resolve) => medium.addEventListener("load", resolve, { once: true }));
  const canvas = card.querySelector("canvas");
  const picture = image ?? { width: canvas.clientWidth, height: canvas.clientHeight };
  const close = "close" in card.dataset;
  const view = viewOn(canvas, picture, close ? { medium, region: around(found) } : { medium, cover: true });
  if (close) drawWhole(view, medium);
  onto(view, found, JSON.parse(schema), beside);
}

/** Says on the card of each demo whose package the server could not fetch why that was. */
async function tellMissing() {
  const late = cards.filter(({ dataset }) => dataset.late);
  if (!late.length) return;
  const states = await fetch(new URL(`${root.dataset.home}api/packages`, document.baseURI)).then((answer) => answer.json());
  for (const card of late) {
    const failed = card.dataset.late.split(" ").find((name) => states[name]?.state === "failed");
    if (failed) card.querySelector("[data-size]").textContent = `Its model cannot be had: ${states[failed].message}`;
  }
}

const redraw = () => cards.map((card) => draw(card).catch(() => {})); // without it the sample is shown alone
new ResizeObserver(redraw).observe(document.querySelector("main"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

for (const card of cards) {
  const known = remembered(card.querySelector("h3 a").pathname);
  if (known) card.querySelector("[data-speed]").textContent = `${known.ms.toFixed(1)} ms here on ${known.backend}`;
}
tellMissing().catch(() => {}); // the pages themselves say so, too
