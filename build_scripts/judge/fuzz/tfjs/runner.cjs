// TensorFlow.js as a server of one client: node runner.cjs MODULES
//
// Each line of the input is a question {model, weights, inputs, outputs, backend}: the object of a model.json, all weights
// in base64, what is fed by name as {dtype, shape, data in base64}, the names of results, "cpu" or "wasm". Each line of
// the output is an answer: {outputs: [{dtype, shape, data}]}, or {error}.

const path = require('path');
const readline = require('readline');
const {createRequire} = require('module');

const modules = path.resolve(process.argv[2]);
const load = createRequire(path.join(modules, 'package.json'));
const write = process.stdout.write.bind(process.stdout);
console.log = console.info = console.warn = console.debug = () => {}; // answers alone go to the output
const tf = load('@tensorflow/tfjs-core');
load('@tensorflow/tfjs-backend-cpu');
const wasm = load('@tensorflow/tfjs-backend-wasm');
const {loadGraphModel} = load('@tensorflow/tfjs-converter');

const KINDS = {float32: Float32Array, int32: Int32Array, bool: Uint8Array};
wasm.setWasmPaths(path.join(modules, '@tensorflow/tfjs-backend-wasm/dist/'));

function bytes(text) {
  const data = Buffer.from(text, 'base64');
  return data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength);
}

function handler({model, weights}) {
  const {modelTopology, format, signature} = model;
  const weightSpecs = model.weightsManifest.flatMap((group) => group.weights);
  modelTopology.versions = modelTopology.versions || {producer: 1, minConsumer: 1};
  return {load: async () => ({modelTopology, format, signature, weightSpecs, weightData: bytes(weights)})};
}

async function answer(question) {
  await tf.setBackend(question.backend);
  await tf.ready();
  const model = await loadGraphModel(handler(question));
  const fed = {};
  for (const [name, {dtype, shape, data}] of Object.entries(question.inputs)) {
    fed[name] = tf.tensor(new KINDS[dtype](bytes(data)), shape, dtype);
  }
  const found = [];
  try {
    const results = await model.executeAsync(fed, question.outputs);
    for (const result of Array.isArray(results) ? results : [results]) {
      const data = new KINDS[result.dtype](await result.data());
      const text = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64');
      found.push({dtype: result.dtype, shape: result.shape, data: text});
    }
    return {outputs: found};
  } finally {
    model.dispose();
    tf.disposeVariables();
  }
}

async function serve() {
  for await (const line of readline.createInterface({input: process.stdin})) {
    let found;
    tf.engine().startScope();
    try {
      found = await answer(JSON.parse(line));
    } catch (error) {
      found = {error: String(error && error.message ? error.message : error)};
    }
    tf.engine().endScope();
    write(`${JSON.stringify(found)}\n`);
  }
  process.exit(0); // threads of the backend would wait
}

serve();
