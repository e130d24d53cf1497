// The home page: what each demo found in its sample, drawn as its own page draws it, and what this device measured of
// each that ran on it.

import { remembered } from "./ran_here.js";
import { viewOn } from "./view.js";

const cards = [...document.querySelectorAll("[data-demo]")];
const recorded = await fetch(document.documentElement.dataset.recorded).then((answer) => answer.json());
const drawers = new Map(); // URL -> promise of a module

/** Draws what a demo found in its sample over the picture of its card. */
async function draw(card) {
  const { image, found } = recorded[card.dataset.demo] ?? {};
  if (!found) return;
  const { drawer, schema } = card.dataset;
  if (!drawers.has(drawer)) drawers.set(drawer, import(drawer));
  const { draw: onto } = await drawers.get(drawer);
  const medium = card.querySelector("img");
  if (!medium.complete) await new Promise((resolve) => medium.addEventListener("load", resolve, { once: true }));
  onto(viewOn(card.querySelector("canvas"), image, { medium, cover: true }), found, JSON.parse(schema));
}

const redraw = () => cards.map((card) => draw(card).catch(() => {})); // without it the sample is shown alone
new ResizeObserver(redraw).observe(document.querySelector("main"));

for (const card of cards) {
  const known = remembered(card.querySelector("h3 a").pathname);
  if (known) card.querySelector("[data-speed]").textContent = `${known.ms.toFixed(1)} ms here on ${known.backend}`;
}
