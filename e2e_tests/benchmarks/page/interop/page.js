// The interop benchmark: reads ../interop.json, opens every test, interleaves their runs, shows and posts the figures.

import { about } from "../adapter.js";
import { compare } from "../compare.js";
import { median } from "../conductor.js";
import { Remote } from "../remote.js";
import { concluded, report } from "../report.js";

const WARM_RUNS = 5;
const MAX_DIFFERENCE = 1e-3; // of the output's range
const TEXTS = {
  "webnn custom": "1. WebNN page: conv2d, add, relu, all in shaders",
  "webnn host": "2. conv2d in WebNN, through an ArrayBuffer, add and relu in shaders",
  "webnn shared": "3. conv2d in WebNN, add and relu in shaders on the same buffer",
  "webnn builtin": "4. conv2d, add, relu in WebNN",
  "webnn chained_custom": "1, two layers",
  "webnn chained_host": "2, two layers",
  "webnn chained_shared": "3, two layers",
  "webnn chained_builtin": "4, two layers",
  "webnn unread": "4, nothing read back, of ten in a row",
  "tfjs chained": "TF.js: two fused layers",
  "tfjs unread": "TF.js: one fused operator, nothing read back, of ten in a row",
  "webinfer custom": "1. conv2d, add, relu: all custom operators",
  "webinfer host": "2. conv2d built in, through host memory, add + relu custom",
  "webinfer wasm": "2b. the same, conv2d on wasm",
  "webinfer shared": "3. conv2d built in, add + relu custom on the same buffer",
  "webinfer handed": "3b. the same as two models, the buffer handed over",
  "webinfer builtin": "4. all built in: one fused step",
  "tfjs fused": "TF.js: one fused operator",
  "tfjs builtin": "TF.js: conv2d, add, relu",
  "tfjs host": "TF.js: conv2d, through host memory, add, relu",
};

const status = document.getElementById("status");
const body = document.querySelector("#results tbody");

async function floats(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: HTTP ${response.status}`);
  return new Float32Array(await response.arrayBuffer());
}

/** One row a test of a system; what fails keeps its error. */
async function opened(config, systems, data, want) {
  const rows = [];
  for (const [name, system] of systems) {
    status.textContent = `${name} starts`;
    const started = system.call("start", { config, data });
    for (const test of config.systems[name]) {
      if (config.resident && test === "wasm") continue; // its x lies in memory either way
      const row = { system: name, test, feed: config.resident ? "resident" : "host", times: [] };
      rows.push(row);
      try {
        row.version = await started;
        status.textContent = `${name}: ${test}`;
        row.plan = await system.call("open", { test });
        const got = await system.call("result", { test });
        Object.assign(row, compare([{ name: "y", data: got }], [test.startsWith("chained") ? want.chained : want.once]));
        if (row.max_rel_diff > MAX_DIFFERENCE) throw new Error(`its output differs by up to ${row.max_abs_diff}`);
        await system.call("times", { test, runs: WARM_RUNS });
        row.turn = async () => row.times.push(...await system.call("times", { test, runs: 1 }));
      } catch (error) {
        row.error = String(error.message ?? error);
      }
    }
  }
  return rows;
}

async function measure(config, data, want) {
  const systems = new Map(Object.keys(config.systems).map((name) => [name, new Remote(name, new URL(`./worker.js?system=${name}`, import.meta.url))]));
  const rows = await opened(config, systems, data, want);
  const live = rows.filter((row) => row.turn);
  for (let round = 0; round < config.runs; round++) {
    status.textContent = `${config.resident ? "x stays on the GPU" : "x is uploaded"}: round ${round + 1} of ${config.runs}`;
    const shift = round % live.length; // the order rotates: none always runs behind the same one
    for (const row of [...live.slice(shift), ...live.slice(0, shift)]) await row.turn();
  }
  for (const system of systems.values()) system.end();
  for (const { times, turn, ...row } of rows) {
    if (turn) Object.assign(row, { median_ms: median(times), min_ms: Math.min(...times), samples: times.length });
    show(row);
    await report("row", row);
  }
}

function show(row) {
  const line = body.insertRow();
  const figures = row.error ? ["–", "–", row.error] : [row.median_ms.toFixed(3), row.min_ms.toFixed(3), row.max_abs_diff.toExponential(1)];
  for (const text of [TEXTS[`${row.system} ${row.test}`], row.feed, ...figures]) line.insertCell().textContent = text;
}

/** ?runs=10 asks for another number of runs, ?feed=host or resident for one way of x alone; shapes belong to the data. */
async function run() {
  const config = await (await fetch(new URL("../interop.json", import.meta.url))).json();
  const asked = new URL(location.href).searchParams;
  config.runs = Number(asked.get("runs") ?? config.runs);
  const at = (name) => new URL(`../data/interop/${name}.bin`, import.meta.url);
  const [x, w, b, y, y2] = await Promise.all(["x", "w", "b", "y", "y2"].map((name) => floats(at(name))));
  await report("about", { ...(await about(true)), shapes: config.shapes, runs: config.runs });
  const output = (data) => ({ name: "y", data, range: data.reduce((most, value) => Math.max(most, value), 0) });
  const want = { once: output(y), chained: output(y2) };
  const feeds = ["resident", "host"].filter((feed) => [feed, null].includes(asked.get("feed")));
  for (const resident of feeds.map((feed) => feed === "resident")) await measure({ ...config, resident }, { x, w, b }, want);
  status.textContent = "done";
}

concluded(run, (text) => (status.textContent = text));
