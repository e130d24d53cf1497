// Runs the interop tests of WebNN for the page "WebNN": {module, side, channels, rounds} in; {step}, {rows} and at the end
// {device, rows} or {error} out. `module` is the address of webnn.js.

import { interopTests, wholeDevice } from "./interop_tests.js";

const WARM_RUNS = 2;
const median = (times) => [...times].sort((a, b) => a - b)[times.length >> 1];

/** Numbers in [-size, size), the same for the same seed. */
function numbers(count, seed, size) {
  let state = seed;
  return Float32Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state / 2147483648 - 1) * size;
  });
}

function layer(side, channels) {
  const shapes = { x: [1, side, side, channels], w: [channels, 3, 3, channels], b: [channels] };
  const data = { x: numbers(side * side * channels, 1, 1), w: numbers(9 * channels * channels, 2, 0.1), b: numbers(channels, 3, 1) };
  return { shapes, data };
}

/** The largest difference, as a part of the largest number. */
function difference(got, want) {
  let [worst, most] = [0, 0];
  for (let i = 0; i < want.length; i++) [worst, most] = [Math.max(worst, Math.abs(got[i] - want[i])), Math.max(most, Math.abs(want[i]))];
  return worst / most;
}

async function open(module) {
  const adapter = await navigator.gpu?.requestAdapter({ powerPreference: "high-performance" });
  if (!adapter) throw new Error("This browser offers no WebGPU, which these tests compare WebNN with.");
  const gpu = await wholeDevice(adapter);
  const { install } = await import(module);
  install(); // ours, even where the browser has its own: only ours shares its tensors with shaders
  const { vendor, architecture, description } = adapter.info;
  return { gpu, context: await navigator.ml.createContext(gpu), device: description || [vendor, architecture].filter(Boolean).join(" ") || "GPU" };
}

async function measure({ module, side, channels, rounds }) {
  self.postMessage({ step: "Python and the engine start" });
  const { gpu, context, device } = await open(module);
  const { shapes, data } = layer(side, channels);
  self.postMessage({ step: "Graphs and shaders are made" });
  const tests = await interopTests(gpu, context, { shapes, resident: true }, data);
  const rows = tests.names.map((name) => ({ name, times: [], difference: 0 }));
  const right = {};
  for (const row of rows) {
    self.postMessage({ step: `First run of ${row.name.replace("_", ", ")}` });
    const got = (await tests.run(row.name)).slice();
    const kind = row.name.startsWith("chained");
    right[kind] ??= got; // all in shaders of the page's own: the first of its kind
    row.difference = difference(got, right[kind]);
    for (let i = 0; i < WARM_RUNS; i++) await tests.timed(row.name);
  }
  const told = () => rows.map(({ name, times, difference: worst }) => ({ name, worst, median: median(times), least: Math.min(...times) }));
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < rows.length; i++) { // the order rotates: none always runs behind the same one
      const row = rows[(i + round) % rows.length];
      row.times.push(await tests.timed(row.name));
    }
    self.postMessage({ step: `Round ${round + 1} of ${rounds}`, part: (round + 1) / rounds, rows: told() });
  }
  self.postMessage({ device, rows: told() });
}

self.addEventListener("message", ({ data }) => {
  measure(data).catch((error) => self.postMessage({ error: String(error.message ?? error) }));
});
