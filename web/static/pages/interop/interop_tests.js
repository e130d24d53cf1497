// The four interop tests against the standard interface of WebNN: convolutions in WebNN or in a shader, add and relu in a
// shader or in WebNN, and three ways from one to the other. The page "WebNN" and the verb `measure interop` run them.

const UNREAD = 50; // dispatches in a row where nothing is read back

const CONV2D = `
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> w: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  let i = id.x;
  if (i >= H * W * C) { return; }
  let c = i % C;
  let column = (i / C) % W;
  let row = i / (C * W);
  var sum = 0.0;
  for (var u = 0u; u < 3u; u++) { for (var v = 0u; v < 3u; v++) {
    if (row + u == 0u || row + u > H || column + v == 0u || column + v > W) { continue; }
    let pixel = ((row + u - 1u) * W + column + v - 1u) * C;
    let weight = ((c * 3u + u) * 3u + v) * C;
    for (var k = 0u; k < C; k++) { sum += x[pixel + k] * w[weight + k]; }
  } }
  y[i] = sum;
}`;
const ADD = `
@group(0) @binding(0) var<storage, read> b: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < H * W * C) { y[id.x] = y[id.x] + b[id.x % C]; }
}`;
const RELU = ADD.replace("y[id.x] + b[id.x % C]", "max(y[id.x] + 0.0 * b[0], 0.0)");

class Shaders {
  constructor(gpu, [, height, width, channels]) {
    const head = `const H = ${height}u; const W = ${width}u; const C = ${channels}u;`;
    this.gpu = gpu;
    this.groups = Math.ceil((height * width * channels) / 64);
    const pipeline = (code) => gpu.createComputePipeline({ layout: "auto", compute: { module: gpu.createShaderModule({ code: head + code }) } });
    [this.conv2d, this.add, this.relu] = [CONV2D, ADD, RELU].map(pipeline);
    this.values = new Float32Array(height * width * channels);
    this.staging = gpu.createBuffer({ size: this.values.byteLength, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
  }

  buffer(nbytes, data = null) {
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    const made = this.gpu.createBuffer({ size: nbytes, usage });
    if (data) this.gpu.queue.writeBuffer(made, 0, data);
    return made;
  }

  /** One submit of passes [pipeline, ...buffers]. */
  run(...steps) {
    const encoder = this.gpu.createCommandEncoder();
    const pass = encoder.beginComputePass();
    for (const [pipeline, ...buffers] of steps) {
      pass.setPipeline(pipeline);
      const entries = buffers.map((buffer, binding) => ({ binding, resource: { buffer } }));
      pass.setBindGroup(0, this.gpu.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries }));
      pass.dispatchWorkgroups(this.groups);
    }
    pass.end();
    this.gpu.queue.submit([encoder.finish()]);
  }

  /** The numbers of a buffer, there until the next call. */
  async read(buffer) {
    const encoder = this.gpu.createCommandEncoder();
    encoder.copyBufferToBuffer(buffer, 0, this.staging, 0, this.staging.size);
    this.gpu.queue.submit([encoder.finish()]);
    await this.staging.mapAsync(GPUMapMode.READ);
    this.values.set(new Float32Array(this.staging.getMappedRange()));
    this.staging.unmap();
    return this.values;
  }
}

/** The device of an adapter with all its features and limits, as engines ask for them. */
export function wholeDevice(adapter) {
  const requiredLimits = {};
  for (const name in adapter.limits) requiredLimits[name] = adapter.limits[name];
  return adapter.requestDevice({ requiredLimits, requiredFeatures: [...adapter.features] });
}

/** The graph of one layer: a convolution, with add and relu if it is `whole`; `times` of them in a row. */
async function graphOf(context, { x, w, b }, shapes, whole, times = 1) {
  const builder = new MLGraphBuilder(context);
  const constant = (shape, data) => builder.constant({ dataType: "float32", shape }, data);
  let y = builder.input("x", { dataType: "float32", shape: shapes.x });
  const filter = constant(shapes.w, w);
  const bias = constant(shapes.b, b);
  for (let i = 0; i < times; i++) {
    y = builder.conv2d(y, filter, { padding: [1, 1, 1, 1], inputLayout: "nhwc", filterLayout: "ohwi" });
    if (whole) y = builder.relu(builder.add(y, bias));
  }
  return builder.build({ y });
}

