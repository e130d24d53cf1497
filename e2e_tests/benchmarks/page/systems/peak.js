// What one core can do in WebAssembly: relaxed multiply-adds on ten accumulators, nothing else.

import { peakModule } from "../peak_module.js";

const STEPS = 1_000_000;

/** A system without models: `measure` gives GFLOP/s. */
export async function start() {
  const { bytes, flopsPerStep } = peakModule();
  const { instance } = await WebAssembly.instantiate(bytes);
  const gflops = () => {
    const begin = performance.now();
    instance.exports.peak(STEPS);
    return (STEPS * flopsPerStep) / (performance.now() - begin) / 1e6;
  };
  return {
    version: "wasm",
    measure({ runs }) {
      for (let i = 0; i < 20; i++) gflops(); // until the optimising compiler has it
      let best = 0;
      for (let i = 0; i < runs; i++) best = Math.max(best, gflops());
      return best;
    },
  };
}
