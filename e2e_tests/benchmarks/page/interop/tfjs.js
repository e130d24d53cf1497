// The same in TF.js on WebGPU: all built in and fused, all built in one by one, and through host memory.

const HOME = new URL("../rivals/tfjs/", import.meta.url).href;

const UNREAD = 50; // layers in a row where nothing is read back

async function unread(tf, layer) {
  for (let i = 0; i < UNREAD; i++) tf.tidy(() => void layer());
  const { queue, submitQueue } = Object.assign(tf.backend());
  submitQueue?.call(tf.backend());
  await queue.onSubmittedWorkDone();
}

/** {open(test), result(test) -> typed array, times(test, runs) -> milliseconds}. UMD bundles: a classic worker. */
export async function start({ shapes, resident }, data) {
  self.importScripts(`${HOME}tf-core.min.js`, `${HOME}tf-backend-cpu.min.js`, `${HOME}tf-backend-webgpu.min.js`);
  const tf = self.tf;
  tf.enableProdMode();
  await tf.setBackend("webgpu");
  await tf.ready();
  if (tf.getBackend() !== "webgpu") throw new Error(`TF.js runs on ${tf.getBackend()} instead of webgpu`);
  const kept = { x: resident ? tf.tensor(data.x, shapes.x) : null, b: tf.tensor(data.b, shapes.b) };
  kept.w = tf.tidy(() => tf.transpose(tf.tensor(data.w, shapes.w), [1, 2, 3, 0])); // [CO, KH, KW, CI] -> [KH, KW, CI, CO]
  const given = () => kept.x ?? tf.tensor(data.x, shapes.x);
  const conv2d = () => tf.conv2d(given(), kept.w, 1, "same");
  const read = async (compute) => {
    const y = tf.tidy(compute);
    const values = await y.data();
    y.dispose();
    return values;
  };
  const layer = (x) => tf.fused.conv2d({ x, filter: kept.w, strides: 1, pad: "same", bias: kept.b, activation: "relu" });
  const tests = {
    unread: () => read(() => layer(given())),
    chained: () => read(() => layer(layer(given()))),
    fused: () => read(() => tf.fused.conv2d({ x: given(), filter: kept.w, strides: 1, pad: "same", bias: kept.b, activation: "relu" })),
    builtin: () => read(() => tf.relu(tf.add(conv2d(), kept.b))),
    async host() {
      const values = await read(conv2d);
      return read(() => tf.relu(tf.add(tf.tensor(values, shapes.y), kept.b)));
    },
  };
  return {
    version: `TF.js ${tf.version_core}`,
    open: () => [],
    result: (name) => tests[name](),
    async times(name, runs) {
      const times = [];
      for (let i = 0; i < runs; i++) {
        const begin = performance.now();
        if (name !== "unread") await tests[name]();
        else await unread(tf, () => layer(given()));
        times.push((performance.now() - begin) / (name === "unread" ? UNREAD : 1));
      }
      return times;
    },
  };
}