/**
 * {names, run(name) -> typed array that the next run changes, timed(name) -> milliseconds}, of a context on a GPUDevice;
 * `data` has x, w and b. With `resident`, x lies on the GPU already.
 */
export async function interopTests(gpu, context, { shapes, resident }, data) {
  const shaders = new Shaders(gpu, shapes.x);
  const descriptor = { dataType: "float32", shape: shapes.x };
  const tensor = (more) => context.createTensor({ ...descriptor, ...more });
  const [x, y] = [await tensor({ writable: true }), await tensor({ readable: true })];
  const middle = await context.createExportableTensor({ ...descriptor, readable: true, writable: true }, gpu);
  const graphs = { conv2d: await graphOf(context, data, shapes, false), layer: await graphOf(context, data, shapes, true) };
  graphs.chained = await graphOf(context, data, shapes, true, 2);
  const [xs, ys, zs] = [data.x, null, null].map((values) => shaders.buffer(4 * data.x.length, values));
  const [w, b] = [data.w, data.b].map((values) => shaders.buffer(values.byteLength, values));
  context.writeTensor(x, data.x);

  const values = new Float32Array(data.x.length);
  const read = async (from) => {
    await context.readTensor(from, values);
    return values;
  };
  const feed = () => resident || context.writeTensor(x, data.x);
  const epilogue = (buffer) => shaders.run([shaders.add, b, buffer], [shaders.relu, b, buffer]);
  const whole = (graph) => { feed(); context.dispatch(graph, { x }, { y }); };
  const custom = async (times) => {
    if (!resident) gpu.queue.writeBuffer(xs, 0, data.x);
    const pairs = [[xs, ys], [ys, zs]].slice(0, times);
    shaders.run(...pairs.flatMap(([from, to]) => [[shaders.conv2d, from, w, to], [shaders.add, b, to], [shaders.relu, b, to]]));
    return shaders.read(pairs.at(-1)[1]);
  };
  const host = async (times) => {
    let before = null;
    for (let i = 0; i < times; i++) {
      if (before) context.writeTensor(x, before);
      else feed();
      context.dispatch(graphs.conv2d, { x }, { y });
      gpu.queue.writeBuffer(ys, 0, await read(y));
      epilogue(ys);
      before = await shaders.read(ys);
    }
    if (times > 1 && resident) context.writeTensor(x, data.x);
    return before;
  };
  const shared = async (times) => {
    feed();
    let [from, to] = [x, middle];
    for (let i = 0; i < times; i++) {
      context.dispatch(graphs.conv2d, { x: from }, { y: to });
      const buffer = await context.exportToGPU(to);
      epilogue(buffer);
      buffer.destroy();
      [from, to] = [to, second];
    }
    return read(from);
  };
  const second = await context.createExportableTensor({ ...descriptor, readable: true, writable: true }, gpu);
  const tests = {
    custom: () => custom(1), host: () => host(1), shared: () => shared(1),
    builtin: () => { whole(graphs.layer); return read(y); },
    chained_custom: () => custom(2), chained_host: () => host(2), chained_shared: () => shared(2),
    chained_builtin: () => { whole(graphs.chained); return read(y); },
    unread: () => { whole(graphs.layer); return read(y); },
  };
  const timed = async (name) => {
    const begin = performance.now();
    if (name !== "unread") {
      await tests[name]();
      return performance.now() - begin;
    }
    for (let i = 0; i < UNREAD; i++) whole(graphs.layer);
    await null; // now they are submitted
    await gpu.queue.onSubmittedWorkDone();
    return (performance.now() - begin) / UNREAD;
  };
  return { names: Object.keys(tests), run: (name) => tests[name](), timed };
}
