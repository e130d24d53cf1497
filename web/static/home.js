// The home page: what this device measured of each demo that ran on it.

for (const card of document.querySelectorAll("[data-demo]")) {
  const known = JSON.parse(localStorage.getItem(`webinfer ran ${card.dataset.demo}`) ?? "null");
  if (known) card.querySelector("[data-speed]").textContent = `· ${known.ms.toFixed(1)} ms here on ${known.backend}`;
}
