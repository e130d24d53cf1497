// What a run gave: for each output its range, its spread, its first and largest elements, and a .npy file.

import { byId, counted, download, el, milliseconds, say, shareOf, short, svg } from "../../ui/dom.js";
import { elementsOf, writeNpy } from "../../media/npy.js";

const BINS = 40;
const FIRST = 8;
const TOP = 5;

/** Least, largest, mean and standard deviation of the finite elements, how many are zero and how many not finite, and a histogram. */
export function statistics(elements) {
  let [least, most, sum, squares, finite, zeros] = [Infinity, -Infinity, 0, 0, 0, 0];
  for (let at = 0; at < elements.length; at += 1) {
    const value = Number(elements[at]);
    if (!Number.isFinite(value)) continue;
    finite += 1;
    sum += value;
    squares += value * value;
    if (value === 0) zeros += 1;
    if (value < least) least = value;
    if (value > most) most = value;
  }
  const bins = new Uint32Array(BINS);
  const width = (most - least) / BINS || 1;
  for (let at = 0; at < elements.length; at += 1) {
    const value = Number(elements[at]);
    if (Number.isFinite(value)) bins[Math.min(BINS - 1, Math.floor((value - least) / width))] += 1;
  }
  const mean = sum / finite;
  const deviation = Math.sqrt(Math.max(0, squares / finite - mean * mean));
  return { least, most, mean, deviation, zeros, others: elements.length - finite, bins };
}

/** The largest elements and where they are. */
export function largest(elements, count) {
  const found = []; // [place, value], largest first
  for (let at = 0; at < elements.length; at += 1) {
    const value = Number(elements[at]);
    if (Number.isNaN(value) || (found.length === count && value <= found[count - 1][1])) continue;
    let place = found.length;
    while (place > 0 && found[place - 1][1] < value) place -= 1;
    found.splice(place, 0, [at, value]);
    if (found.length > count) found.pop();
  }
  return found;
}

function placeOf(at, shape) {
  const places = [];
  for (let axis = shape.length - 1, rest = at; axis >= 0; axis -= 1) {
    places.unshift(rest % shape[axis]);
    rest = Math.floor(rest / shape[axis]);
  }
  return `[${places.join(", ")}]`;
}

function histogram({ bins, least, most }) {
  const highest = Math.max(...bins, 1);
  const bars = [...bins].map((count, at) => svg("rect", {
    x: at * 6, width: 5, height: count ? Math.max(1, (46 * count) / highest) : 0, y: 46 - (count ? Math.max(1, (46 * count) / highest) : 0), rx: 1,
  }));
  const label = `Histogram from ${short(least)} to ${short(most)}`;
  return svg("svg", { viewBox: `0 0 ${BINS * 6} 46`, class: "histogram", role: "img", "aria-label": label, preserveAspectRatio: "none" }, ...bars);
}

/** A card with what an array is: its range, its spread, its first and largest elements, and a .npy file of it. */
export function valueCard({ name, dtype, shape, data }) {
  const elements = elementsOf({ dtype, data });
  const about = statistics(elements);
  const file = `${name.replace(/[^\w-]+/g, "_").slice(0, 80) || "output"}.npy`;
  const save = el("button", { type: "button", text: "Download .npy", on: { click: () => download(file, writeNpy({ dtype, shape, data })) } });
  const card = el("article", { class: "output" }, el("h3", { text: name }), el("p", { class: "quiet", text: `${dtype} [${shape.join(", ")}], ${counted(elements.length, "element")}` }));
  if (elements.length) {
    const range = about.others === elements.length ? "not finite" : `${short(about.least)} to ${short(about.most)}, on average ${short(about.mean)}, standard deviation ${short(about.deviation)}`;
    const first = [...elements.slice(0, FIRST)].map(short).join(", ");
    const top = largest(elements, TOP);
    card.append(
      el("dl", { class: "facts" },
        el("dt", { text: "Range" }), el("dd", { text: range }),
        ...(about.zeros ? [el("dt", { text: "Zeros" }), el("dd", { text: `${about.zeros.toLocaleString("en")}, ${shareOf(about.zeros / elements.length)}` })] : []),
        ...(about.others ? [el("dt", { text: "Not finite" }), el("dd", { class: "bad", text: counted(about.others, "element") })] : []),
        el("dt", { text: "First" }), el("dd", {}, el("code", { text: elements.length > FIRST ? `${first}, …` : first })),
        el("dt", { text: "Largest" }), el("dd", { class: "largest" }, top.flatMap(([at, value]) => [el("code", { text: placeOf(at, shape) }), el("code", { text: short(value) })]))),
      histogram(about));
  }
  card.append(el("div", { class: "row" }, save));
  return card;
}

/** Shows a run's answer: {ms, backend, outputs, buffers}, and the times of runs after it. */
export function showOutputs({ ms, backend, outputs, buffers }, times) {
  byId("outputs").replaceChildren(...outputs.map((one, at) => valueCard({ ...one, data: buffers[at] })));
  const middle = [...times].sort((a, b) => a - b)[Math.floor(times.length / 2)];
  say(byId("status"), `Ran on ${backend} in ${milliseconds(ms)}; the median of ${counted(times.length, "run")} after it is ${milliseconds(middle)}.`);
}

/** Forgets what an earlier model gave. */
export function forgetOutputs() {
  byId("outputs").replaceChildren();
  say(byId("status"), "");
}
