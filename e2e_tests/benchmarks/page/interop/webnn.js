// The four interop tests against the standard interface, with our `navigator.ml` on a GPUDevice of ours.

const SITE = new URL("../engine/", import.meta.url);

/** {open(test) -> plan, result(test) -> typed array, times(test, runs) -> milliseconds}. */
export async function start(config, data) {
  const { assets } = await (await fetch(new URL("manifest.json", SITE))).json();
  const script = (name) => import(new URL(assets[`static/${name}.js`].url, SITE).href);
  const [{ install, startEngine }, { interopTests, wholeDevice }] = await Promise.all(["webnn", "interop_tests"].map(script));
  install(() => startEngine(new URL("manifest.json", SITE).href));
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
  const gpu = await wholeDevice(adapter);
  const tests = await interopTests(gpu, await navigator.ml.createContext(gpu), config, data);
  return {
    version: "navigator.ml of webinfer on WebGPU",
    open: () => [],
    result: async (name) => (await tests.run(name)).slice(),
    async times(name, runs) {
      const times = [];
      for (let i = 0; i < runs; i++) times.push(await tests.timed(name));
      return times;
    },
  };
}
