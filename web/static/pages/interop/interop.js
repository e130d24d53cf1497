// The page "WebNN": whose WebNN this browser has, and the four interop tests on this device.

import { byId, el, milliseconds, say, table } from "../../ui/dom.js";

const TITLES = {
  custom: "1. All in shaders",
  host: "2. Convolution in WebNN, through host memory, the rest in shaders",
  shared: "3. Convolution in WebNN, the rest in shaders on the same buffer",
  builtin: "4. All in WebNN",
  chained_custom: "1, two layers",
  chained_host: "2, two layers",
  chained_shared: "3, two layers",
  chained_builtin: "4, two layers",
  unread: "4, nothing read back, of ten in a row",
};
const COLUMNS = ["Test", "Median", "Minimum", "Largest difference"];
const PAIRS = [
  ["host", "shared", "Sharing the buffer instead of reading it back: test 2 takes {} test 3’s time."],
  ["chained_host", "chained_shared", "With two layers each: {} its time."],
  ["custom", "builtin", "Test 1, whose shaders are written plainly, takes {} test 4’s time."],
];
const home = new URL(document.documentElement.dataset.home, document.baseURI);
const { assets } = JSON.parse(byId("manifest").textContent);
let worker = null;

async function sayWhose() {
  const own = navigator.ml ? await navigator.ml.createContext().then(() => "", (error) => String(error.message ?? error)) : "navigator.ml is missing";
  byId("whose").textContent = own
    ? `This browser does not support WebNN (${own}), so webinfer’s implementation is used.`
    : "This browser has WebNN of its own. The tests run on webinfer’s, whose tensors shaders can share.";
}

/** Chooses what the address asks for: ?size=64&rounds=10, size a multiple of 4. */
function chooseAsked(name, least, step) {
  const asked = new URLSearchParams(location.search).get(name);
  const number = Number(asked);
  if (!asked || !(number >= least && number <= 512 && number % step === 0)) return false;
  const box = byId(name);
  if (![...box.options].some(({ value }) => value === asked)) box.append(el("option", { value: asked, text: asked }));
  box.value = asked;
  return true;
}

/** Big layers are for graphics processors; where a processor plays one, small ones come first. */
async function chooseSize() {
  chooseAsked("rounds", 1, 1);
  if (chooseAsked("size", 4, 4)) return;
  const adapter = await navigator.gpu?.requestAdapter();
  const { isFallbackAdapter, architecture } = adapter?.info ?? {};
  if (!adapter || isFallbackAdapter || /swiftshader|llvmpipe/.test(architecture)) byId("size").value = "32";
}

function show(rows) {
  const times = Object.fromEntries(rows.map(({ name, median }) => [name, median]));
  const cells = rows.map(({ name, median, least, worst }) => [TITLES[name], milliseconds(median), milliseconds(least), worst.toExponential(1)]);
  byId("table").replaceChildren(table("Milliseconds of each test", COLUMNS, cells));
  const lines = PAIRS.map(([a, b, text]) => text.replace("{}", `${(times[a] / times[b]).toFixed(2)} times`));
  byId("lines").replaceChildren(...lines.map((text) => el("li", { text })));
  byId("result-box").hidden = false;
}

function end(text) {
  worker?.terminate();
  worker = null;
  byId("start").hidden = false;
  byId("stop").hidden = byId("work").hidden = true;
  say(byId("status"), text);
}

function heard({ data: { step, part, device, rows, error } }) {
  if (error) return end(`The tests cannot continue: ${error}`);
  if (rows) show(rows);
  if (part) byId("work").value = part;
  if (step) return say(byId("status"), step);
  document.documentElement.dataset.webinferResult = JSON.stringify({ device, rows });
  byId("device").textContent = device;
  return end("Done.");
}

function begin() {
  worker = new Worker(new URL(assets["static/interop_worker.js"].url, document.baseURI).href, { type: "module", name: "WebNN tests" });
  worker.onmessage = heard;
  worker.onerror = (event) => end(`The tests cannot start: ${event.message || "a file did not come"}`);
  const side = Number(byId("size").value);
  worker.postMessage({ module: new URL("webnn.js", home).href, side, channels: side, rounds: Number(byId("rounds").value) });
  byId("start").hidden = true;
  byId("stop").hidden = byId("work").hidden = false;
  byId("work").removeAttribute("value");
}

byId("start").addEventListener("click", begin);
byId("stop").addEventListener("click", () => end("Stopped."));
byId("start").disabled = false;
await Promise.all([sayWhose(), chooseSize()]);
