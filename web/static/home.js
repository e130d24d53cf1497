// The home page: what this device measured of each demo that ran on it.

import { remembered } from "./ran_here.js";

for (const card of document.querySelectorAll("[data-demo]")) {
  const known = remembered(card.dataset.demo);
  if (known) card.querySelector("[data-speed]").textContent = `${known.ms.toFixed(1)} ms here on ${known.backend}`;
}
