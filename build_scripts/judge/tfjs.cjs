// What TensorFlow.js computes: node tfjs.cjs MODULES MODEL.json FOLDER [plain]
//
// FOLDER/inputs.json lists, for each run, the inputs in the model's order as {dtype, shape, file}. The outputs go to
// FOLDER/outputs.json in the same form. The WebAssembly backend runs what it can, plain JavaScript the rest, and models
// that cast floats to bool: WebAssembly makes 0.5 false there, TensorFlow and every other backend true. Convolutions and
// pools of volumes run in plain JavaScript too: WebAssembly's transposed one leaves most of its result zero. With `plain`
// WebAssembly computes without SIMD, in another order.

const fs = require('fs');
const path = require('path');
const {createRequire} = require('module');

const [modules, modelFile, folder, plain] = process.argv.slice(2);
const load = createRequire(path.join(modules, 'package.json'));
const tf = load('@tensorflow/tfjs-core');
load('@tensorflow/tfjs-backend-cpu');
const wasm = load('@tensorflow/tfjs-backend-wasm');
const {loadGraphModel} = load('@tensorflow/tfjs-converter');

const KINDS = {float32: Float32Array, int32: Int32Array, bool: Uint8Array};

function bytes(file) {
  const data = fs.readFileSync(file);
  return data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength);
}

function handler() {
  const described = JSON.parse(fs.readFileSync(modelFile, 'utf8'));
  const beside = path.dirname(modelFile);
  const groups = described.weightsManifest;
  const weightSpecs = groups.flatMap((group) => group.weights);
  const shards = groups.flatMap((group) => group.paths).map((name) => fs.readFileSync(path.join(beside, name)));
  const whole = Buffer.concat(shards);
  const weightData = whole.buffer.slice(whole.byteOffset, whole.byteOffset + whole.byteLength);
  const {modelTopology, format, generatedBy, convertedBy, signature, userDefinedMetadata} = described;
  return {load: async () => ({
    modelTopology, format, generatedBy, convertedBy, signature, userDefinedMetadata, weightSpecs, weightData,
  })};
}

// A graph model, or one of layers, which runs at once and without its training.
async function loaded(isGraph) {
  if (isGraph) return loadGraphModel(handler());
  const model = await load('@tensorflow/tfjs-layers').loadLayersModel(handler());
  return {executeAsync: async (tensors) => model.predict(tensors)};
}

async function run(backend, runs, isGraph) {
  await tf.setBackend(backend);
  await tf.ready();
  const model = await loaded(isGraph);
  const results = [];
  for (const inputs of runs) {
    const tensors = inputs.map(({dtype, shape, file}) =>
      tf.tensor(new KINDS[dtype](bytes(path.join(folder, file))), shape, dtype));
    let outputs = await model.executeAsync(tensors);
    outputs = Array.isArray(outputs) ? outputs : [outputs];
    const listed = [];
    for (const [i, output] of outputs.entries()) {
      const file = `output-${results.length}-${i}`;
      fs.writeFileSync(path.join(folder, file), new KINDS[output.dtype](await output.data()));
      listed.push({dtype: output.dtype, shape: output.shape, file});
    }
    tf.dispose([tensors, outputs]);
    results.push(listed);
  }
  return results;
}

async function main() {
  const runs = JSON.parse(fs.readFileSync(path.join(folder, 'inputs.json'), 'utf8'));
  if (plain) tf.env().set('WASM_HAS_SIMD_SUPPORT', false);
  wasm.setWasmPaths(path.join(modules, '@tensorflow/tfjs-backend-wasm/dist/'));
  const described = fs.readFileSync(modelFile, 'utf8');
  const {node} = JSON.parse(described).modelTopology;
  const volumes = /"(Conv|AvgPool|MaxPool|AveragePooling|MaxPooling)3D(Transpose)?"/.test(described);
  const truths = (node || []).some(({op, attr}) => op === 'Cast' && attr?.DstT?.type === 'DT_BOOL' && attr.SrcT?.type === 'DT_FLOAT');
  let results;
  try {
    results = await run(truths || volumes ? 'cpu' : 'wasm', runs, node != null);
  } catch (error) {
    console.error(`wasm: ${error.message}`);
    results = await run('cpu', runs, node != null);
  }
  fs.writeFileSync(path.join(folder, 'outputs.json'), JSON.stringify(results));
  process.exit(0); // threads of the backend would wait
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
